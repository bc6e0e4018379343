"""Data from a file: .npy, .npz (one array) or IDX; bytes become intensities in [0, 1]."""

from pathlib import Path

import numpy as np

from annealz.io.archive import load_archive, load_npy
from annealz.training.data.idx import read_idx

__all__ = ["read_array", "read_data"]

_ITEM = 4  # bytes of a value as float32


def read_data(path: str | Path) -> np.ndarray:
    """Return rows of data (rows, units), or means (units,), as float32."""
    array = read_array(path)
    scale = 255 if array.dtype == np.uint8 and array.max(initial=0) > 1 else 1
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        array = array.astype(np.float32)
        array /= scale
    return array.reshape(len(array), int(np.prod(array.shape[1:]))) if array.ndim > 2 else array


def read_array(path: str | Path) -> np.ndarray:
    """Return the numbers of a file as they are."""
    path = Path(path)
    if not path.exists() or path.is_dir():
        what = f"{path} is a folder: give a file." if path.is_dir() else f"no data file {path}."
        raise ValueError(what)
    if path.suffix == ".npz":
        arrays, _ = load_archive(path, need_checksum=False, item_size=_ITEM)
        if len(arrays) != 1:
            raise ValueError(f"{path} holds {len(arrays)} arrays: give a file of one.")
        (array,) = arrays.values()
    elif path.suffix == ".npy":
        array = load_npy(path, item_size=_ITEM)
    else:
        array = read_idx(path, item_size=_ITEM)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold real numbers, got dtype {array.dtype}.")
    return array
