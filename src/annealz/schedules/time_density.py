"""From the time spent per beta to the schedule.

m(beta) = dt/dbeta,  ∫ m dbeta = 1,     t(beta) = ∫_0^beta m,     beta(t) its inverse
"""

import numpy as np

_LEAST_DWELL = 1e-4  # of the mean: no stretch of the path is crossed in no time


def normalised(grid: np.ndarray, dwell: np.ndarray) -> np.ndarray:
    """The time density on a grid of betas, with mean 1 and nowhere below a ten-thousandth."""
    return np.maximum(dwell / np.trapezoid(dwell, grid), _LEAST_DWELL)


def clock(grid: np.ndarray, dwell: np.ndarray) -> np.ndarray:
    """t at the betas of the grid, from 0 to 1."""
    time = np.concatenate([[0], np.cumsum((dwell[1:] + dwell[:-1]) / 2 * np.diff(grid))])
    return time / time[-1]


def cross(grid: np.ndarray, dwell: np.ndarray, times: np.ndarray) -> np.ndarray:
    """beta at these times, monotone."""
    from scipy.interpolate import PchipInterpolator  # a third of a second

    time = clock(grid, normalised(grid, dwell))
    moving = np.concatenate([[True], np.diff(time) > 0])
    return PchipInterpolator(time[moving], grid[moving])(times)
