"""The size of a run: its schedule, its chains and its parts, for the request, the time and the error.

a wanted error   survey and sizing runs predict steps and chains (`pilots/sizing.py`)
a time limit     fewer chains first, then shorter ones, in parts so that it can stop between them; parts
                 are as wide as pilots where that is possible, because one program then serves both
neither          as asked; of a density whose steps are not given, what the survey predicts
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from annealz.core.cost import Cost
from annealz.engine.blocks import check_memory
from annealz.engine.context import Context
from annealz.io.schedules import ScheduleRule
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.problem import Problem
from annealz.pilots.base_search import PILOT_CHAINS, second_chains
from annealz.pilots.plan import MIXING_SHARE, named_rule, pilot_cost, plan_schedule
from annealz.pilots.sizing import Timing, forecast, time_steps
from annealz.pilots.survey_mixing import survey_mixing
from annealz.schedules.choose import DEFAULT_NUM_STEPS, make_schedule
from annealz.schedules.schedule import Schedule

_MIN_CHAINS = 250  # that a time limit leaves, before it shortens the chains
_NUM_PARTS = 4  # of a run whose time is limited
_MIN_PART = 25  # chains: fewer cannot be diagnosed
TIME_RESERVE = 0.8
RUN_SHARE = 0.25  # of a time limit that the run gets, however long pilots and compilation took
_SHORT_SURVEY = 4_000  # sweeps
_TARGET_VARIANCE = 0.05  # of log w, that a density's steps aim at by default
_MIN_STEPS = 50
_ENUMERATED_STEPS = 1000  # of a model whose states can be listed, at least


@dataclasses.dataclass(frozen=True)
class RunSize:
    """Schedule, chains and parts of a run, and the cost of choosing them."""

    schedule: Schedule
    num_chains: int
    part_chains: int | None = None
    cost: Cost = Cost()
    whole_seconds: float | None = None
    """What the run should take without its time limit."""
    wanted_steps: int | None = None
    """Of the run without its time limit, where the survey chose them."""


def choose_size(
    problem: Problem,
    request: AnnealingRequest,
    num_chains: int,
    spent: float,
    context: Context,
) -> RunSize:
    """Return the size of a run, for a problem whose choice took `spent` seconds of the time allowed.

    `num_chains` are those that are asked for, or the model's default.
    """
    schedule = request.schedule
    if request.target_std_err is not None:
        return _for_error(problem, request, spent, context)
    num_steps, left = request.num_steps, _seconds_left(request, spent)
    if num_steps is None and _is_sized(problem, schedule):
        rule = named_rule(schedule)
        size = _by_survey(problem, rule, request, num_chains, context)
        left = _seconds_left(request, spent + size.cost.seconds)
        return size if left is None else _within(problem, rule, request, size, left)
    part_chains, timing, whole = None, Timing(0.0), None
    if left is not None:
        num_steps, num_chains, part_chains, timing, whole = _fit(problem, request, num_chains, left)
    made = plan_schedule(
        schedule,
        problem.states,
        problem.kernel,
        num_steps=num_steps,
        num_chains=num_chains,
        seed=request.seed,
        on_progress=context.on_progress,
    )
    cost = timing.cost
    if _is_name(schedule):  # the pilot of a name is charged
        cost += pilot_cost(made, problem.kernel)
    return RunSize(made, num_chains, part_chains, cost, whole)


def _is_sized(problem: Problem, schedule: Any) -> bool:
    """Whether the survey decides how many steps there are by default: where evaluations are counted."""
    return (
        (problem.kernel.evaluations is not None or problem.is_enumerated)
        and _is_name(schedule)
        and named_rule(schedule).predicts_variance
    )


def _by_survey(
    problem: Problem,
    rule: ScheduleRule,
    request: AnnealingRequest,
    num_chains: int,
    context: Context,
) -> RunSize:
    """Return as many steps as bring Var[log w] to a twentieth; a longer survey for a longer run."""
    began, budget, cost = time.monotonic(), _SHORT_SURVEY, Cost()
    context.begin("pilot")
    while True:
        terrain = survey_mixing(
            problem.states,
            problem.kernel,
            budget=budget,
            seed=request.seed,
            on_progress=context.on_progress,
        )
        cost += terrain.pilot_cost(problem.kernel)
        action = make_schedule(rule, 1, terrain).provenance["predicted_variance"]
        least = _ENUMERATED_STEPS if problem.is_enumerated else _MIN_STEPS
        steps = int(np.clip(np.ceil(action / _TARGET_VARIANCE), least, DEFAULT_NUM_STEPS))
        wanted = int(MIXING_SHARE * steps * num_chains)
        is_enough = problem.is_enumerated and steps == least
        if is_enough or wanted <= 2 * budget or budget > _SHORT_SURVEY:
            break
        budget = wanted
    context.begin("schedule")
    schedule = make_schedule(rule, steps, terrain)
    cost = dataclasses.replace(cost, seconds=time.monotonic() - began)
    return RunSize(schedule, num_chains, None, cost)


def _within(
    problem: Problem, rule: ScheduleRule, request: AnnealingRequest, size: RunSize, left: float
) -> RunSize:
    """Return the size that fits into the time left: fewer chains first, then shorter ones."""
    width = part_width(size.num_chains)
    timing = time_steps(problem.states, problem.kernel, width, request.seed)
    schedule, steps = size.schedule, size.schedule.num_steps
    sweeps = _sweeps_within(left, timing, request)
    chains, affordable = _chains_within(size.num_chains, steps, sweeps, problem)
    if steps > affordable:
        assert schedule.terrain is not None
        schedule = make_schedule(rule, affordable, schedule.terrain)
    whole = steps * (size.num_chains + _second_cost(problem, size.num_chains)) * timing.pace
    return RunSize(schedule, chains, width, size.cost + timing.cost, whole, steps)


def _sweeps_within(left: float, timing: Timing, request: AnnealingRequest) -> float:
    """Return how many fit into what is left after they were timed."""
    assert request.max_seconds is not None
    seconds = max(left - timing.cost.seconds, RUN_SHARE * request.max_seconds)
    return TIME_RESERVE * seconds / timing.pace


def _for_error(
    problem: Problem,
    request: AnnealingRequest,
    spent: float,
    context: Context,
) -> RunSize:
    """Return the size that should reach the wanted error."""
    assert request.target_std_err is not None
    ahead = forecast(
        problem.states,
        problem.kernel,
        request.schedule,
        request.target_std_err,
        num_steps=request.num_steps,
        max_seconds=_seconds_left(request, spent),
        seed=request.seed,
        on_progress=context.on_progress,
    )
    check_memory(problem.states, ahead.num_chains, "num_chains")
    if context.on_forecast is not None:
        context.on_forecast(ahead._replace(spent=spent + ahead.cost.seconds))
    part_chains = None
    if request.max_seconds is not None:
        spare = max(request.max_seconds - (spent + ahead.cost.seconds), 0.0)
        part_chains = _part_chains(ahead.num_chains, spare / max(ahead.seconds, 1e-9))
    return RunSize(ahead.schedule, ahead.num_chains, part_chains, ahead.cost, ahead.seconds)


def _seconds_left(request: AnnealingRequest, spent: float) -> float | None:
    """Return the seconds for the runs, of what is allowed."""
    if request.max_seconds is None:
        return None
    return max(request.max_seconds - spent, RUN_SHARE * request.max_seconds)


def _is_name(schedule: Any) -> bool:
    return isinstance(schedule, str) and not Path(schedule).is_file()


def _part_chains(num_chains: int, affordable: float) -> int:
    """Chains per part of a run whose time is `affordable` times what it should take."""
    chains = int(np.ceil(num_chains * min(1.0, affordable) / _NUM_PARTS))
    return min(max(chains, _MIN_PART), num_chains)


def part_width(num_chains: int) -> int:
    """Chains per part of a run whose time is limited, and of what is timed for it."""
    if num_chains > PILOT_CHAINS and num_chains % PILOT_CHAINS == 0:
        return PILOT_CHAINS
    return _part_chains(num_chains, 1.0)


def num_opinion_chains(num_chains: int, part_chains: int | None, is_resampled: bool = False) -> int:
    """Chains of a second opinion; in limited time as many as a part has, whose program serves them."""
    count = second_chains(num_chains, is_resampled)
    return count if part_chains is None else max(count, min(part_chains, num_chains))


def _second_cost(problem: Problem, num_chains: int) -> float:
    """Chains of the second opinion, and of the way back from where they ended."""
    if problem.second is None:
        return 0.0
    return 1.5 * num_opinion_chains(num_chains, part_width(num_chains))


def _chains_within(num_chains: int, steps: int, sweeps: float, problem: Problem) -> tuple[int, int]:
    """Chains in whole parts, fewer where time is short, and the steps that are left to them."""
    width, second = part_width(num_chains), _second_cost(problem, num_chains)
    if steps * (num_chains + second) <= sweeps:
        return num_chains, steps
    wanted = max(sweeps / steps - second, min(num_chains, _MIN_CHAINS))
    chains = min(max(int(wanted / width), 1) * width, num_chains)
    return chains, max(1, min(steps, int(sweeps / (chains + second))))


def _fit(
    problem: Problem, request: AnnealingRequest, num_chains: int, left: float
) -> tuple[int | None, int, int, Timing, float]:
    """Return the steps, chains and chains of a part that fit into the time, and what all of them take."""
    path, kernel, schedule = problem.states, problem.kernel, request.schedule
    num_steps = request.num_steps
    is_fixed = num_steps is not None or not _is_name(schedule)
    if _is_name(schedule):
        steps = DEFAULT_NUM_STEPS if num_steps is None else num_steps
    else:
        steps = plan_schedule(schedule, path, kernel, num_steps=num_steps).num_steps
    width = part_width(num_chains)
    timing = time_steps(path, kernel, width, request.seed)
    whole = steps * (num_chains + _second_cost(problem, num_chains)) * timing.pace
    sweeps = _sweeps_within(left, timing, request)
    chains, affordable = _chains_within(num_chains, steps, sweeps, problem)
    if affordable == steps:
        return num_steps, chains, width, timing, whole
    if is_fixed:  # smaller parts, to stop between them
        return num_steps, chains, _part_chains(chains, 1.0), timing, whole
    return affordable, chains, width, timing, whole
