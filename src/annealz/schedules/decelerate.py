"""Deceleration: no step larger than a limit (Algorithm 3 of Kiwaki 2015, corrected).

The paper clips every step to the limit, divides all steps by their sum, and repeats until the sum is
1. A clipped step is divided by a sum under 1 and clipped again, so that after any number of rounds
the steps are min(c d_k, limit) with a growing c. The limit of the iteration is therefore the c with

    sum_k min(c d_k, limit) = 1

which is found exactly by sorting. The print's stop test is inverted and its loops leave out the last
step; neither is followed here.
"""

import numpy as np

from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import LEAST_STEP, from_increments


def check_max_step(max_step: float, num_steps: int) -> None:
    """Refuse a limit that no schedule of this length can keep."""
    if not max_step > 0 or num_steps * max_step < 1 - 1e-12:
        raise ValueError(
            f"max_step = {max_step:g} is infeasible with {num_steps:,} steps: the smallest feasible one "
            f"is {1 / num_steps:.6g}."
        )


def decelerate(schedule: Schedule, max_step: float) -> Schedule:
    """The schedule with its steps clipped to max_step, the others stretched in proportion.

    Examples
    --------
    >>> import annealz
    >>> fast = annealz.Schedule([0, 0.7, 0.8, 0.9, 1])
    >>> annealz.decelerate(fast, max_step=0.4).betas.round(3).tolist()
    [0.0, 0.4, 0.6, 0.8, 1.0]
    """
    check_max_step(max_step, schedule.num_steps)
    steps = np.diff(schedule.betas)
    if steps.max() <= max_step * (1 + 1e-9):
        return schedule
    steps = np.maximum(steps, LEAST_STEP)  # so that no factor overflows
    order = np.sort(steps)[::-1]
    rest = np.concatenate([np.cumsum(order[::-1])[::-1], [0.0]])  # sum of all but the j largest
    clipped = np.arange(steps.size)
    factors = (1 - clipped * max_step) / rest[:-1]  # c if the j largest are clipped
    enough = factors * order <= max_step * (1 + 1e-12)
    steps = np.minimum(factors[int(np.argmax(enough))] * steps, max_step)
    note = {**schedule.provenance, "max_step": max_step}
    return from_increments(steps, f"{schedule.name}-{max_step:g}", note, schedule.terrain)
