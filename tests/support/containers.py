"""Files of named arrays in every container."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from safetensors.numpy import save_file
from scipy.io import savemat

NAMES = ("weights", "hidden_bias", "visible_bias")


def save_hdf5(path: Path, arrays: Mapping[str, Any]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


CONTAINERS: dict[str, Callable[[Path, Any], None]] = {
    "npz": lambda path, arrays: np.savez(path, **arrays),
    "mat": savemat,
    "h5": save_hdf5,
    "safetensors": lambda path, arrays: save_file(arrays, path),
}


def parts(model) -> list[np.ndarray]:
    return [np.array(getattr(model, name)) for name in NAMES]


def arrays(model, names: str, is_turned: bool = False) -> dict[str, np.ndarray]:
    """The parameters of an RBM under these three names, the weights as (visible, hidden) if turned."""
    weights, hidden, visible = parts(model)
    rows = np.ascontiguousarray(weights.T) if is_turned else weights
    return dict(zip(names.split(), (rows, hidden, visible), strict=True))
