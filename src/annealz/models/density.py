"""log p*(v) of many rows, a piece at a time: (rows, visible) -> (rows,), float64.

It is the model's own `log_density`, or where its path to the visible units ends.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from annealz.core.arrays import on_device
from annealz.models.abstract import AbstractModel

_ROWS = 4096  # at a time


def log_densities(model: AbstractModel, rows: np.ndarray) -> np.ndarray:
    """Return log p*(v) of every row, all that is not visible summed out."""
    density = check_density(model)
    pieces = (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))
    return np.concatenate([np.asarray(density(on_device(piece)), np.float64) for piece in pieces])


def check_density(model: AbstractModel) -> Callable[[Any], Any]:
    """Return log p*(v) as a function; a ValueError where the model has none in closed form."""
    if type(model).log_density is not AbstractModel.log_density:
        return model.log_density
    if "visible" not in model.marginals or model.sums_out_own:
        raise ValueError(
            f"log p* of the visible units of {model.name} is not known in closed form, so that the "
            "likelihood of data cannot be computed: it can of RBMs, Ising and Potts models and densities."
        )
    path = model.path(model.flat_base() or model.base(), "visible")
    return lambda x: end_of_path(path, x)


@eqx.filter_jit
def end_of_path(path, x):
    return path.log_target(x)
