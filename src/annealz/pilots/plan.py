"""A schedule by its name: a pilot is run where the rule needs one, then the schedule is frozen.

The rules are listed in `io/schedules.py`, each with the kind of pilot that it needs:

mixing       g and tau along the path for a twentieth of the sweeps
annealed     a survey of 1000 steps and 100 chains
knots        moments at 10 knots, 1000 chains, 6000 sweeps of which 1000 burn-in
"""

from pathlib import Path
from typing import Any

import numpy as np

from annealz.core.cost import Cost
from annealz.engine.progress import OnProgress, begin
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

MIXING_SHARE = 0.05  # of all sweeps, for the pilot of mixing

_PILOT = {"num_steps": 1000, "num_chains": 100}
_KNOTS = {"num_knots": 10, "num_chains": 1000}
_KNOTS_SHARE = 0.1  # of all sweeps, for a pilot at knots that is shrunk


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
    >>> schedule = annealz.plan_schedule(
    ...     "mixing", path, annealz.BlockGibbs(), num_steps=100, num_chains=100
    ... )
    >>> schedule.name, schedule.num_steps, schedule.provenance["pilot_sweeps"] > 0
    ('mixing', 100, True)
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
