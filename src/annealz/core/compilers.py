"""Programs that are compiled in threads before they are due.

XLA compiles, and reads what is kept, without the lock of the interpreter, and what is compiled is found in
JAX's own memory of programs. Nothing of a result is decided here: where a program is not the one that is
called after all, or cannot be made, the call makes its own. What a process asked for once is not asked for
again.
"""

import contextlib
import os
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

from annealz.core.devices import platform, preferred
from annealz.core.threads import submit

__all__ = ["Compilers"]

T = TypeVar("T")

_MOST_THREADS = 4
_MOST_KEYS = 256
_asked: set[int] = set()  # hashes of what this process was asked to compile


class Compilers:
    """Threads that compile, and what they were asked for by name; none is started before it has work."""

    def __init__(self):
        self._pool: ThreadPoolExecutor | None = None
        self._made: dict[Hashable, list[Future]] = {}
        self._tracing: dict[Hashable, float] = {}  # seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        """What has not begun is left; what has is not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def begin(
        self, name: Hashable, key: Any, traced: Callable[[], Iterable[Callable[[], Any]]]
    ) -> None:
        """Trace programs in this thread, and compile each in another; `key` is equal where they are."""
        if name not in self._made and _is_new(key):
            began, made = time.monotonic(), []
            self._made[name] = made
            with contextlib.suppress(Exception):  # the call will meet it itself
                made += (self.submit(compile) for compile in traced())
            self._tracing[name] = time.monotonic() - began

    def begin_apart(self, name: Hashable, key: Any, compile: Callable[[], Any]) -> None:
        """The same of functions that may be traced in any thread."""
        if name not in self._made and _is_new(key):
            self._made[name] = [self.submit(compile)]

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        """A call in one of the threads."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_num_threads(), thread_name_prefix="annealz-ahead")
        return submit(self._pool, call)

    def wait(self, name: Hashable) -> float:
        """Until what has this name is compiled; if no thread has begun with it, it is left to the caller.

        The seconds that this thread spent: on tracing it and on waiting.
        """
        began, made = time.monotonic(), self._made.pop(name, [])
        is_left = bool(made) and made[0].cancel()
        for one in made:
            if not is_left or not one.cancel():
                one.exception()  # the call will meet it itself
        return self._tracing.pop(name, 0.0) + time.monotonic() - began


def _num_threads() -> int:
    """Half as many as there are cores where these compute as well."""
    if platform() != "cpu":
        return _MOST_THREADS
    return max(1, min(_MOST_THREADS, (os.cpu_count() or 1) // 2))


def _is_new(key: Any) -> bool:
    """Whether it was not asked for yet here; not where that cannot be found out."""
    try:
        key = hash((key, platform(), preferred()))  # not the key: it holds functions of users
    except TypeError:
        return False
    if key in _asked:
        return False
    if len(_asked) >= _MOST_KEYS:
        _asked.clear()
    _asked.add(key)
    return True
