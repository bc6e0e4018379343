"""One process at a time in a folder.

The file `.lock` in it is locked while a run writes there, and holds the number of its process. The system
lets go of the lock when the process ends, however it ends, so that a folder can be used again at once after
a kill. The file is deleted while it is still locked; who opened it before that holds a lock on a file that
no longer has the name, sees so, and tries again.
"""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["alone", "holding"]

_NAME = ".lock"
_P = ParamSpec("_P")
_R = TypeVar("_R")


def alone(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, where no other process is in the folder that its argument `out` gives, if any."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def held(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        out: Any = signature.bind_partial(*args, **kwargs).arguments.get("out")
        with contextlib.nullcontext() if out is None else holding(out):
            return function(*args, **kwargs)

    return held


@contextlib.contextmanager
def holding(folder: str | Path, *, parents: bool = True) -> Iterator[None]:
    """Refuse a folder that another process writes to; keep others out of it until the end.

    A folder that is not there yet is made, with `parents` those above it too. At the end it is taken away
    if nothing came into it, or all was taken out. Where none can be made or written to, nothing is held:
    the error is reported when something is written.
    """
    folder = Path(folder)
    was_empty, handle = False, None
    with contextlib.suppress(OSError):
        was_empty, handle = _enter(folder, parents)
    try:
        yield
    finally:
        if handle is not None:
            with contextlib.suppress(OSError):
                (folder / _NAME).unlink()
            os.close(handle)
            if not was_empty:
                with contextlib.suppress(OSError):  # something is in it
                    folder.rmdir()


def _enter(folder: Path, parents: bool) -> tuple[bool, int | None]:
    """Whether the folder was there and empty, and the handle of its lock."""
    while True:
        try:
            was_empty = not any(folder.iterdir())
        except FileNotFoundError:
            was_empty = False
        try:
            folder.mkdir(parents=parents, exist_ok=True)
        except FileExistsError:
            if folder.is_dir() or not os.path.lexists(folder):  # it came and went in between
                continue
            raise  # it is a file
        with contextlib.suppress(FileNotFoundError):  # another one took the folder away in between
            return was_empty, _acquire(folder / _NAME)


def _acquire(file: Path) -> int | None:
    """A locked handle, None where there are no locks; refused where another process has the lock."""
    if fcntl is None:
        return None
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{file.parent} is in use by another process of annealz{_holder(handle)}: wait until it "
                "ends, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            os.close(handle)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), file.stat()):
                with contextlib.suppress(OSError):  # the number is for people
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, str(os.getpid()).encode(), 0)
                return handle
        os.close(handle)  # it was deleted in between


def _holder(handle: int) -> str:
    """Which process wrote its number there, in words; the handle is closed."""
    number = b""
    with contextlib.suppress(OSError):
        number = os.pread(handle, 20, 0)
    os.close(handle)
    return f", number {number.decode()}" if number.isdigit() else ""
