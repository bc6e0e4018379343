"""Interrupts: a flag that work asks about wherever it returns to the host.

The command line answers signals by setting it (`cli/signals.py`). Elsewhere Python's own KeyboardInterrupt
is raised; where that happens in a function that a compiled program calls, no exception gets through. Such
a function remembers it here and returns NaN, and what ran the program asks.
"""

import contextlib
from collections.abc import Iterator

_is_asked = False
_is_remembered = False
_num_awaiting = 0


def ask() -> None:
    """Ask all work of this process to stop, for good."""
    global _is_asked
    _is_asked = True


def remember() -> None:
    """Have the next check raise the KeyboardInterrupt that could not be raised here."""
    global _is_remembered
    _is_remembered = True


def is_asked() -> bool:
    """Check whether this process was asked to stop."""
    return _is_asked


def check() -> None:
    """Raise KeyboardInterrupt if there was an interrupt."""
    global _is_remembered
    if _is_asked or _is_remembered:
        _is_remembered = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def awaiting() -> Iterator[None]:
    """Run what checks now and then, so that it can save what it has when it is asked to stop."""
    global _num_awaiting
    _num_awaiting += 1
    try:
        yield
    finally:
        _num_awaiting -= 1


def is_awaited() -> bool:
    """Check whether work that checks is under way."""
    return _num_awaiting > 0
