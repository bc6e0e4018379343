"""MATLAB files as Salakhutdinov's code writes them: `vishid` (visible, hidden), `hidbiases`, `visbiases`.

Variables that are real numbers are read, all others are passed over. What a variable declares is checked
before its values are read or unpacked; a general reader takes a file at its word, and SciPy's ends the
process where the values are of a type that there is not.

    version 4         five 32-bit words (kind, rows, columns, whether complex, length of the name), the
                      name, the values
    version 5 to 7    a header of 128 bytes, then elements: type and length, content. A variable is an
                      element of elements (flags, shape, name, values), and may be compressed as a whole

Files of version 7.3 are HDF5 files, in which the axes of every matrix are in the opposite order, MATLAB
being column-major (`hdf5.py`).
"""

import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from annealz.io.reading import Budget, Refusal, open_regular, shown
from annealz.models.abstract import AbstractModel
from annealz.models.formats.layouts import read_layout

_MAGIC = b"MATLAB 5.0 MAT-file"
_HEADER, _MATRIX, _COMPRESSED = 128, 14, 15
_COMPLEX = 0x0800
_LONGEST_NAME, _MOST_AXES, _PADDING, _PIECE = 4096, 32, 64, 2**20
_TYPES = dict(enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "f4"), 1))
_TYPES |= {9: "f8", 12: "i8", 13: "u8"}
_CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))
_OLD_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")


class _Stream(Protocol):
    def read(self, count: int, /) -> bytes: ...


def is_mat(head: bytes) -> bool:
    """Check whether a file that begins so is one of version 5 to 7; version 4 has no mark."""
    return head.startswith(_MAGIC)


