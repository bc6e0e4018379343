"""How long a piece of work on the device may be, so that the host is heard in between."""

import time

from annealz.core import interrupts

_MOST_GROWTH = 64  # from one piece to the next


class Pace:
    """The length of the next piece, by the clock, unless it is fixed.

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
        interrupts.check()
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
