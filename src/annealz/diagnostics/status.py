"""Can an estimate be trusted? Its status follows from all findings: none lifts the verdict of another.

A finding may have a remedy of its own; what helps most depends on the whole estimate, and is reported once
(`advice.py`).

The error that is stated: that of the weights, and two that no spread of weights shows.

Arithmetic. Chains are annealed in float32, and the increments of one path are rounded alike in all chains.
Measured, the sum of 10,000 increments at a fixed state against float64: means of 7e-6 to 6e-5 nats, the
largest from mixtures whose logits are in the hundreds; of whole runs with weights that are all but equal,
up to 1.9e-4. Taken as 2e-4.

Unseen mass. A base that was fitted to pilots has next to no mass where no pilot was. If the chains are as
good as N draws of the target, a region of mass m is seen by none of them with chance e^(-m N): so m has an
exponential law of mean 1 / N, and lies below log(1 / c) / N except with probability c. This moves log Z
up only.

    stated error    sqrt(error of the weights^2 + 2e-4^2 + 1 / N^2)
    upper end       the distances of the weights, of the arithmetic and of log(1 / c) / N, squared and added

Both matter only below some thousandths of a nat.
"""

import enum

import numpy as np
from scipy.special import ndtri

from annealz.diagnostics.findings import Finding, Findings, Kind, by_kind, in_python, messages_of


class _Badge:
    """What a notebook shows of a status; an enum keeps names like this one to itself."""

    def _repr_html_(self) -> str:
        from annealz.views.html import status_html

        return status_html(self)  # pyright: ignore[reportArgumentType]


class Status(_Badge, enum.StrEnum):
    """How far an estimate can be trusted: a string, and true if it is ok.

    Examples
    --------
    >>> import annealz
    >>> annealz.Status("ok") is annealz.Status.OK, annealz.Status.UNRELIABLE.value
    (True, 'unreliable')
    >>> annealz.Status.OK == "ok", bool(annealz.Status.OK), bool(annealz.Status.UNRELIABLE)
    (True, True, False)
    """

    OK = "ok"
    UNRELIABLE = "unreliable"

    def __bool__(self) -> bool:
        return self is Status.OK


class Judged:
    """What has a status."""

    @property
    def ok(self) -> bool:
        """Whether the status is ok."""
        return self.status is Status.OK  # pyright: ignore[reportAttributeAccessIssue]


class Found(Judged):
    """What every diagnosis reports of its findings."""

    findings: Findings

    @property
    def status(self) -> Status:
        """Unreliable if any finding is fatal."""
        return status_of(self.findings)

    @property
    def messages(self) -> tuple[str, ...]:
        """What was found, in words."""
        return messages_of(self.findings.values(), in_python)


ROUNDING = 2e-4  # nats
_MOST_ERRORS = 4.0
_LEAST_GAP = 0.01  # nats: below, rounding and chance


def against_exact(log_z: float, std_err: float, exact: float | None) -> dict[Kind, Finding]:
    """Return what the exact value says of an estimate, if it is known and contradicts."""
    if exact is None or abs(log_z - exact) <= max(_MOST_ERRORS * std_err, _LEAST_GAP):
        return {}
    gap = log_z - exact
    return by_kind([Finding.of(Kind.CONTRADICTS_EXACT, exact=exact, gap=gap, std_err=std_err)])


def check_level(level: float) -> None:
    """Refuse what is not a level of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")


def normal_interval(centre: float, std_err: float, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a number with a normal error."""
    check_level(level)
    half = float(ndtri((1 + level) / 2)) * std_err
    return centre - half, centre + half


def status_of(findings: Findings) -> Status:
    """Return unreliable if any finding is fatal."""
    return Status.UNRELIABLE if any(kind.is_fatal for kind in findings) else Status.OK


def stated_std_err(std_err: float, num_unseen: float | None = None) -> float:
    """Return the standard error with the rest; `num_unseen` is the number of chains of a fitted base."""
    unseen = 0.0 if num_unseen is None else 1 / num_unseen
    return float(np.sqrt(std_err**2 + ROUNDING**2 + unseen**2))


def stated_interval(
    centre: float, interval: tuple[float, float], level: float, num_unseen: float | None = None
) -> tuple[float, float]:
    """Return the interval around `centre` with the rest."""
    low, high = interval
    rounding = float(ndtri((1 + level) / 2)) * ROUNDING
    unseen = 0.0 if num_unseen is None else np.log(2 / (1 - level)) / num_unseen
    above = np.sqrt((high - centre) ** 2 + rounding**2 + unseen**2)
    return centre - float(np.hypot(centre - low, rounding)), centre + float(above)
