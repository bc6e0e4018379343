"""Arrays in NumPy's npy format: the header first, then as many bytes as it declares, and never a pickle."""

import io
import os
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from annealz.io.reading.budget import Budget
from annealz.io.reading.refusal import Refusal
from annealz.io.reading.regular import open_regular
from annealz.io.reading.words import shown, told

__all__ = ["load_npy", "read_npy"]

_PIECE, _LONGEST_HEADER = 2**20, 2**16


def read_npy(
    file: BinaryIO, size: int, name: str, budget: Budget, item_size: int = 1
) -> np.ndarray:
    """The array of an open file of `size` bytes, which must hold it and nothing else.

    A value counts as `item_size` bytes at least.
    """
    where = f"{budget.path} is truncated or damaged: {shown(name)}"
    shape, is_fortran, dtype, start = _header(file, where)
    if dtype.hasobject:
        raise Refusal(
            f"{budget.path} holds pickled objects, which are never loaded: save plain arrays with np.savez."
        )
    budget.take(name, shape, max(dtype.itemsize, item_size))
    count = 1
    for length in shape:
        count *= length
    declared = count * dtype.itemsize
    if start + declared != size:
        raise Refusal(f"{where} declares {shown(declared)} bytes and holds {max(size - start, 0)}.")
    raw = bytearray(declared)
    done = 0
    while done < declared:
        piece = file.read(min(_PIECE, declared - done))
        if not piece:
            raise Refusal(f"{where} ends after {done} bytes of {declared}.")
        raw[done : done + len(piece)] = piece
        done += len(piece)
    try:
        array = np.frombuffer(raw, dtype, count) if declared else np.empty(count, dtype)
        return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise Refusal(f"{where} cannot be read: {told(error)}.") from error


def load_npy(path: str | Path, name: str = "its array", item_size: int = 1) -> np.ndarray:
    """The array of an npy file."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return read_npy(file, size, name, Budget(path), item_size)


def _header(file: BinaryIO, where: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """(shape, whether columns come first, dtype, where the values start)."""
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"its format is of version {version}")
        width, kind = (2, "<H") if version == (1, 0) else (4, "<I")
        length = file.read(width)
        (count,) = struct.unpack(kind, length)
        text = io.BytesIO(length + file.read(min(count, _LONGEST_HEADER)))
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(text)
    except ValueError as error:
        raise Refusal(f"{where} cannot be read: {told(error)}.") from error
    except Exception as error:  # the parser of Python's own syntax raises whatever its parts raise
        raise Refusal(f"{where} has a header that cannot be read.") from error
    return shape, is_fortran, dtype, npy.MAGIC_LEN + width + count
