"""The command that may do better than the one that gave a result which cannot be trusted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annealz.estimate import Estimate
    from annealz.replicas.estimate import ExchangeEstimate

__all__ = ["retry"]


def retry(arguments: list[str], result: Estimate | ExchangeEstimate) -> str | None:
    """The same with the steps and chains that are advised; None where none are, or a file has the steps."""
    from annealz.advice import advice_of

    advice, schedule = advice_of(result), _value(arguments, "--schedule")
    if not advice or (schedule is not None and Path(schedule).is_file()):
        return None
    options = {f"--{name}": str(number) for name, number in advice.items()}
    kept = _without(arguments, {*options, "--out"})  # a folder holds one run
    added = (word for pair in options.items() for word in pair)
    return shlex.join(["annealz", *kept[:1], *added, *kept[1:]])


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
