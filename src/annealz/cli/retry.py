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
    """The same with what is advised; None where nothing is, or where a wish or a file decides about it."""
    from annealz.advice import advice_of

    options, schedule = advice_of(result).options, _value(arguments, "--schedule")
    has_wish = result.settings.get("target_std_err") or result.settings.get("max_seconds")
    is_file = schedule is not None and Path(schedule).is_file()
    if not options or ({"--steps", "--chains"} & {*options} and (has_wish or is_file)):
        return None
    dropped = {*options, "--out"}  # a folder holds one run
    if "--base" in options:
        dropped.add("--data")  # which serve another base
    if "--method" in options:  # exchange has no schedule, and takes no such wishes
        dropped |= {
            "--schedule",
            "--chains",
            "--resample",
            "--target-std-err",
            "--max-seconds",
            "--along",
        }
        arguments = [
            word for word in arguments if word not in ("--two-sided", "--no-second-opinion")
        ]
    kept = _without(arguments, dropped)
    added = (word for pair in options.items() for word in pair if word is not None)
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
