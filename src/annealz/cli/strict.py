"""`--strict`: exit status 4 where a result is shown that cannot be trusted, so that scripts stop there."""

import dataclasses
from typing import Any

__all__ = ["UNTRUSTED", "ask", "judge", "reset", "status"]

UNTRUSTED = 4


@dataclasses.dataclass
class _Verdict:
    """Of one command."""

    is_asked: bool = False
    is_trusted: bool = True


_verdict = _Verdict()


def reset() -> None:
    """Another command begins."""
    global _verdict
    _verdict = _Verdict()


def ask(wanted: bool) -> bool:
    """What the option does."""
    _verdict.is_asked = wanted
    return wanted


def judge(record: dict[str, Any]) -> None:
    """A result, or a table of them, that is shown."""
    shown = [record, *(row for row in record.get("models", []) if isinstance(row, dict))]
    if any(one.get("status") == "unreliable" for one in shown):
        _verdict.is_trusted = False


def status() -> int:
    """The exit status of a command that came to its end."""
    return UNTRUSTED if _verdict.is_asked and not _verdict.is_trusted else 0
