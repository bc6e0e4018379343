"""A schedule by its name, from a file, or from betas: those that need no pilot."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annealz.core.errors import InputError
from annealz.io.schedules import SCHEDULES
from annealz.schedules.make import make_schedule
from annealz.schedules.schedule import Schedule

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
