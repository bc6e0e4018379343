"""Work in threads that compute where the asking one does.

A thread takes over what belongs to the asking thread alone: its context variables, and the device that JAX
is set to prefer there. Functions of users are called by one thread.
"""

import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from annealz.core.devices import preferred, preferring

__all__ = ["all_at_once", "are_ours", "submit"]

T = TypeVar("T")


def are_ours(*objects: Any) -> bool:
    """Whether their classes are of this package: any thread may call their functions."""
    return all(type(one).__module__.split(".")[0] == "annealz" for one in objects)


def submit(pool: ThreadPoolExecutor, call: Callable[[], T]) -> "Future[T]":
    """The call in a thread of the pool, as if it were made here."""
    device, context = preferred(), contextvars.copy_context()

    def made() -> T:
        with preferring(device):
            return call()

    return pool.submit(context.run, made)


def all_at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What these calls return, in their order, each in a thread of its own.

    Where one fails, or the asking thread is interrupted, the others are not waited for.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    pool = ThreadPoolExecutor(len(calls), thread_name_prefix="annealz")
    try:
        return [future.result() for future in [submit(pool, call) for call in calls]]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
