"""MATLAB files as Salakhutdinov's code writes them: `vishid` (visible, hidden), `hidbiases`, `visbiases`.

Files up to version 7 are read by scipy. Those of version 7.3 are HDF5 files, in which the axes of every
matrix are in the opposite order, MATLAB being column-major (`hdf5.py`). Before scipy reads a file, its
compressed parts are unpacked piece by piece to learn their sizes, and only variables that are plain numbers
are asked for.
"""

import os
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from scipy.io import loadmat, whosmat

from annealz.reading.budget import Budget
from annealz.reading.regular import open_regular
from annealz.reading.words import told

__all__ = ["MAT_MAGIC", "read_mat"]

MAT_MAGIC = b"MATLAB 5.0 MAT-file"
_HEADER, _COMPRESSED = 128, 15
_PIECE = 2**16
_SIZES = {"double": 8, "single": 4, "logical": 1}
_SIZES |= {f"{sign}int{8 * size}": size for size in (1, 2, 4, 8) for sign in ("", "u")}


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The variables of a MATLAB file of version 4 to 7 that are arrays of numbers."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        unpacked = _unpacked_size(file, size, Budget(path, size))
        try:
            file.seek(0)
            declared = [one for one in whosmat(file) if one[2] in _SIZES]
        except Exception as error:  # scipy's reader raises whatever its parts raise
            raise _damage(path, error) from error
        budget = Budget(path, size)
        for name, shape, kind in declared:
            if budget.take(name, shape, _SIZES[kind]) > unpacked * _SIZES[kind]:
                raise ValueError(
                    f"{path} is truncated or damaged: it declares {name} of shape {shape} and holds "
                    f"{unpacked} bytes."
                )
        try:
            file.seek(0)
            variables = loadmat(file, variable_names=[name for name, _, _ in declared])
        except Exception as error:
            raise _damage(path, error) from error
    return {
        name: value
        for name, value in variables.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }


def _unpacked_size(file: BinaryIO, size: int, budget: Budget) -> int:
    """The bytes of a file without its compression; refused where they are too many."""
    budget.take("its variables", (size,), 1)
    if not file.read(_HEADER).startswith(MAT_MAGIC):
        return size
    file.seek(_HEADER - 2)
    order = "big" if file.read(2) == b"MI" else "little"
    while len(tag := file.read(8)) == 8:
        kind, length = (int.from_bytes(tag[i : i + 4], order) for i in (0, 4))
        end = file.tell() + length
        if kind == _COMPRESSED:
            _unpack(file, length, budget)
        if end >= size:
            break
        file.seek(end)
    return size + budget.unpacked


def _unpack(file: BinaryIO, length: int, budget: Budget) -> None:
    stream = zlib.decompressobj()
    while length > 0 and (packed := file.read(min(length, _PIECE))):
        length -= len(packed)
        while packed and not stream.eof:
            try:
                piece = stream.decompress(packed, _PIECE)
            except zlib.error as error:
                raise _damage(Path(budget.path), error) from error
            budget.unpack(len(piece))
            packed = stream.unconsumed_tail


def _damage(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is truncated, damaged or no MATLAB file: {told(error)}.")
