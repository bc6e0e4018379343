"""Regular files only: a pipe may never answer, a device may never end.

A file is opened without waiting and looked at before a byte is read.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from annealz.io.reading.budget import max_text, size_text
from annealz.io.reading.refusal import Refusal
from annealz.io.reading.words import told

__all__ = ["check_regular", "open_regular", "read_small"]

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_regular(path: str | Path) -> BinaryIO:
    """The file, open to be read; a ValueError where it is missing or not a regular file."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        _check_mode(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def check_regular(path: str | Path) -> None:
    """Refuse what is not a regular file, for a package that opens it by itself."""
    open_regular(path).close()


def read_small(path: str | Path) -> bytes:
    """All of a file of text; one that is too large for a text is refused unread."""
    limit = max_text()
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            raw = b"" if size > limit else file.read(limit + 1)
    except OSError as error:
        raise _refusal(path, error) from error
    if size > limit or len(raw) > limit:
        raise Refusal(
            f"{path} is a text of {size_text(max(size, len(raw)))}, and {size_text(limit)} are all that "
            "the free memory allows: read it on a larger machine."
        )
    return raw


def _check_mode(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise Refusal(f"cannot read {path}: {os.strerror(errno.EISDIR)}.")
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "something else")
        raise Refusal(f"cannot read {path}: it is {kind}, and only regular files are read.")


def _refusal(path: str | Path, error: OSError) -> Refusal:
    return Refusal(f"cannot read {path}: {error.strerror or told(error)}.")
