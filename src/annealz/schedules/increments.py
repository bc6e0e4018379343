"""From steps to a schedule that is always valid."""

from typing import Any

import numpy as np

from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

LEAST_STEP = 1e-12


def from_increments(
    steps: np.ndarray, name: str, provenance: dict[str, Any], terrain: Terrain | None = None
) -> Schedule:
    """The schedule of these steps, scaled to sum to 1; a step under 1e-12 is made that large."""
    steps = np.maximum(steps / steps.sum(), LEAST_STEP)
    reached = np.cumsum(steps)
    betas = np.concatenate([[0.0], reached / reached[-1]])
    return Schedule(betas, name, provenance, terrain)
