"""What one run of a nested sampler left: every point with its likelihood at birth and at death."""

import dataclasses
import enum

import numpy as np

__all__ = ["Ending", "NestedRun"]


class Ending(enum.Enum):
    """Why a run ended."""

    DONE = "done"
    """What is left can hold no more than the tolerance."""
    PLATEAU = "plateau"
    """All live points have the same likelihood: what is left is known."""
    OUT_OF_EVALUATIONS = "out of evaluations"
    UNRESOLVED = "unresolved"
    """The likelihood still rises where float32 cannot resolve positions."""


@dataclasses.dataclass(frozen=True)
class NestedRun:
    """Dead points in the order of their deaths, then the live points that were left."""

    x: np.ndarray
    """(points, dim) positions, float32."""
    deaths: np.ndarray
    """(points,) log L of each, float64."""
    births: np.ndarray
    """(points,) the contour above which each was drawn; NaN of draws from the prior."""
    num_live: int
    ending: Ending
    top: float
    """The highest log L that was found uphill from live points; -inf if none was looked for."""
    share_left: float
    """What the live points held at the end, as a share of the evidence."""
    evaluations: int
    """Of the density, as they were made."""
    num_slices: int
    num_failed: int
    """Slices that found no point."""
    num_nan: int
    """Evaluations that gave NaN, counted as a likelihood of zero."""
    seconds: float
