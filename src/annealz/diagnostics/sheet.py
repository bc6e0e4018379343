"""Sheet: what a result shows, whoever looks at it.

A result class keeps its numbers and describes itself once, by `sheet()`. Renderers show any sheet:

    text      `repr`, and the command line             views/text.py
    html      a notebook                               views/html.py
    report    a page that needs nothing else           views/report.py
    record    `to_dict()`, `--json` and result.json    Sheet.record
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annealz.diagnostics.findings import Note, in_python, messages_of
from annealz.diagnostics.status import Status

__all__ = ["Figure", "Result", "Section", "Sheet", "Table"]

Row = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of words and numbers as text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure that is drawn when a page is written."""

    name: str
    draw: Callable[[], Any]
    """Returns matplotlib axes."""
    caption: str


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page: paragraphs, tables, figures and code under a heading."""

    title: str
    parts: Sequence[Any]
    """Text, a Table, Figures, or code as bytes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sheet:
    """What a result shows."""

    name: str
    """The class of the result."""
    headline: Row
    """The row that matters: its label and the number with its error."""
    rows: tuple[Row, ...]
    """Labels and values in their order, the headline among them."""
    status: Status | None = None
    notes: tuple[Note, ...] = ()
    """What to know: findings, advice and plain text."""
    table: Table | None = None
    curves: tuple[tuple[str, np.ndarray], ...] = ()
    """Small pictures of a notebook: a title, and heights between 0 and 1."""
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The result as JSON values."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The notes as sentences in the words of Python."""
        return messages_of(self.notes, in_python)


class Result:
    """A result that describes itself by a sheet."""

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        raise NotImplementedError

    def sections(self) -> Sequence[Section]:
        """Return the sections of the result's page."""
        return ()

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know, and what to do about it; empty if there is nothing to report."""
        return self.sheet().messages

    def rows(self) -> list[Row]:
        """Return the result as labels and values, for people."""
        return list(self.sheet().rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return self.sheet().record

    def report(self, path: str | Path) -> None:
        """Write the result as one HTML page that needs nothing else."""
        from annealz.views.report import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        from annealz.views.text import to_text

        return to_text(self.sheet())

    def _repr_html_(self) -> str:
        from annealz.views.html import to_html

        return to_html(self.sheet())
