"""A schedule by its name: a pilot is run where the rule needs one, then the schedule is frozen.

The rules are listed in `io/schedules.py`, each with the kind of pilot that it needs:

mixing       g and tau along the path for a twentieth of the sweeps
annealed     a survey of 1000 steps and 100 chains
knots        moments at 10 knots, 1000 chains, 6000 sweeps of which 1000 burn-in

A pilot is a cheap look at the path. `survey` anneals few chains over a linear schedule and records mean
and variance of the slope with on-the-fly weights at every step (Algorithm 2 of Kiwaki 2015). `survey_knots`
runs chains at a few fixed betas, for the moments that GMS13 needs. Both use random streams of their own: no
pilot chain enters an estimate.

A weighted variance about the weighted mean of n effective chains is low by the factor 1 - 1/n, which
matters where the pilot's ESS drops; it is divided out.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from annealz.core.arrays import indices
from annealz.core.cost import Cost
from annealz.core.failures import user_errors
from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.engine.observers import Slope
from annealz.engine.progress import OnProgress, Progress, begin, in_stage
from annealz.io.schedules import SCHEDULES, ScheduleRule
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.run_at_beta import run_at_beta
from annealz.pilots.survey_mixing import LEAST_BUDGET, survey_mixing
from annealz.schedules.choose import (
    DEFAULT_NUM_STEPS,
    check_num_steps,
    choose_schedule,
    make_schedule,
)
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

MIXING_SHARE = 0.05  # of all sweeps, for the pilot of mixing

_PILOT = {"num_steps": 1000, "num_chains": 100}
_KNOTS = {"num_knots": 10, "num_chains": 1000}
_KNOTS_SHARE = 0.1  # of all sweeps, for a pilot at knots that is shrunk
_UPDATES_A_CALL = 100


def pilot_sweeps(name: str, total: int, pilot_scale: float = 1.0) -> int:
    """Return what the pilot of a named schedule may cost, where pilot and run take `total` sweeps."""
    pilot = named_rule(name).pilot
    if pilot == "mixing":
        return _mixing_budget(total)
    if pilot == "knots":
        return _KNOTS["num_knots"] * _KNOTS["num_chains"] * _num_updates(pilot_scale)
    return _PILOT["num_steps"] * _PILOT["num_chains"] if pilot == "annealed" else 0


def pilot_scale_within(name: str, total: int) -> float:
    """Return the scale at which a pilot at knots takes a tenth of `total` sweeps, at most 1."""
    if named_rule(name).pilot != "knots":
        return 1.0
    return min(1.0, _KNOTS_SHARE * total / pilot_sweeps(name, total))


def plan_schedule(
    schedule: str | Path | Schedule | np.ndarray,
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_steps: int | None = None,
    num_chains: int = 1000,
    seed: int = 0,
    pilot_scale: float = 1.0,
    on_progress: OnProgress | None = None,
) -> Schedule:
    """The schedule meant by a name, a file, an array of betas or a Schedule.

    `num_chains` of the run to come: with its steps, it limits the sweeps of the pilot of mixing.
    `pilot_scale` shrinks the number of sweeps of a pilot at knots, that of gms13, which at the paper's size
    costs more than most runs. What the pilot cost is in `provenance["pilot_sweeps"]`.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> sizes = {"num_steps": 100, "num_chains": 100}
    >>> annealz.plan_schedule("mixing", path, annealz.BlockGibbs(), **sizes).num_steps
    100
    """
    rule, num_steps = _checked(schedule, num_steps)
    if isinstance(rule, Schedule):
        return rule
    begin(on_progress, "pilot")
    options: dict[str, Any] = {"seed": seed, "on_progress": on_progress}
    if rule.pilot == "mixing":
        total = int(num_steps * num_chains / (1 - MIXING_SHARE))  # of the run and its survey
        terrain = survey_mixing(path, kernel, budget=_mixing_budget(total), **options)
    elif rule.pilot == "annealed":
        terrain = survey(path, kernel, **_PILOT, **options)
    else:
        updates = _num_updates(pilot_scale)
        options |= {"num_updates": updates, "num_burn_in": updates // 6}
        terrain = survey_knots(path, kernel, **_KNOTS, **options)
    begin(on_progress, "schedule")
    return make_schedule(rule, num_steps, terrain)


def pilot_cost(schedule: Schedule, kernel: AbstractKernel) -> Cost:
    """Return the cost of the pilot that a schedule was planned by."""
    names = ("pilot_sweeps", "starts", "pilot_seconds")
    return kernel.cost(*(schedule.provenance.get(name, 0) for name in names))


def check_schedule(
    schedule: str | Path | Schedule | np.ndarray, num_steps: int | None = None
) -> int:
    """Return the steps that this schedule will have; refuse, before any pilot, what is none."""
    return _checked(schedule, num_steps)[1]


def _checked(schedule: Any, num_steps: int | None) -> tuple[ScheduleRule | Schedule, int]:
    """The rule that is named, if it needs a pilot, or the schedule; and its steps."""
    is_name = isinstance(schedule, str) and not Path(schedule).is_file()
    rule = SCHEDULES.find(schedule) if is_name else None
    if rule is None or not rule.needs_pilot:
        chosen = choose_schedule(schedule, num_steps, SCHEDULES.names())
        return chosen, chosen.num_steps
    num_steps = check_num_steps(DEFAULT_NUM_STEPS if num_steps is None else num_steps)
    rule.check_steps(num_steps)
    return rule, num_steps


def _mixing_budget(total: int) -> int:
    return max(LEAST_BUDGET, int(MIXING_SHARE * total))


def _num_updates(pilot_scale: float) -> int:
    return max(12, round(6000 * pilot_scale))


def named_rule(name: str) -> ScheduleRule:
    """Return the rule of a name; a ValueError lists all names where there is none."""
    rule = SCHEDULES.find(name)
    if rule is None:
        raise ValueError(
            f"unknown schedule {name!r}: choose one of {', '.join(SCHEDULES.names())}."
        )
    return rule


@user_errors()
def survey(
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_steps: int = 1000,
    num_chains: int = 100,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Terrain:
    """Mean and variance of the slope along the path, from a linear pilot run.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> terrain = annealz.survey(path, annealz.BlockGibbs(), num_steps=100, num_chains=100)
    >>> terrain.betas.size, terrain.sweeps
    (100, 10000)
    """
    report = in_stage(on_progress, "pilot")
    run = anneal(
        path,
        kernel,
        linear(num_steps),
        num_chains=num_chains,
        seed=seed,
        purpose="survey",
        observers={"slope": Slope()},
        record_every=1,
        # its log Z and ESS are none of the run to come
        on_progress=report and (lambda now: report(now._replace(log_z=np.nan, ess=np.nan))),
    )
    each = kernel.evaluations
    shrunk = 1 - 1 / np.maximum(run.trace.ess, 1.1)  # E of a variance about the weighted mean
    return Terrain(
        betas=run.trace.betas,
        mean=run.trace.means["slope"],
        variance=run.trace.variances["slope"] / shrunk,
        ess=run.trace.ess,
        sweeps=run.sweeps,
        seconds=run.seconds,
        provenance={
            "pilot": "annealed",
            "num_steps": num_steps,
            "num_chains": num_chains,
            **({} if each is None else {"starts": run.cost(each).evaluations - each * run.sweeps}),
            "seed": seed,
        },
    )


@user_errors()
def survey_knots(
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_knots: int = 10,
    num_chains: int = 1000,
    num_updates: int = 6000,
    num_burn_in: int = 1000,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Terrain:
    """Mean and variance of the slope at equally spaced betas, from runs at fixed beta.

    The chains of a knot go on from where those of the last one ended; the first `num_burn_in` of the
    `num_updates` sweeps at each knot are left out of the averages.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> sizes = {"num_knots": 4, "num_chains": 100, "num_updates": 60, "num_burn_in": 10}
    >>> annealz.survey_knots(path, annealz.BlockGibbs(), **sizes).sweeps
    24000
    """
    if num_knots < 2 or num_chains < 1 or not 0 <= num_burn_in < num_updates:
        raise ValueError(
            "a survey at knots takes at least 2 knots, 1 chain, and fewer burn-in sweeps than "
            f"updates, got {num_knots}, {num_chains}, {num_burn_in} of {num_updates}."
        )
    began = time.monotonic()
    stream, chains = Stream(seed, "knots"), indices(num_chains)
    betas = np.linspace(0, 1, num_knots)
    path = kernel.extend(path)
    x = path.sample(stream.at(0, chains))
    means, variances, done = [], [], 0
    for beta in betas:
        parts = []
        for start in range(0, num_updates, _UPDATES_A_CALL):
            count = min(_UPDATES_A_CALL, num_updates - start)
            x, slopes = run_at_beta(path, kernel, stream, chains, x, beta, done, count)
            slopes = slopes.astype(np.float64)
            parts.append(np.stack([slopes.mean(1), slopes.var(1)], axis=1))
            done += count
            if on_progress is not None:
                on_progress(Progress(done, num_knots * num_updates, np.nan, np.nan, "pilot"))
        kept = np.concatenate(parts)[num_burn_in:]
        mean = kept[:, 0].mean()
        means.append(mean)
        variances.append((kept[:, 1] + (kept[:, 0] - mean) ** 2).mean())
    return Terrain(
        betas=betas,
        mean=np.array(means),
        variance=np.array(variances),
        ess=np.full(num_knots, float(num_chains)),
        sweeps=num_knots * num_chains * num_updates,
        seconds=time.monotonic() - began,
        provenance={
            "pilot": "knots",
            "num_knots": num_knots,
            "num_chains": num_chains,
            **({} if kernel.evaluations is None else {"starts": num_chains}),
            "num_updates": num_updates,
            "num_burn_in": num_burn_in,
            "seed": seed,
        },
    )
