"""From the time spent per beta, or from steps, to a schedule that is always valid.

m(beta) = dt/dbeta,  ∫ m dbeta = 1,     t(beta) = ∫_0^beta m,     beta(t) its inverse

Deceleration: no step larger than a limit (Algorithm 3 of Kiwaki 2015, corrected).

The paper clips every step to the limit, divides all steps by their sum, and repeats until the sum is
1. A clipped step is divided by a sum under 1 and clipped again, so that after any number of rounds
the steps are min(c d_k, limit) with a growing c. The limit of the iteration is therefore the c with

    sum_k min(c d_k, limit) = 1

which is found exactly by sorting. The print's stop test is inverted and its loops leave out the last
step; neither is followed here.
"""

from typing import Any

import numpy as np

from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

LEAST_STEP = 1e-12
_LEAST_DENSITY = 1e-4  # of the mean: no stretch of the path is crossed in no time


def even_times(num_steps: int) -> np.ndarray:
    """Return 0, 1 / num_steps, …, 1."""
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, got {num_steps}.")
    return np.linspace(0, 1, num_steps + 1)


def normalised(grid: np.ndarray, dwell: np.ndarray) -> np.ndarray:
    """Return the time density on a grid of betas, with mean 1 and nowhere below a ten-thousandth."""
    return np.maximum(dwell / np.trapezoid(dwell, grid), _LEAST_DENSITY)


def clock(grid: np.ndarray, dwell: np.ndarray) -> np.ndarray:
    """Return t at the betas of the grid, from 0 to 1."""
    time = np.concatenate([[0], np.cumsum((dwell[1:] + dwell[:-1]) / 2 * np.diff(grid))])
    return time / time[-1]


def cross(grid: np.ndarray, dwell: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return beta at these times, monotone."""
    from scipy.interpolate import PchipInterpolator  # a third of a second

    time = clock(grid, normalised(grid, dwell))
    moving = np.concatenate([[True], np.diff(time) > 0])
    return PchipInterpolator(time[moving], grid[moving])(times)


def from_increments(
    steps: np.ndarray, name: str, provenance: dict[str, Any], terrain: Terrain | None = None
) -> Schedule:
    """Return the schedule of these steps, scaled to sum to 1; a step under 1e-12 is made that large."""
    steps = np.maximum(steps / steps.sum(), LEAST_STEP)
    reached = np.cumsum(steps)
    betas = np.concatenate([[0.0], reached / reached[-1]])
    return Schedule(betas, name, provenance, terrain)


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