def load_mat(
    path: Path, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """Return the model of a MATLAB file of version 4 to 7, and its record."""
    with open_regular(path) as file:
        order = {b"IM": "<", b"MI": ">"}.get(file.read(_HEADER)[_HEADER - 2 :])
        reader = _Reader(path, file, order or "<")
        if order is None:
            file.seek(0)
            while head := file.read(20):
                reader.read_old(head)
        else:
            while tag := file.read(8):
                reader.read_new(tag)
    return read_layout(reader.arrays, path, names)


class _Reader:
    """The arrays of real numbers in a file, as far as it is read, and what is left of the memory."""

    def __init__(self, path: Path, file: BinaryIO, order: str):
        self.file, self.order, self.budget = file, order, Budget(path)
        self.size = os.fstat(file.fileno()).st_size
        self.arrays: dict[str, np.ndarray] = {}

    def read_old(self, head: bytes) -> None:
        """Read the next variable of version 4."""
        self.order = "<" if int.from_bytes(head[:4], "little") < 5000 else ">"
        kind, rows, columns, is_complex, length = self._words(head.ljust(20, b"\xff"), "i4")
        precision, form = kind // 10 % 10, kind % 10
        is_known = 0 <= kind < 5000 and precision < len(_OLD_TYPES) and form < 3
        if not (is_known and min(rows, columns) >= 0 and 0 < length <= _LONGEST_NAME):
            raise self._damage("it has no header of a variable")
        name = self._take(self.file, length).rstrip(b"\0").decode("latin1")
        dtype = np.dtype(self.order + _OLD_TYPES[precision])
        size = rows * columns * dtype.itemsize
        if form or is_complex:  # text, sparse, complex: passed over
            self._seek(self.file.tell() + size * (2 if is_complex else 1))
            return
        self.budget.take(name, (rows, columns), dtype.itemsize)
        values = np.frombuffer(self._take(self.file, size), dtype)
        self.arrays[name] = values.reshape((rows, columns), order="F")

    def read_new(self, tag: bytes) -> None:
        """Read the next element of version 5 to 7."""
        if len(tag) < 8:
            raise self._damage("it ends within an element")
        kind, size = self._words(tag)
        end, is_too_long = self.file.tell() + size, False
        if kind == _COMPRESSED:
            content = _Unpacked(self.file, size)
            try:
                inner, _ = self._words(self._take(content, 8))
                if inner == _MATRIX and self._read_matrix(content):
                    content.read(_PADDING)
                    is_too_long = not content.stream.eof
            except zlib.error as error:
                raise self._damage(str(error)) from error
        elif kind == _MATRIX:
            self._read_matrix(self.file)
            is_too_long = self.file.tell() > end
        if is_too_long:
            raise self._damage("a variable is longer than it declares")
        self._seek(end)

    def _read_matrix(self, stream: _Stream) -> bool:
        """Read the variable that begins here; return whether it is one of real numbers."""
        _, flags = self._element(stream, 64)
        [word] = self._words(flags.ljust(4, b"\0")[:4])
        if word & 0xFF not in _CLASSES or word & _COMPLEX:
            return False
        _, shape = self._element(stream, 4 * _MOST_AXES)
        _, raw_name = self._element(stream, _LONGEST_NAME)
        name, lengths = raw_name.decode("latin1"), self._words(shape[: len(shape) & ~3], "i4")
        wanted, count = np.dtype(_CLASSES[word & 0xFF]), math.prod(lengths)
        if len(lengths) < 2:
            raise self._damage(f"{shown(name)} has no shape")
        self.budget.take(name, lengths, wanted.itemsize)
        kind, raw = self._element(stream, count * wanted.itemsize, is_padded=False)
        stored = np.dtype(self.order + _TYPES.get(kind, "V1"))
        if stored.kind == "V" or len(raw) != count * stored.itemsize:
            held = f"declares shape {shown(tuple(lengths))} and holds {len(raw)} bytes"
            raise self._damage(f"{shown(name)} {held}")
        with np.errstate(all="ignore"):
            values = np.frombuffer(raw, stored).astype(wanted, copy=False)
        if name:  # what MATLAB keeps for itself has no name
            self.arrays[name] = values.reshape(lengths, order="F")
        return True

    def _element(
        self, stream: _Stream, longest: int, is_padded: bool = True
    ) -> tuple[int, bytearray]:
        """Return (type, content) of the element that begins here; four bytes may lie within its tag."""
        tag = self._take(stream, 8)
        kind, size = self._words(tag)
        if kind >> 16:
            if kind >> 16 > 4:
                raise self._damage("a short element is too long")
            return kind & 0xFFFF, tag[4 : 4 + (kind >> 16)]
        if size > longest:
            raise self._damage(f"an element has {size} bytes, where {longest} are the most")
        content = self._take(stream, size)
        if is_padded:
            self._take(stream, -size % 8)
        return kind, content

    def _words(self, raw: bytes | bytearray, kind: str = "u4") -> list[int]:
        return np.frombuffer(raw, self.order + kind).tolist()

    def _take(self, stream: _Stream, size: int) -> bytearray:
        """Return so many bytes, read piece by piece: no more is allocated than there is."""
        content = bytearray()
        while len(content) < size and (piece := stream.read(min(size - len(content), _PIECE))):
            content += piece
        if len(content) < size:
            raise self._damage(f"it ends {size - len(content)} bytes early")
        return content

    def _seek(self, place: int) -> None:
        if place > self.size:
            raise self._damage("it ends within a variable")
        self.file.seek(place)

    def _damage(self, reason: str) -> Refusal:
        return Refusal(f"{self.budget.path} is truncated, damaged or not a MATLAB file: {reason}.")


class _Unpacked:
    """A compressed part of a file, unpacked as far as it is read."""

    def __init__(self, file: BinaryIO, size: int):
        self.file, self.left = file, size
        self.stream, self.packed = zlib.decompressobj(), b""

    def read(self, count: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        while not self.stream.eof:
            if not self.packed:
                self.packed = self.file.read(min(self.left, _PIECE))
                self.left -= len(self.packed)
            piece = self.stream.decompress(self.packed, count)
            is_stuck = not self.packed and not piece
            self.packed = self.stream.unconsumed_tail
            if piece or is_stuck:
                return piece
        return b""
