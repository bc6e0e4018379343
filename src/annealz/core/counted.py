"""What holds for the whole process while calls of ours last, and is put back after the last of them."""

import abc
import contextlib
import threading

__all__ = ["Counted"]


class Counted(contextlib.ContextDecorator, abc.ABC):
    """A context, or a decorator of functions, that many threads may be in at once.

    The first to enter begins it, the last to leave ends it.
    """

    def __init__(self):
        self._lock, self._num_inside = threading.Lock(), 0

    @abc.abstractmethod
    def begin(self) -> None: ...

    @abc.abstractmethod
    def end(self) -> None: ...

    def __enter__(self) -> None:
        with self._lock:
            if self._num_inside == 0:
                self.begin()
            self._num_inside += 1

    def __exit__(self, *_) -> None:
        with self._lock:
            self._num_inside -= 1
            if self._num_inside == 0:
                self.end()
