"""One thing that was found about an estimate: its kind, its numbers and its remedy."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from annealz.diagnostics.kind import Kind
from annealz.diagnostics.remedy import Remedy, Writer

__all__ = ["Finding", "Findings", "by_kind"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found, with which numbers, and what would help.

    Examples
    --------
    >>> from annealz.diagnostics.finding import Finding
    >>> from annealz.diagnostics.in_python import in_python
    >>> from annealz.diagnostics.kind import Kind
    >>> from annealz.diagnostics.remedy import Remedy
    >>> few = Finding.of(Kind.TOO_FEW_CHAINS, Remedy(num_chains=100), size=10, needed=25)
    >>> few.what
    'chains are too few to diagnose their weights: 10, at least 25 are needed'
    >>> few.what_to_do(in_python)
    'try num_chains=100'
    """

    kind: Kind
    numbers: Mapping[str, Any]
    """By the names that the words of the kind have for them."""
    remedy: Remedy | None = None

    def __post_init__(self):
        if self.numbers.keys() != self.kind.names:
            wanted, given = sorted(self.kind.names), sorted(self.numbers)
            raise ValueError(f"{self.kind.name} has the numbers {wanted}, got {given}.")

    @classmethod
    def of(cls, kind: Kind, remedy: Remedy | None = None, **numbers: Any) -> "Finding":
        """A finding with this remedy, or with that of its kind."""
        remedy = remedy or kind.remedy
        if remedy is not None and remedy.map is not None:
            remedy = dataclasses.replace(remedy, map=remedy.map.format(**numbers))
        return cls(kind, numbers, remedy)

    def to_record(self) -> dict[str, Any]:
        """Kind and numbers as values of JSON."""
        return {"kind": self.kind.name, "numbers": dict(self.numbers)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Finding":
        """The finding of such a record, with the remedy of its kind."""
        try:
            finding = cls.of(Kind[record["kind"]], **record["numbers"])
            finding.what  # noqa: B018 - numbers of another kind cannot be written
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("a finding of the pilots is damaged.") from error
        return finding

    @property
    def what(self) -> str:
        """What was found, with its numbers."""
        return self.kind.words.format(**self.numbers)

    def what_to_do(self, write: Writer) -> str:
        """The remedy; empty if there is none."""
        if self.remedy is None:
            return ""
        return f"{'try ' if self.remedy.settings else ''}{self.remedy.in_words(write)}"

    def in_words(self, write: Writer) -> str:
        """One sentence."""
        return "; ".join(part for part in (self.what, self.what_to_do(write)) if part) + "."


Findings = Mapping[Kind, Finding]
"""What was found, by kind."""


def by_kind(findings: Iterable[Finding]) -> dict[Kind, Finding]:
    """The findings, in their order."""
    return {finding.kind: finding for finding in findings}
