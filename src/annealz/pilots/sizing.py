"""What a wanted standard error takes: steps, chains, sweeps and seconds, predicted before the run.

Steps. The survey of mixing predicts Var[log w] = (∫ √(g tau))^2 / K, so the first guess is the K of
variance 1. A sizing run of 200 chains then shows the weights as they are; while fewer than a quarter of
them are effective, chains are worth lengthening and K is quadrupled, twice at most, as long as sizing
takes less than a third of the run. The last length is taken, unless one before it looks less than half as
costly: where few chains are effective the weights look better than they are, and so does the cost. A length
of which fewer than a twentieth of the chains are effective is not taken before a longer one.

Chains. The error falls with the square root of their number:

    N = 1.3 n (s / target)^2        s the standard error of the n chains of the sizing run

30 % more are taken, because few chains show the spread only roughly. A run that still misses its target is
extended once (`more_chains`): to 1.1 N (s / target)^2 chains in all, at most 5 N. Looking at the weights
before drawing more biases Z-hat low: with log-normal weights of variance 0.5, 1, 2, 3 (2000 runs each,
target 0.05) E[Z-hat] / Z was 1.000, 0.997, 0.995 and 0.989 to 0.994, a tenth to a fifth of the standard
error. Running on until the error looks small gave 0.975.

Seconds. A few steps of the block of chains that the run will use are timed.
"""

import dataclasses
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annealz.core.cost import Cost
from annealz.core.errors import InputError
from annealz.core.weights import delta_std_err, effective_sample_size
from annealz.engine.anneal import anneal
from annealz.engine.blocks import block_size
from annealz.engine.progress import OnProgress, begin
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.plan import named_rule, pilot_cost, plan_schedule
from annealz.pilots.survey_mixing import survey_mixing
from annealz.schedules.choose import make_schedule
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule

_SIZING_CHAINS = 200
_MIN_CHAINS = 100
_MAX_CHAINS = 1_000_000
_RESERVE = 1.3
_SECOND_RESERVE = 1.1
_MOST_MORE = 4  # times the chains already run
_FIRST_SURVEY = 200_000  # sweeps
_FIRST_STEPS = 2_500  # where no survey predicts them
_LEAST_STEPS, _MOST_STEPS = 500, 50_000  # of the first guess
_LENGTHEN = 4
_MAX_LENGTHS = 3
_ENOUGH_EFFECTIVE = 0.25  # of the chains
_LEAST_EFFECTIVE = 0.05  # with fewer the error is not known
_SIZING_SHARE = 0.3  # of the predicted run: what a longer sizing run may cost
_CLEARLY_CHEAPER = 0.5
_TIME_SHARE = 0.1  # of a time limit: past it nothing longer is tried
_TIMED_STEPS = 48


class Forecast(NamedTuple):
    """The run that should reach the wanted error, and what was spent to know."""

    schedule: Schedule
    num_chains: int
    target_std_err: float
    seconds: float
    cost: Cost  # of finding it
    max_seconds: float | None = None
    spent: float | None = None
    """Seconds of all pilots, where others came before these."""

    @property
    def num_steps(self) -> int:
        return self.schedule.num_steps

    @property
    def sweeps(self) -> int:
        return self.num_steps * self.num_chains

    def __str__(self) -> str:
        spent = self.cost.seconds if self.spent is None else self.spent
        words = (
            f"{self.num_chains:,} chains of {self.num_steps:,} steps should reach a standard error of "
            f"{self.target_std_err:g}: {self.sweeps:,} sweeps, about {self.seconds:.1f} s "
            f"after {spent:.1f} s of pilots"
        )
        left = np.inf if self.max_seconds is None else self.max_seconds - self.cost.seconds
        if self.seconds <= left:
            return words
        share = max(left / self.seconds, 1 / self.num_chains)
        return (
            f"{words}; the {max(left, 0):.0f} s that are left allow about {share * self.num_chains:,.0f} "
            f"of them, for an error of {self.target_std_err / share**0.5:.2g}"
        )


class _Trial(NamedTuple):
    """A sizing run, and what a run of its length would take."""

    run: Run
    target_std_err: float

    @property
    def needed(self) -> float:
        """Chains."""
        ratio = delta_std_err(self.run.log_weights) / self.target_std_err
        return max(_MIN_CHAINS, _RESERVE * self.run.num_chains * ratio**2)

    @property
    def cost(self) -> float:
        return self.run.num_steps * self.needed

    @property
    def share(self) -> float:
        """Effective chains."""
        return effective_sample_size(self.run.log_weights) / self.run.num_chains

    @property
    def is_worth_lengthening(self) -> bool:
        if self.share < _LEAST_EFFECTIVE:
            return True
        next_cost = _LENGTHEN * self.run.sweeps
        return self.share < _ENOUGH_EFFECTIVE and next_cost < _SIZING_SHARE * self.cost


