"""log p*(v) of many rows, a piece at a time: (rows, visible) -> (rows,), float64."""

import numpy as np

from annealz.core.arrays import on_device
from annealz.models.rbm import RBM

__all__ = ["log_densities"]

_ROWS = 4096  # at a time


def log_densities(model: RBM, rows: np.ndarray) -> np.ndarray:
    """log p*(v) of every row, hidden units summed out."""
    pieces = (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))
    return np.concatenate(
        [np.asarray(model.log_density(on_device(piece)), np.float64) for piece in pieces]
    )
