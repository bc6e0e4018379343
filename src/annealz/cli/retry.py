"""The command that may do better than the one that gave a result which cannot be trusted."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.exchange.estimate import ExchangeEstimate

__all__ = ["retry", "with_changes"]

_SIZES = {"num_steps", "num_sweeps", "num_chains"}
_OF_ANNEALING = {  # replica exchange has no schedule, and takes no such wishes
    "--schedule",
    "--chains",
    "--resample",
    "--target-std-err",
    "--max-seconds",
    "--along",
}
_FLAGS_OF_ANNEALING = ("--two-sided", "--no-second-opinion")
_OF_RUNS = {  # nested sampling ends by itself, in this process, and has a prior
    "--steps",
    "--draws",
    "--base",
    "--data",
    "--marginal",
    "--kernel",
    "--checkpoint-seconds",
    "--cluster",
    "--tls-ca",
    "--tls-cert",
    "--tls-key",
}
_FLAGS_OF_RUNS = ("--exact", "--force", "--second-opinion")


def retry(arguments: list[str], result: Estimate | ExchangeEstimate) -> str | None:
    """The same with what is advised; None if nothing is, or if a wish or a file decides about it."""
    from annealz.methods.annealing.advice import advice_of

    remedy, schedule = advice_of(result).next_try, _value(arguments, "--schedule")
    changes = {} if remedy is None else remedy.settings
    has_wish = result.settings.has_wish
    is_file = schedule is not None and Path(schedule).is_file()
    if not changes or (_SIZES & {*changes} and (has_wish or is_file)):
        return None
    return with_changes(arguments, changes)


def with_changes(arguments: list[str], changes: Mapping[str, Any]) -> str:
    """The command with these settings changed, and without options that no longer fit."""
    from annealz.diagnostics.findings import option_of, option_words

    dropped = {"--out", *(option_of(name) for name in changes)}  # a folder holds one run
    if "base" in changes:
        dropped.add("--data")  # which serve another base
    if "method" in changes:
        is_nested = changes["method"] == "nested"
        flags = (*_FLAGS_OF_ANNEALING, *(_FLAGS_OF_RUNS if is_nested else ()))
        dropped |= _OF_ANNEALING | (_OF_RUNS if is_nested else set())
        arguments = [word for word in arguments if word not in flags]
    kept = _without(arguments, dropped)
    added = [word for change in changes.items() for word in option_words(*change)]
    return shlex.join(["annealz", *kept[:1], *added, *kept[1:]])


def _value(arguments: list[str], option: str) -> str | None:
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _without(arguments: list[str], options: set[str]) -> list[str]:
    """The words except these options and their values."""
    kept: list[str] = []
    is_value = False
    for word in arguments:
        if not is_value and word.partition("=")[0] not in options:
            kept.append(word)
        is_value = not is_value and word in options
    return kept
