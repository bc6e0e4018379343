"""What a file says, made fit for a sentence: one line, short, without characters that a terminal obeys."""

from collections.abc import Iterable

__all__ = ["listed", "shown", "told"]

_LONGEST_NAME, _LONGEST_REASON, _MOST_NAMES = 60, 600, 20


def shown(name: object) -> str:
    """A name from a file; what cannot be printed is written as an escape."""
    return _line(str(name), _LONGEST_NAME)


def listed(names: Iterable[object]) -> str:
    """Names in order, the first twenty of them; `nothing` where there are none."""
    words = [shown(name) for name in sorted(names, key=str)]
    more = [f"{len(words) - _MOST_NAMES} more"] if len(words) > _MOST_NAMES else []
    return ", ".join(words[:_MOST_NAMES] + more) or "nothing"


def told(error: BaseException) -> str:
    """What an exception says, or its kind where it says nothing; without the full stop."""
    words = " ".join(str(error).split())
    return _line(words or type(error).__name__, _LONGEST_REASON).rstrip(".")


def _line(text: str, longest: int) -> str:
    text = text if len(text) <= longest else f"{text[:longest]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
