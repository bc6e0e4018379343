"""The command that may do better than the one that gave a result which cannot be trusted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annealz.estimate import Estimate

__all__ = ["retry"]

_MORE = 4  # times the steps, as in the messages


def retry(arguments: list[str], result: Estimate) -> str | None:
    """The same with four times the steps; None where the result is ok, or its steps are those of a file."""
    from annealz.status import Status

    schedule = _value(arguments, "--schedule")
    if result.status is Status.OK or (schedule is not None and Path(schedule).is_file()):
        return None
    kept = _without(arguments, {"--steps", "--out"})  # a folder holds one run
    return shlex.join(["annealz", *kept, "--steps", str(_MORE * result.num_steps)])


def _value(arguments: list[str], option: str) -> str | None:
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _without(arguments: list[str], options: set[str]) -> list[str]:
    """The words but these options and their values."""
    kept: list[str] = []
    is_value = False
    for word in arguments:
        if not is_value and word.partition("=")[0] not in options:
            kept.append(word)
        is_value = not is_value and word in options
    return kept
