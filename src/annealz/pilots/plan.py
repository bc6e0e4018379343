"""A schedule by its name: a pilot is run where the rule needs one, then the schedule is frozen.

The rules are listed in `io/registry/schedules.py`, each with the kind of pilot that it needs:

mixing       g and tau along the path for a twentieth of the sweeps
annealed     a survey of 1000 steps and 100 chains
knots        moments at 10 knots, 1000 chains, 6000 sweeps of which 1000 burn-in
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from annealz.core.cost import Cost
from annealz.engine.progress import Progress, begin
from annealz.io.schedules import SCHEDULES, ScheduleRule
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.survey import survey, survey_knots
from annealz.pilots.survey_mixing import LEAST_BUDGET, survey_mixing
from annealz.schedules.choose import (
    DEFAULT_NUM_STEPS,
    check_num_steps,
    choose_schedule,
    make_schedule,
)
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

MIXING_SHARE = 0.05  # of all sweeps, for the pilot of mixing

_PILOT = {"num_steps": 1000, "num_chains": 100}
_KNOTS = {"num_knots": 10, "num_chains": 1000}
_KNOTS_SHARE = 0.1  # of all sweeps, for a pilot at knots that is shrunk


def pilot_sweeps(name: str, total: int, pilot_scale: float = 1.0) -> int:
    """What the pilot of a named schedule may cost, where pilot and run take `total` sweeps."""
    return _sweeps(named_rule(name).pilot, total, pilot_scale)


def pilot_scale_within(name: str, total: int) -> float:
    """The scale at which a pilot at knots takes a tenth of `total` sweeps; at most 1, as of all others."""
    if named_rule(name).pilot != "knots":
        return 1.0
    return min(1.0, _KNOTS_SHARE * total / pilot_sweeps(name, total))


def _sweeps(pilot: str, total: int, pilot_scale: float) -> int:
    if pilot == "mixing":
        return max(LEAST_BUDGET, int(MIXING_SHARE * total))
    if pilot == "knots":
        return _KNOTS["num_knots"] * _KNOTS["num_chains"] * _num_updates(pilot_scale)
    return _PILOT["num_steps"] * _PILOT["num_chains"] if pilot == "annealed" else 0


def plan_schedule(
    schedule: str | Path | Schedule | np.ndarray,
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_steps: int | None = None,
    num_chains: int = 1000,
    seed: int = 0,
    pilot_scale: float = 1.0,
    on_progress: Callable[[Progress], None] | None = None,
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
    >>> schedule = annealz.plan_schedule(
    ...     "mixing", path, annealz.BlockGibbs(), num_steps=100, num_chains=100
    ... )
    >>> schedule.name, schedule.num_steps, schedule.provenance["pilot_sweeps"] > 0
    ('mixing', 100, True)
    """
    rule = _piloted(schedule)
    if rule is None:
        return choose_schedule(schedule, num_steps, SCHEDULES.names())
    num_steps = check_schedule(schedule, num_steps)
    begin(on_progress, "pilot")
    total = _total(num_steps, num_chains)
    terrain = _surveyed(rule.pilot, path, kernel, total, seed, pilot_scale, on_progress)
    begin(on_progress, "schedule")
    return make_schedule(rule, num_steps, terrain)


def pilot_cost(schedule: Schedule, kernel: AbstractKernel) -> Cost:
    """Return the cost of the pilot that a schedule was planned by."""
    names = ("pilot_sweeps", "starts", "pilot_seconds")
    return kernel.cost(*(schedule.provenance.get(name, 0) for name in names))


def _total(num_steps: int, num_chains: int) -> int:
    """Sweeps of a run and of its survey of mixing."""
    return int(num_steps * num_chains / (1 - MIXING_SHARE))


def _surveyed(
    pilot: str,
    path: AbstractPath,
    kernel: AbstractKernel,
    total: int,
    seed: int,
    pilot_scale: float,
    on_progress: Callable[[Progress], None] | None,
) -> Terrain:
    """What a pilot of this kind sees of the path."""
    if pilot == "mixing":
        budget = _sweeps(pilot, total, pilot_scale)
        return survey_mixing(path, kernel, budget=budget, seed=seed, on_progress=on_progress)
    if pilot == "annealed":
        return survey(path, kernel, **_PILOT, seed=seed, on_progress=on_progress)
    updates = _num_updates(pilot_scale)
    return survey_knots(
        path,
        kernel,
        **_KNOTS,
        num_updates=updates,
        num_burn_in=updates // 6,
        seed=seed,
        on_progress=on_progress,
    )


def _num_updates(pilot_scale: float) -> int:
    return max(12, round(6000 * pilot_scale))


def check_schedule(
    schedule: str | Path | Schedule | np.ndarray, num_steps: int | None = None
) -> int:
    """The steps that this schedule will have; refuses, before any pilot, what is none."""
    rule = _piloted(schedule)
    if rule is None:
        return choose_schedule(schedule, num_steps, SCHEDULES.names()).num_steps
    num_steps = check_num_steps(DEFAULT_NUM_STEPS if num_steps is None else num_steps)
    rule.check_steps(num_steps)
    return num_steps


def _piloted(schedule: object) -> ScheduleRule | None:
    """The rule that is named, if it needs a pilot."""
    if not isinstance(schedule, str) or Path(schedule).is_file():
        return None
    rule = SCHEDULES.find(schedule)
    return rule if rule is not None and rule.needs_pilot else None


def named_rule(name: str) -> ScheduleRule:
    """The rule of a name; a ValueError lists all names where there is none."""
    rule = SCHEDULES.find(name)
    if rule is None:
        raise ValueError(
            f"unknown schedule {name!r}: choose one of {', '.join(SCHEDULES.names())}."
        )
    return rule
