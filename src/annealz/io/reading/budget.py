"""Memory for the content of one file: what it declares is compared with what is free, before it is read."""

import contextlib
import math
import os
from collections.abc import Iterable
from pathlib import Path

from annealz.io.reading.refusal import Refusal
from annealz.io.reading.words import shown

__all__ = ["Budget", "available_memory", "max_text", "size_text"]

_SHARE = 2  # of the free memory is for one file: what is read is converted and copied
_HEADERS = 2**24
_TEXT_EXPANSION = 64  # bytes of Python's objects per byte of text


def available_memory() -> int:
    """Return the bytes that can be taken without swapping, or all of the machine where it does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        return 1024 * int(line.split()[1])
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 2**33


def max_text() -> int:
    """Return the most bytes of a text that are read."""
    return available_memory() // _SHARE // _TEXT_EXPANSION


def size_text(size: float) -> str:
    """Write a number of bytes for people."""
    if size >= 2**60:
        return "more than 2^60 bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.4g} {unit}" if size < 1024 else f"{size:,.0f} {unit}"


class Budget:
    """Memory for the arrays of the file that messages call `path`."""

    def __init__(self, path: str | Path):
        self.path = path
        self.limit = available_memory() // _SHARE
        self.taken = self.unpacked = 0

    def take(self, name: object, shape: Iterable[int], item_size: int) -> int:
        """Return the bytes of an array that is declared so, if they are left."""
        shape = tuple(int(length) for length in shape)
        if any(length < 0 for length in shape):
            raise Refusal(f"{self.path} is damaged: {shown(name)} has a shape of {shown(shape)}.")
        size = math.prod(shape) * max(item_size, 1)
        if self.taken + size > self.limit:
            first = "" if not self.taken else f" besides {size_text(self.taken)} of others"
            raise Refusal(
                f"{self.path} declares {shown(name)} of shape {shown(shape)}, {size_text(size)}{first}, "
                f"and half of the free memory is {size_text(self.limit)}: read it on a larger machine."
            )
        self.taken += size
        return size

    def unpack(self, size: int) -> None:
        """Count bytes that a compressed part unpacks to, headers and all; a little more than the arrays."""
        self.unpacked += size
        if self.unpacked > self.limit + _HEADERS:
            raise Refusal(
                f"{self.path} unpacks to more than half of the free memory, {size_text(self.limit)}: read "
                "it on a larger machine."
            )