def forecast(
    path: AbstractPath,
    kernel: AbstractKernel,
    schedule: str | Path | Schedule | np.ndarray,
    target_std_err: float,
    *,
    num_steps: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Forecast:
    """The run that should reach this standard error; a ValueError where a million chains would not.

    `num_steps`, or a schedule that is not a name, fixes the steps. With `max_seconds`, less is spent on
    finding them.
    """
    began, cost = time.monotonic(), Cost()
    common: dict[str, Any] = {"on_progress": on_progress, "seed": seed}
    is_name = isinstance(schedule, str) and not Path(schedule).is_file()
    is_free = is_name and num_steps is None
    rule = named_rule(str(schedule)) if is_name else None
    if is_free and rule is not None and rule.predicts_variance:
        begin(on_progress, "pilot")
        terrain = survey_mixing(path, kernel, budget=_FIRST_SURVEY, **common)
        cost += terrain.pilot_cost(kernel)
        num_steps = _first_steps(make_schedule(rule, 1, terrain).provenance["predicted_variance"])
    elif is_free:
        num_steps = _FIRST_STEPS
    trials: list[_Trial] = []
    is_longer = True
    while is_longer:
        plan = plan_schedule(schedule, path, kernel, num_steps=num_steps, **common)
        own: dict[str, Any] = {
            **common,
            "on_progress": begin(on_progress, "sizing", len(trials) + 1, 0),
        }
        run = anneal(path, kernel, plan, num_chains=_SIZING_CHAINS, purpose="sizing", **own)
        cost += run.cost(kernel.evaluations)
        if is_name:
            cost += pilot_cost(plan, kernel)
        trials.append(_Trial(run, target_std_err))
        is_longer = is_free and len(trials) < _MAX_LENGTHS and trials[-1].is_worth_lengthening
        if max_seconds is not None:
            is_longer &= time.monotonic() - began <= _TIME_SHARE * max_seconds
        num_steps = _LENGTHEN * plan.num_steps
    best = _best(trials)
    chosen = best.run.schedule
    if not best.needed <= _MAX_CHAINS:
        reachable = target_std_err * np.sqrt(best.needed / _MAX_CHAINS)
        raise InputError(
            "target_std_err",
            f"of {target_std_err:g} is out of reach with {chosen.num_steps:,} steps: it would take "
            f"{best.needed:.2g} chains, and with a million {reachable:.2g} can be reached",
            remedy="take more steps, or a larger error",
        )
    chains = int(np.ceil(best.needed))
    begin(on_progress, "timing")
    timing = time_steps(path, kernel, chains, seed)
    seconds = timing.pace * chosen.num_steps * chains
    cost = dataclasses.replace(cost + timing.cost, seconds=time.monotonic() - began)
    return Forecast(chosen, chains, target_std_err, seconds, cost, max_seconds)


def more_chains(log_weights: np.ndarray, target_std_err: float) -> int:
    """How many more a run takes that missed its target; none where it did not."""
    std_err, size = delta_std_err(log_weights), log_weights.size
    if std_err <= target_std_err:
        return 0
    wanted = _SECOND_RESERVE * size * (std_err / target_std_err) ** 2 - size
    return int(min(max(np.ceil(wanted), _MIN_CHAINS), _MOST_MORE * size))


class Timing(NamedTuple):
    """Seconds per sweep, and what it took to measure them."""

    pace: float
    cost: Cost = Cost()


def time_steps(path: AbstractPath, kernel: AbstractKernel, num_chains: int, seed: int) -> Timing:
    """How fast a run of so many chains should be, from some steps of one of its blocks."""
    began, size = time.monotonic(), block_size(num_chains)
    runs = [
        anneal(
            path, kernel, linear(steps), num_chains=size, seed=seed, purpose="timing",
            record_every=steps, chunk_steps=steps,
        )
        for steps in (1, _TIMED_STEPS)  # the first compiles
    ]  # fmt: skip
    pace = runs[-1].seconds / (_TIMED_STEPS * size)
    cost = sum((run.cost(kernel.evaluations) for run in runs), Cost())
    return Timing(pace, dataclasses.replace(cost, seconds=time.monotonic() - began))


def _best(trials: list[_Trial]) -> _Trial:
    """The longest that can be trusted, unless another is clearly cheaper."""
    known = [trial for trial in trials if trial.share >= _LEAST_EFFECTIVE] or trials[-1:]
    cheapest = min(known, key=lambda trial: trial.cost)
    return cheapest if cheapest.cost < _CLEARLY_CHEAPER * known[-1].cost else known[-1]


def _first_steps(length_squared: float) -> int:
    """K of variance 1, to two digits."""
    steps = np.clip(length_squared, _LEAST_STEPS, _MOST_STEPS)
    unit = 10 ** (int(np.log10(steps)) - 1)
    return int(np.ceil(steps / unit) * unit)
