"""One process at a time in a folder: the file `.lock` in it is locked while a run writes there.

The system releases the lock when the process ends, however it ends, so that a folder can be used again at
once after a kill. The file is deleted while it is still locked; filelock refuses one that lost its name.
"""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from filelock import FileLock

__all__ = ["alone", "holding"]

_MOST_ATTEMPTS = 100  # to make a folder that others take away
_P = ParamSpec("_P")
_R = TypeVar("_R")


def alone(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the function, holding the folder that its argument `out` gives, if any."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def held(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        out: Any = signature.bind_partial(*args, **kwargs).arguments.get("out")
        with contextlib.nullcontext() if out is None else holding(out):
            return function(*args, **kwargs)

    return held


@contextlib.contextmanager
def holding(folder: str | Path) -> Iterator[None]:
    """Refuse a folder that another process writes to, and keep others out of it until the end.

    A folder that is missing is made. At the end one that is empty is deleted, unless it was there and empty
    before. Where nothing can be locked, writing reports the error.
    """
    from filelock import FileLock  # when it is needed: it takes 30 ms

    folder = Path(folder)
    lock = FileLock(folder / ".lock", blocking=False)
    was_empty = False
    with contextlib.suppress(OSError):
        was_empty = folder.is_dir() and not any(folder.iterdir())
        _acquire(lock, folder)
    try:
        yield
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                os.unlink(lock.lock_file)
            lock.release()
            if not was_empty:
                with contextlib.suppress(OSError):  # it holds files
                    folder.rmdir()


def _acquire(lock: "FileLock", folder: Path) -> None:
    """Lock the folder and write down who did."""
    from filelock import Timeout

    for _ in range(_MOST_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError, FileExistsError):  # deleted by its last user
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                raise ValueError(
                    f"{folder} is in use by another process of annealz{_holder(lock)}: wait until it ends, "
                    "or choose another folder."
                ) from None
            Path(lock.lock_file).write_text(str(os.getpid()))
            return


def _holder(lock: "FileLock") -> str:
    """Return the number of the process that holds the lock, in words."""
    with contextlib.suppress(OSError):
        number = Path(lock.lock_file).read_bytes()[:20]
        if number.isdigit():
            return f", number {number.decode()}"
    return ""
