"""What every reader of a stranger's file needs: open files, free memory, JSON, sentences about damage.

A file may be a pipe that never answers, may declare more than the machine holds, and may put into its names
what a terminal obeys. Only regular files are opened; what a file declares is compared with the free memory
before it is read; what it says is made fit for one line. Nothing is unpickled or imported.
"""

import contextlib
import errno
import importlib
import json
import math
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

_SHARE = 2  # of the free memory is for one file: what is read is converted and copied
_TEXT_EXPANSION = 64  # bytes of Python's objects per byte of text
_LONGEST_NAME, _LONGEST_REASON, _MOST_NAMES = 60, 600, 20
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class Refusal(ValueError):
    """A ValueError that names the file; what packages raise is yet to be put into a sentence."""


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file to be read; a ValueError says why it cannot be."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)  # without waiting, as a pipe would
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise Refusal(f"cannot read {path}: {os.strerror(errno.EISDIR)}.")
        if not stat.S_ISREG(mode):
            kind = next((name for test, name in _KINDS if test(mode)), "something else")
            raise Refusal(f"cannot read {path}: it is {kind}, and only regular files are read.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def check_regular(path: str | Path) -> None:
    """Refuse what is not a regular file, for a package that opens it by itself."""
    open_regular(path).close()


def read_small(path: str | Path) -> bytes:
    """Read a file of text; one that is too large for a text is refused unread."""
    limit = _max_text()
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            raw = b"" if size > limit else file.read(limit + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if size > limit or len(raw) > limit:
        raise Refusal(
            f"{path} is a text of {size_text(max(size, len(raw)))}, and {size_text(limit)} are all that "
            "the free memory allows: read it on a larger machine."
        )
    return raw


def parse_json(text: bytes | str) -> Any:
    """Parse JSON of any depth and any bytes; a ValueError says what is wrong with it."""
    limit = _max_text()
    if len(text) > limit:
        raise ValueError(f"it is a text of {size_text(len(text))}, above {size_text(limit)}")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def available_memory() -> int:
    """Return the bytes that can be taken without swapping, or all of the machine where it does not say."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo") as file:
            line = next(line for line in file if line.startswith("MemAvailable:"))
        return 1024 * int(line.split()[1])
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 2**33


def check_memory(size: float, what: str, remedy: str) -> None:
    """Refuse what needs more bytes than are free.

    `what` begins the sentence, `remedy` ends it: "num_chains = 10 needs about …: take fewer chains."
    """
    free = available_memory()
    if size > free:
        raise ValueError(
            f"{what} needs about {size_text(size)} of memory, and {size_text(free)} are free: {remedy}."
        )


class Budget:
    """Memory for the arrays of the file that messages call `path`: half of what is free."""

    def __init__(self, path: str | Path):
        self.path = path
        self.limit = available_memory() // _SHARE
        self.taken = 0

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


def size_text(size: float) -> str:
    """Write a number of bytes for people."""
    if size >= 2**60:
        return "more than 2^60 bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.4g} {unit}" if size < 1024 else f"{size:,.0f} {unit}"


def shown(name: object) -> str:
    """Write a name from a file; what cannot be printed becomes an escape."""
    return _line(str(name), _LONGEST_NAME)


def listed(names: Iterable[object]) -> str:
    """Write names in order, the first twenty of them; `nothing` where there are none."""
    words = [shown(name) for name in sorted(names, key=str)]
    more = [f"{len(words) - _MOST_NAMES} more"] if len(words) > _MOST_NAMES else []
    return ", ".join(words[:_MOST_NAMES] + more) or "nothing"


def told(error: BaseException) -> str:
    """Write what an exception says, or its kind where it says nothing; without the full stop."""
    words = " ".join(str(error).split())
    return _line(words or type(error).__name__, _LONGEST_REASON).rstrip(".")


def need(package: str, what: str, extra: str) -> Any:
    """Import a package that only some users have; a ValueError says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ValueError(
            f"{what} with {package.partition('.')[0]}, which is not installed: "
            f"pip install 'annealz[{extra}]'."
        ) from error


def _max_text() -> int:
    return available_memory() // _SHARE // _TEXT_EXPANSION


def _line(text: str, longest: int) -> str:
    text = text if len(text) <= longest else f"{text[:longest]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _unreadable(path: str | Path, error: OSError) -> Refusal:
    return Refusal(f"cannot read {path}: {error.strerror or told(error)}.")
