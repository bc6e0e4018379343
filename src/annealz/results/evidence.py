"""The evidence of one model, as a comparison of models needs it, and how errors of several combine.

    error of sum_i c_i log Z_i:   sqrt( sum over groups (sum_{i in group} |c_i| s_i)^2 )

Estimates of unlike seeds are independent, a group each. Two of one seed draw from the same random bits, so
that their errors are correlated in an unknown way: they are one group, whose errors add, which no
correlation can exceed.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from annealz.diagnostics.status import Status, check_level

__all__ = ["Evidence", "combined_error", "evidence_of", "messages_about"]


@dataclasses.dataclass(frozen=True)
class Evidence:
    """log Z of a model with its error, whatever it was estimated by."""

    name: str
    log_z: float
    std_err: float
    interval: Callable[[float], tuple[float, float]]
    """At any level."""
    status: Status
    reason: str | None
    """Why it is unreliable, if it is."""
    source: Hashable
    """Those of one source share random bits."""
    digest: str | None
    """Of the model."""


def evidence_of(given: Any, name: str, argument: str) -> Evidence:
    """Of an estimate by any method, or of a pair (log Z, standard error)."""
    if _is_pair(given):
        return _of_numbers(given, name, argument)
    fields = ("log_z", "std_err", "interval", "status")
    if isinstance(given, type) or not all(hasattr(given, field) for field in fields):
        raise ValueError(
            f"{argument} must be an estimate, or a pair (log Z, standard error), got "
            f"{type(given).__name__}: estimate_log_z returns one."
        )
    is_ok = given.status is Status.OK
    settings, seed = getattr(given, "settings", None), getattr(given, "seed", None)
    return Evidence(
        name=name,
        log_z=float(given.log_z),
        std_err=float(given.std_err),
        interval=given.interval,
        status=given.status,
        reason=None
        if is_ok
        else next(iter(given.messages), "its status is unreliable.").rstrip("."),
        source=object() if seed is None else (type(given).__name__, seed),
        digest=getattr(settings, "model_digest", None),
    )


def _is_pair(given: Any) -> bool:
    is_row = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    return is_row and len(given) == 2


def _of_numbers(given: Any, name: str, argument: str) -> Evidence:
    try:
        log_z, std_err = (float(value) for value in given)
    except (TypeError, ValueError):
        log_z, std_err = np.nan, np.nan
    if not (np.isfinite(log_z) and 0 <= std_err < np.inf):
        raise ValueError(
            f"{argument} must be a pair of numbers (log Z, standard error), the error not negative, got "
            f"{given!r}."
        )

    def interval(level: float) -> tuple[float, float]:
        check_level(level)
        half = float(ndtri((1 + level) / 2)) * std_err
        return log_z - half, log_z + half

    return Evidence(name, log_z, std_err, interval, Status.OK, None, object(), None)


def combined_error(
    coefficients: Sequence[float] | np.ndarray,
    errors: Sequence[float] | np.ndarray,
    sources: Sequence[Hashable],
) -> float:
    """The standard error of a linear combination; see the module."""
    parts: dict[Hashable, float] = {}
    for coefficient, error, source in zip(coefficients, errors, sources, strict=True):
        if coefficient:  # infinite errors of what has no part in it do not count
            parts[source] = parts.get(source, 0.0) + abs(coefficient) * error
    return float(np.sqrt(sum(part**2 for part in parts.values())))


def messages_about(all_of_them: Sequence[Evidence]) -> tuple[str, ...]:
    """Which cannot be trusted, and which share random bits."""
    messages = [
        f"log Z of {one.name} cannot be trusted: {one.reason}."
        for one in all_of_them
        if one.status is not Status.OK
    ]
    by_source: dict[Hashable, list[str]] = {}
    for one in all_of_them:
        by_source.setdefault(one.source, []).append(one.name)
    for source, names in by_source.items():
        if len(names) > 1 and isinstance(source, tuple):
            messages.append(
                f"{' and '.join(names)} were estimated with one seed, {source[1]}, and share random bits, "
                "so that their errors are added: with unlike seeds the error is smaller."
            )
    return tuple(messages)
