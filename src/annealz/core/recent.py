"""What was made of the same arrays a moment ago."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Recent"]


class Recent:
    """The last few values that were made, each with what it was made of.

    Names are compared, everything else is by identity the same: it is held as long as the value, so that no
    other object can take its place. Threads that ask for the same at once wait for the first of them.
    """

    def __init__(self, size: int):
        self._size, self._lock = size, threading.RLock()
        self._held: list[tuple[tuple[Any, ...], Any]] = []

    def get(self, of: Sequence[Any], make: Callable[[], Any]) -> Any:
        """The value made of these objects, made if it is not held."""
        with self._lock:
            return self._get(tuple(of), make)

    def _get(self, of: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        for others, value in self._held:
            if len(others) == len(of) and all(map(_is_same, of, others)):
                return value
        value = make()
        self._held = [(of, value), *self._held[: self._size - 1]]
        return value


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)
