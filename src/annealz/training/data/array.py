"""Data from a file: .npy, .npz (one array) or IDX; bytes become intensities in [0, 1].

IDX is the format of MNIST: a big-endian header, then unsigned bytes; gzipped or plain.

    00 00 08 <number of axes> | one 32-bit length an axis | the bytes
"""

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from annealz.io.archive import load_archive, load_npy
from annealz.io.reading import Budget, open_regular, shown, told

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
        arrays, _ = load_archive(path, need_checksum=False)
        if len(arrays) != 1:
            raise ValueError(f"{path} holds {len(arrays)} arrays: give a file of one.")
        (array,) = arrays.values()
    elif path.suffix == ".npy":
        array = load_npy(path)
    else:
        array = read_idx(path, item_size=_ITEM)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold real numbers, got dtype {array.dtype}.")
    Budget(path).take("its array", array.shape, _ITEM)
    return array


def read_idx(path: str | Path, *, item_size: int = 1) -> np.ndarray:
    """Return the uint8 array of an IDX file; a value counts as `item_size` bytes."""
    with open_regular(path) as file:
        budget = Budget(path)
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not is_packed:
            return _read(file, budget, item_size)
        try:
            with gzip.open(file) as unpacked:
                return _read(cast(BinaryIO, unpacked), budget, item_size)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {told(error)}.") from error


def _read(file: BinaryIO, budget: Budget, item_size: int) -> np.ndarray:
    path, head = budget.path, file.read(4)
    lengths = file.read(4 * head[3]) if len(head) == 4 else b""
    if head[:3] != b"\x00\x00\x08" or len(head) < 4 or len(lengths) < 4 * head[3]:
        raise ValueError(f"{path} is not an IDX file of unsigned bytes.")
    shape = tuple(int(n) for n in np.frombuffer(lengths, ">u4"))
    size = budget.take("its array", shape, item_size) // item_size
    raw = file.read(size + 1)
    if len(raw) != size:
        more = " or more" if len(raw) > size else ""
        raise ValueError(
            f"{path} promises shape {shown(shape)} and holds {len(raw)} bytes{more}: it is damaged."
        )
    try:
        return np.frombuffer(raw, np.uint8).reshape(shape)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {told(error)}.") from error
