"""From the time spent per beta, or from steps, to a schedule that is always valid.

m(beta) = dt/dbeta,  ∫ m dbeta = 1,     t(beta) = ∫_0^beta m,     beta(t) its inverse
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
