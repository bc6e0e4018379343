"""A schedule of a registered rule, from a file, or from betas.

What a rule of another package makes is checked and signed.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annealz.core.errors import InputError
from annealz.io.registry import call
from annealz.io.schedules import SCHEDULES, ScheduleRule
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

DEFAULT_NUM_STEPS = 10_000
MAX_NUM_STEPS = 10_000_000


def check_num_steps(num_steps: int) -> int:
    """Return the number, if a schedule can have that many steps."""
    if not 1 <= num_steps <= MAX_NUM_STEPS:
        wanted = f"must be from 1 to {MAX_NUM_STEPS:,} (float32 cannot distinguish more)"
        raise InputError("num_steps", wanted, num_steps)
    return num_steps


def choose_schedule(
    schedule, num_steps: int | None = None, names: Sequence[str] | None = None
) -> Schedule:
    """The schedule meant by a name, a file, an array of betas or a Schedule.

    `names` are the names to list when this one is unknown; by default those without a pilot.
    """
    if num_steps is not None:
        check_num_steps(num_steps)
    rule = SCHEDULES.find(schedule) if isinstance(schedule, str) else None
    if rule is not None and not rule.needs_pilot:
        return make_schedule(rule, num_steps or DEFAULT_NUM_STEPS)
    if isinstance(schedule, Schedule):
        chosen = schedule
    elif isinstance(schedule, str | Path):
        if not Path(schedule).is_file():
            if names is None:
                names = [one.name for one in SCHEDULES.usable() if not one.needs_pilot]
            raise ValueError(
                f"unknown schedule {str(schedule)!r}: choose one of {', '.join(names)}, or give "
                "a file of betas."
            )
        chosen = Schedule.load(schedule)
    else:
        chosen = Schedule(np.asarray(schedule))
    if num_steps not in (None, chosen.num_steps):
        raise InputError(
            "num_steps",
            f"is {num_steps}, but the given schedule has {chosen.num_steps} steps",
            remedy="leave {num_steps} out",
        )
    return chosen


def make_schedule(rule: ScheduleRule, num_steps: int, terrain: Terrain | None = None) -> Schedule:
    """The schedule of a rule, from what its pilot saw where it needs one."""
    given = (terrain, num_steps) if rule.needs_pilot else (num_steps,)
    made = call(rule.owner, rule.rule, *given, **rule.options)
    return _signed(made, rule, num_steps, terrain) if rule.package else made


def _signed(made: object, rule: ScheduleRule, num_steps: int, terrain: Terrain | None) -> Schedule:
    """The same with what a report needs later, when the package may not be there."""
    if not isinstance(made, Schedule):
        raise ValueError(
            f"{rule.owner} must give an annealz.Schedule, got a {type(made).__name__}."
        )
    if made.num_steps != num_steps:
        raise ValueError(f"{rule.owner} must give {num_steps:,} steps, got {made.num_steps:,}.")
    provenance = dict(made.provenance)
    if terrain is not None:
        provenance = {**terrain.provenance, **provenance, **terrain.spent}
    provenance |= {"description": rule.description, "package": rule.package}
    try:
        json.dumps(provenance, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{rule.owner} must have a provenance of JSON values: {error}.") from error
    seen = terrain if made.terrain is None else made.terrain
    return dataclasses.replace(made, name=rule.name, provenance=provenance, terrain=seen)
