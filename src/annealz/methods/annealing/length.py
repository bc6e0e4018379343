"""How long a run is: its schedule, its chains and its parts, for what is asked, the time and the error.

a wanted error   survey and sizing runs predict steps and chains (`pilots/sizing.py`)
a time limit     fewer chains first, then shorter ones, in parts so that it can stop between them; parts
                 are as wide as pilots where that is possible, because one program then serves both
neither          as asked; of a density whose steps are not given, what the survey predicts
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealz.engine.anneal import Progress
from annealz.engine.blocks import check_memory
from annealz.engine.progress import begin
from annealz.io.registry.schedules import ScheduleRule
from annealz.methods.annealing.options import Options
from annealz.methods.problem import Problem
from annealz.pilots.base_search import PILOT_CHAINS, second_chains
from annealz.pilots.plan import MIXING_SHARE, named_rule, plan_schedule
from annealz.pilots.sizing import Forecast, Timing, forecast, time_steps
from annealz.pilots.survey_mixing import survey_mixing
from annealz.schedules.choose import DEFAULT_NUM_STEPS
from annealz.schedules.make import make_schedule
from annealz.schedules.schedule import Schedule

__all__ = ["Length", "choose_length", "opinion_chains", "part_width"]

_LEAST_CHAINS = 250  # that a time limit leaves, before it shortens the chains
_NUM_PARTS = 4  # of a run whose time is limited
_LEAST_PART = 25  # chains: fewer cannot be diagnosed
TIME_RESERVE = 0.8
RUN_SHARE = 0.25  # of a time limit that the run gets, however long pilots and compilation took
_SHORT_SURVEY = 4_000  # sweeps
_VARIANCE = 0.05  # of log w, that a density's steps aim at by default
_LEAST_STEPS = 50
_SIMPLE_STEPS = 1000  # of a model whose states can be listed, at least

OnProgress = Callable[[Progress], None] | None
OnForecast = Callable[[Forecast], None] | None


@dataclasses.dataclass(frozen=True)
class Length:
    """Schedule, chains and parts of a run, and what it took to find them."""

    schedule: Schedule
    num_chains: int
    part_chains: int | None = None
    sweeps: int = 0
    seconds: float = 0.0
    starts: int = 0
    """Evaluations of a density beside those of the sweeps, where they are counted."""
    whole_seconds: float | None = None
    """What the run should take without its time limit."""
    wanted_steps: int | None = None
    """Of the run without its time limit, where the survey chose them."""


def choose_length(
    problem: Problem,
    schedule: Any,
    options: Options,
    spent: float,
    on_progress: OnProgress = None,
    on_forecast: OnForecast = None,
) -> Length:
    """For a problem whose choice took `spent` seconds of the time allowed."""
    if options.target_std_err is not None:
        return _for_error(problem, schedule, options, spent, on_progress, on_forecast)
    num_steps, num_chains = options.num_steps, options.chains
    if num_steps is None and _is_sized(problem, schedule):
        rule = named_rule(schedule)
        found = _by_survey(problem, rule, options, on_progress)
        left = _left(options, spent + found.seconds)
        return found if left is None else _within(problem, rule, options, found, left)
    part_chains, timing, whole = None, Timing(0.0, 0, 0.0, 0), None
    left = _left(options, spent)
    if left is not None:
        num_steps, num_chains, part_chains, timing, whole = _fit(problem, schedule, options, left)
    found = plan_schedule(
        schedule,
        problem.states,
        problem.kernel,
        num_steps=num_steps,
        num_chains=num_chains,
        seed=options.seed,
        on_progress=on_progress,
    )
    pilot = found.provenance if _is_name(schedule) else {}  # the pilot of a name is charged
    return Length(
        found,
        num_chains,
        part_chains,
        timing.sweeps + pilot.get("pilot_sweeps", 0),
        timing.spent + pilot.get("pilot_seconds", 0.0),
        timing.starts + pilot.get("starts", 0),
        whole,
    )


def _is_sized(problem: Problem, schedule: Any) -> bool:
    """Whether the survey decides how many steps there are by default: where evaluations are counted."""
    return (
        (problem.kernel.evaluations is not None or problem.is_simple)
        and _is_name(schedule)
        and named_rule(schedule).predicts_variance
    )


def _by_survey(
    problem: Problem, rule: ScheduleRule, options: Options, on_progress: OnProgress
) -> Length:
    """As many steps as bring Var[log w] to a twentieth, within limits; a longer survey for a longer run."""
    began, num_chains, budget = time.monotonic(), options.chains, _SHORT_SURVEY
    sweeps = starts = 0
    begin(on_progress, "pilot")
    while True:
        terrain = survey_mixing(
            problem.states,
            problem.kernel,
            budget=budget,
            seed=options.seed,
            on_progress=on_progress,
        )
        sweeps, starts = sweeps + terrain.sweeps, starts + terrain.provenance.get("starts", 0)
        action = make_schedule(rule, 1, terrain).provenance["predicted_variance"]
        least = _SIMPLE_STEPS if problem.is_simple else _LEAST_STEPS
        steps = int(np.clip(np.ceil(action / _VARIANCE), least, DEFAULT_NUM_STEPS))
        wanted = int(MIXING_SHARE * steps * num_chains)
        is_enough = problem.is_simple and steps == least
        if is_enough or wanted <= 2 * budget or budget > _SHORT_SURVEY:
            break
        budget = wanted
    begin(on_progress, "schedule")
    schedule = make_schedule(rule, steps, terrain)
    return Length(schedule, num_chains, None, sweeps, time.monotonic() - began, starts)


def _within(
    problem: Problem, rule: ScheduleRule, options: Options, found: Length, left: float
) -> Length:
    """The same in the time that is left: fewer chains first, then shorter ones."""
    width = part_width(found.num_chains)
    timing = time_steps(problem.states, problem.kernel, width, options.seed)
    schedule, steps = found.schedule, found.schedule.num_steps
    sweeps = _sweeps_within(left, timing, options)
    chains, affordable = _chains_within(found.num_chains, steps, sweeps, problem)
    if steps > affordable:
        assert schedule.terrain is not None
        schedule = make_schedule(rule, affordable, schedule.terrain)
    return Length(
        schedule,
        chains,
        width,
        found.sweeps + timing.sweeps,
        found.seconds + timing.spent,
        found.starts + timing.starts,
        steps * (found.num_chains + _beside(problem, found.num_chains)) * timing.pace,
        steps,
    )


def _sweeps_within(left: float, timing: Timing, options: Options) -> float:
    """As many as fit into what is left after they were timed."""
    assert options.max_seconds is not None
    seconds = max(left - timing.spent, RUN_SHARE * options.max_seconds)
    return TIME_RESERVE * seconds / timing.pace


def _for_error(
    problem: Problem,
    schedule: Any,
    options: Options,
    spent: float,
    on_progress: OnProgress,
    on_forecast: OnForecast,
) -> Length:
    assert options.target_std_err is not None
    ahead = forecast(
        problem.states,
        problem.kernel,
        schedule,
        options.target_std_err,
        num_steps=options.num_steps,
        max_seconds=_left(options, spent),
        seed=options.seed,
        on_progress=on_progress,
    )
    check_memory(problem.states, ahead.num_chains)
    if on_forecast is not None:
        on_forecast(ahead)
    part_chains = None
    if options.max_seconds is not None:
        spare = max(options.max_seconds - (spent + ahead.pilot_seconds), 0.0)
        part_chains = _part_chains(ahead.num_chains, spare / max(ahead.seconds, 1e-9))
    return Length(
        ahead.schedule,
        ahead.num_chains,
        part_chains,
        ahead.pilot_sweeps,
        ahead.pilot_seconds,
        ahead.pilot_starts,
        ahead.seconds,
    )


def _left(options: Options, spent: float) -> float | None:
    """Seconds for the runs, of what is allowed."""
    if options.max_seconds is None:
        return None
    return max(options.max_seconds - spent, RUN_SHARE * options.max_seconds)


def _is_name(schedule: Any) -> bool:
    return isinstance(schedule, str) and not Path(schedule).is_file()


def _part_chains(num_chains: int, affordable: float) -> int:
    """Chains per part of a run whose time is `affordable` times what it should take."""
    chains = int(np.ceil(num_chains * min(1.0, affordable) / _NUM_PARTS))
    return min(max(chains, _LEAST_PART), num_chains)


def part_width(num_chains: int) -> int:
    """Chains per part of a run whose time is limited, and of what is timed for it."""
    if num_chains > PILOT_CHAINS and num_chains % PILOT_CHAINS == 0:
        return PILOT_CHAINS
    return _part_chains(num_chains, 1.0)


def opinion_chains(num_chains: int, part_chains: int | None, is_resampled: bool = False) -> int:
    """Chains of a second opinion; in limited time as many as a part has, whose program serves them."""
    count = second_chains(num_chains, is_resampled)
    return count if part_chains is None else max(count, min(part_chains, num_chains))


def _beside(problem: Problem, num_chains: int) -> float:
    """Chains of the second opinion, and of the way back from where they ended."""
    if problem.second_path is None:
        return 0.0
    return 1.5 * opinion_chains(num_chains, part_width(num_chains))


def _chains_within(num_chains: int, steps: int, sweeps: float, problem: Problem) -> tuple[int, int]:
    """Chains in whole parts, fewer where time is short, and the steps that are left to them."""
    width, beside = part_width(num_chains), _beside(problem, num_chains)
    if steps * (num_chains + beside) <= sweeps:
        return num_chains, steps
    wanted = max(sweeps / steps - beside, min(num_chains, _LEAST_CHAINS))
    chains = min(max(int(wanted / width), 1) * width, num_chains)
    return chains, max(1, min(steps, int(sweeps / (chains + beside))))


def _fit(
    problem: Problem, schedule: Any, options: Options, left: float
) -> tuple[int | None, int, int, Timing, float]:
    """Steps, chains and those of a part that fit into the time: fewer chains first, then shorter ones; and
    what all of them take.
    """
    path, kernel = problem.states, problem.kernel
    num_steps, num_chains = options.num_steps, options.chains
    is_fixed = num_steps is not None or not _is_name(schedule)
    if _is_name(schedule):
        steps = DEFAULT_NUM_STEPS if num_steps is None else num_steps
    else:
        steps = plan_schedule(schedule, path, kernel, num_steps=num_steps).num_steps
    width = part_width(num_chains)
    timing = time_steps(path, kernel, width, options.seed)
    whole = steps * (num_chains + _beside(problem, num_chains)) * timing.pace
    sweeps = _sweeps_within(left, timing, options)
    chains, affordable = _chains_within(num_chains, steps, sweeps, problem)
    if affordable == steps:
        return num_steps, chains, width, timing, whole
    if is_fixed:  # smaller parts, to stop between them
        return num_steps, chains, _part_chains(chains, 1.0), timing, whole
    return affordable, chains, width, timing, whole
