"""Interrupts: a flag that work asks about wherever it returns to the host.

The command line answers signals by setting it (`cli/signals.py`). Elsewhere Python's own KeyboardInterrupt
is raised. What is raised in a function that a compiled program calls is kept here until the program has
returned (`core/failures.py`).
"""

import contextlib
import time
from collections.abc import Iterator

_MOST_GROWTH = 64  # from one piece of work to the next
_is_asked = False
_failures: list[BaseException] = []
_num_awaiting = 0


def ask() -> None:
    """Ask all work of this process to stop, for good."""
    global _is_asked
    _is_asked = True


def is_asked() -> bool:
    """Check whether this process was asked to stop."""
    return _is_asked


def remember(error: BaseException) -> None:
    """Keep an error that cannot be raised here, for the next check."""
    _failures.append(error)


def failure() -> BaseException | None:
    """Return what a check would raise, the first of what was kept; the others are dropped."""
    kept = _failures[:1]
    _failures.clear()
    return KeyboardInterrupt() if _is_asked else next(iter(kept), None)


def check() -> None:
    """Raise KeyboardInterrupt if this process was asked to stop, or an error that was kept."""
    error = failure()
    if error is not None:
        raise error


@contextlib.contextmanager
def awaiting() -> Iterator[None]:
    """Run what checks now and then, so that it can save what it has when it is asked to stop."""
    global _num_awaiting
    if _num_awaiting == 0:  # what a user's own use of a function left behind
        _failures.clear()
    _num_awaiting += 1
    try:
        yield
    finally:
        _num_awaiting -= 1


def is_awaited() -> bool:
    """Check whether work that checks is under way."""
    return _num_awaiting > 0


class Pace:
    """How long a piece of work on the device may be, so that the host is heard in between: by the clock.

    The first piece, of length `first`, may have been compiled: it makes the next one longer if it was quick
    all the same, and never shorter. An interrupt is answered within about `seconds`, which is what a piece
    should take. The piece in which one comes is lost, and its results with it.
    """

    def __init__(self, fixed: int | None = None, seconds: float = 0.25, first: int = 8):
        self._seconds = seconds
        self.length = fixed or first
        self._is_fixed = fixed is not None
        self._is_compiled = False

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_) -> None:
        check()
        spent = max(time.monotonic() - self._began, 1e-4)
        if not self._is_fixed:
            ideal = self._asked * self._seconds / spent
            least = 1 if self._is_compiled else self.length
            self.length = int(min(max(ideal, least), _MOST_GROWTH * self.length))
        self._is_compiled = True

    def take(self, limit: int) -> int:
        """The length of the next piece, at most `limit`."""
        self._asked = min(self.length, limit)
        return self._asked
