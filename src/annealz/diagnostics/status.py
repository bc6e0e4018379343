"""Can an estimate be trusted? Its status follows from all findings: none lifts the verdict of another.

A finding may have a remedy of its own; what helps most depends on the whole estimate, and is reported once
(`advice.py`).
"""

import enum

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
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(
    ...     random_rbm(4, 6), base="uniform", num_steps=100, num_chains=10, second_opinion=False
    ... )
    >>> estimate.status
    <Status.UNRELIABLE: 'unreliable'>
    >>> estimate.ok
    False
    >>> estimate.messages[0]
    'chains are too few to diagnose their weights: 10, at least 25 are needed; try num_chains=100.'
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


def status_of(findings: Findings) -> Status:
    """Return unreliable if any finding is fatal."""
    return Status.UNRELIABLE if any(kind.is_fatal for kind in findings) else Status.OK
