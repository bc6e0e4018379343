"""From steps to a schedule that is always valid."""

from typing import Any

import numpy as np

from annealz.schedules.schedule import Schedule

__all__ = ["LEAST_STEP", "from_increments"]

LEAST_STEP = 1e-12


def from_increments(steps: np.ndarray, name: str, provenance: dict[str, Any]) -> Schedule:
    """The schedule of these steps, scaled to sum to 1; a step under 1e-12 is made that large."""
    steps = np.maximum(steps / steps.sum(), LEAST_STEP)
    reached = np.cumsum(steps)
    return Schedule(np.concatenate([[0.0], reached / reached[-1]]), name, provenance)
