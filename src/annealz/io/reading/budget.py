"""How much the arrays of one file may take: counted from what the file declares, before any of it is there.

A file's arrays may take 256 MiB, or 64 times its size on disk where that is more, and never above 2 GiB: a
small file cannot unpack to a large one, and sparse weights, which compress well, can. A command's option
--max-memory, in bytes or like 8GB, takes the place of all three; without it the environment variable
ANNEALZ_MAX_MEMORY does.
"""

import contextlib
import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from annealz.io.reading.refusal import Refusal
from annealz.io.reading.words import shown

__all__ = [
    "MAX_ARRAYS",
    "OPTION",
    "REMEDY",
    "VARIABLE",
    "Budget",
    "limited",
    "max_text",
    "option_again",
    "size_text",
]

MAX_ARRAYS = 2 * 2**30
OPTION, VARIABLE = "--max-memory", "ANNEALZ_MAX_MEMORY"
REMEDY = f"give {OPTION}, for example 8GB, or set {VARIABLE}"
_ALWAYS, _EXPANSION, _HEADERS = 256 * 2**20, 64, 2**24
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 2 ** (10 * power) for power, unit in enumerate("KMGT", 1)}

_option: str | None = None  # what the command that runs was given


@contextlib.contextmanager
def limited(size: str) -> Iterator[None]:
    """Until the end the limit is this, as --max-memory gives it."""
    global _option
    _size(OPTION, size)
    before, _option = _option, size
    try:
        yield
    finally:
        _option = before


def option_again() -> str:
    """The option that a command which resumes this one's work needs too, after a space; or nothing."""
    return "" if _option is None else f" {OPTION} {shlex.quote(_option)}"


def max_text() -> int:
    """The most bytes of a text: a 64th, for it takes many times its size as Python's objects."""
    return (_given() or MAX_ARRAYS) // 64


def size_text(size: float) -> str:
    """A number of bytes for people."""
    if size >= 2**60:
        return "more than 2^60 bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.4g} {unit}" if size < 1024 else f"{size:,.0f} {unit}"


class Budget:
    """What is left for the arrays of one file.

    Parameters
    ----------
    path : what messages call the file
    on_disk : its size
    is_own : whether it is of annealz's own making, uncompressed, and may be as large as it is
    """

    def __init__(self, path: str | Path, on_disk: int, *, is_own: bool = False):
        self.path = path
        given = _given()
        self.limit = given or min(MAX_ARRAYS, max(_ALWAYS, _EXPANSION * on_disk))
        if is_own:
            self.limit = max(self.limit, on_disk)
        self.taken = self.unpacked = 0

    def take(self, name: object, shape: Iterable[int], item_size: int) -> int:
        """The bytes of an array that is declared so, if they are left."""
        shape = tuple(int(length) for length in shape)
        if any(length < 0 for length in shape):
            raise Refusal(f"{self.path} is damaged: {shown(name)} has a shape of {shown(shape)}.")
        size = math.prod(shape) * max(item_size, 1)
        if self.taken + size > self.limit:
            first = "" if not self.taken else f" besides {size_text(self.taken)} of others"
            raise Refusal(
                f"{self.path} declares {shown(name)} of shape {shown(shape)}, {size_text(size)}{first}, "
                f"and the arrays of this file may take {size_text(self.limit)}: {REMEDY}, "
                "where that is right."
            )
        self.taken += size
        return size

    def unpack(self, size: int) -> None:
        """Count bytes that a compressed part unpacks to, headers and all; a little more than the arrays."""
        self.unpacked += size
        if self.unpacked > self.limit + _HEADERS:
            raise Refusal(
                f"{self.path} unpacks to more than {size_text(self.limit)}, which the arrays of this file "
                f"may take: {REMEDY}, where that is right."
            )


def _given() -> int | None:
    if _option is not None:
        return _size(OPTION, _option)
    text = os.environ.get(VARIABLE, "")
    return _size(VARIABLE, text) if text.strip() else None


def _size(name: str, text: str) -> int:
    text = text.strip()
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?I?)B?", text.upper(), re.ASCII)
    if found is None or found[2] not in _UNITS or not float(found[1]):
        raise Refusal(f"{name} must be a number of bytes, or like 8GB, got {shown(text)!r}.")
    return max(1, int(float(found[1]) * _UNITS[found[2]]))
