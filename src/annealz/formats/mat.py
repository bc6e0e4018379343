"""MATLAB files as Salakhutdinov's code writes them: `vishid` (visible, hidden), `hidbiases`, `visbiases`.

Files up to version 7 are read by scipy. Those of version 7.3 are HDF5 files, in which the axes of every
matrix are in the opposite order, MATLAB being column-major (`hdf5.py`).
"""

from pathlib import Path

import numpy as np
from scipy.io import loadmat

__all__ = ["MAT_MAGIC", "read_mat"]

MAT_MAGIC = b"MATLAB 5.0 MAT-file"


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The variables of a MATLAB file of version 4 to 7 that are arrays of numbers."""
    try:
        variables = loadmat(path)
    except Exception as error:  # scipy's reader raises whatever its parts raise
        raise ValueError(f"{path} is truncated, damaged or no MATLAB file: {error}.") from error
    return {
        name: value
        for name, value in variables.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }
