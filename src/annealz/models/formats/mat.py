"""MATLAB files as Salakhutdinov's code writes them: `vishid` (visible, hidden), `hidbiases`, `visbiases`.

Variables that are real numbers are read, all others are passed over. What a variable declares is checked
before its values are read or unpacked; a general reader takes a file at its word.

    version 4         five 32-bit words (kind, rows, columns, whether complex, length of the name), the
                      name, the values
    version 5 to 7    a header of 128 bytes, then elements: type and length, content. A variable is an
                      element of elements (flags, shape, name, values), and may be compressed as a whole

Files of version 7.3 are HDF5 files, in which the axes of every matrix are in the opposite order, MATLAB
being column-major (`hdf5.py`).
"""

import io
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from annealz.io.reading import Budget, Refusal, open_regular, shown
from annealz.models.abstract import AbstractModel
from annealz.models.formats.layouts import read_layout

_MAGIC = b"MATLAB 5.0 MAT-file"
_HEADER, _MATRIX, _COMPRESSED = 128, 14, 15
_COMPLEX = 0x0800
_LONGEST_NAME, _MOST_AXES, _PADDING, _PIECE = 4096, 32, 64, 2**20
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))
_OLD_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")


def is_mat(head: bytes) -> bool:
    """Whether a file that begins so is one of version 5 to 7; version 4 has no mark."""
    return head.startswith(_MAGIC)


def load_mat(
    path: Path, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """The model of a MATLAB file, and its record."""
    return read_layout(read_mat(path), path, names)


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The variables of a MATLAB file of version 4 to 7 that are arrays of real numbers."""
    with open_regular(path) as file:
        budget = Budget(path)
        order = {b"IM": "<", b"MI": ">"}.get(file.read(_HEADER)[_HEADER - 2 :])
        found = {}
        if order is None:
            file.seek(0)
            while head := file.read(20):
                _read_old(head, file, budget, found)
        else:
            while tag := file.read(8):
                _read_new(tag, order, file, budget, found)
        return found


def _read_old(head: bytes, file: BinaryIO, budget: Budget, found: dict[str, np.ndarray]) -> None:
    """The next variable of version 4."""
    order = "<" if int.from_bytes(head[:4], "little") < 5000 else ">"
    words = [int(word) for word in np.frombuffer(head.ljust(20, b"\xff"), f"{order}i4")]
    kind, rows, columns, is_complex, length = words
    precision, form = kind // 10 % 10, kind % 10
    is_known = 0 <= kind < 5000 and precision < len(_OLD_TYPES) and form < 3
    if len(head) < 20 or not is_known or min(rows, columns) < 0 or not 0 < length <= _LONGEST_NAME:
        raise _damage(budget, "it has no header of a variable")
    name = _take(file, length, budget).rstrip(b"\0").decode("latin1")
    dtype = np.dtype(order + _OLD_TYPES[precision])
    size = rows * columns * dtype.itemsize
    if form or is_complex:  # text, sparse, complex: passed over
        _seek(file, file.tell() + size * (2 if is_complex else 1), budget)
        return
    budget.take(name, (rows, columns), dtype.itemsize)
    values = np.frombuffer(_take(file, size, budget), dtype)
    found[name] = values.reshape((rows, columns), order="F")


def _read_new(
    tag: bytes, order: str, file: BinaryIO, budget: Budget, found: dict[str, np.ndarray]
) -> None:
    """The next element of version 5 to 7."""
    if len(tag) < 8:
        raise _damage(budget, "it ends within an element")
    kind, size = (int(word) for word in np.frombuffer(tag, f"{order}u4"))
    end = file.tell() + size
    if kind == _COMPRESSED:
        content = _Unpacked(file, size)
        try:
            inner, _ = (
                int(word) for word in np.frombuffer(_take(content, 8, budget), f"{order}u4")
            )
            if inner == _MATRIX and _read_matrix(content, order, budget, found):
                content.read(_PADDING)
                if not content.is_done:
                    raise _damage(budget, "a variable is longer than it declares")
        except zlib.error as error:
            raise _damage(budget, str(error)) from error
    elif kind == _MATRIX:
        _read_matrix(file, order, budget, found)
        if file.tell() > end:
            raise _damage(budget, "a variable is longer than it declares")
    _seek(file, end, budget)


def _read_matrix(
    file: "BinaryIO | _Unpacked", order: str, budget: Budget, found: dict[str, np.ndarray]
) -> bool:
    """The variable that begins here, and whether it was read to its end."""
    _, flags = _element(file, order, budget, 64)
    word = int(np.frombuffer(flags.ljust(8, b"\0")[:4], f"{order}u4")[0])
    if word & 0xFF not in _CLASSES or word & _COMPLEX:
        return False
    _, shape = _element(file, order, budget, 4 * _MOST_AXES)
    _, name = _element(file, order, budget, _LONGEST_NAME)
    lengths = tuple(int(length) for length in np.frombuffer(shape[: len(shape) & ~3], f"{order}i4"))
    wanted, count = np.dtype(_CLASSES[word & 0xFF]), math.prod(lengths)
    text = name.decode("latin1")
    if len(lengths) < 2:
        raise _damage(budget, f"{shown(text)} has no shape")
    budget.take(text, lengths, wanted.itemsize)
    kind, raw = _element(file, order, budget, count * wanted.itemsize, is_padded=False)
    stored = np.dtype(order + _TYPES.get(kind, "V1"))
    if stored.kind == "V" or len(raw) != count * stored.itemsize:
        raise _damage(
            budget, f"{shown(text)} declares shape {shown(lengths)} and holds {len(raw)} bytes"
        )
    with np.errstate(all="ignore"):
        values = np.frombuffer(raw, stored).astype(wanted, copy=False)
    if text:  # what MATLAB keeps for itself has no name
        found[text] = values.reshape(lengths, order="F")
    return True


def _element(
    file: "BinaryIO | _Unpacked", order: str, budget: Budget, longest: int, is_padded: bool = True
) -> tuple[int, bytearray]:
    """(type, content) of the element that begins here; up to four bytes lie within its tag."""
    tag = _take(file, 8, budget)
    kind, size = (int(word) for word in np.frombuffer(tag, f"{order}u4"))
    if kind >> 16:
        if kind >> 16 > 4:
            raise _damage(budget, "a short element is too long")
        return kind & 0xFFFF, tag[4 : 4 + (kind >> 16)]
    if size > longest:
        raise _damage(budget, f"an element has {size} bytes, where {longest} are the most")
    content = _take(file, size, budget)
    if is_padded:
        _take(file, -size % 8, budget)
    return kind, content


def _take(file: "BinaryIO | _Unpacked", size: int, budget: Budget) -> bytearray:
    """So many bytes, piece by piece: no more is allocated than there is."""
    content = bytearray()
    while len(content) < size and (piece := file.read(min(size - len(content), _PIECE))):
        content += piece
    if len(content) < size:
        raise _damage(budget, f"it ends {size - len(content)} bytes early")
    return content


def _seek(file: BinaryIO, place: int, budget: Budget) -> None:
    if place > file.seek(0, io.SEEK_END):
        raise _damage(budget, "it ends within a variable")
    file.seek(place)


class _Unpacked:
    """A compressed part of a file, unpacked as far as it is read."""

    def __init__(self, file: BinaryIO, size: int):
        self.file, self.left = file, size
        self.stream, self.packed = zlib.decompressobj(), b""

    @property
    def is_done(self) -> bool:
        return self.stream.eof

    def read(self, count: int) -> bytes:
        """At most so many bytes; none at the end."""
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


def _damage(budget: Budget, reason: str) -> Refusal:
    return Refusal(f"{budget.path} is truncated, damaged or not a MATLAB file: {reason}.")
