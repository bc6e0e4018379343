"""Sheet: what a result shows, whoever looks at it.

A result class keeps its numbers and describes itself once, by `sheet()`. Renderers show any sheet:

    text      `repr`, and the command line             views/text.py
    html      a notebook                               views/html.py
    report    a page that needs nothing else           views/report.py
    record    `to_dict()`, `--json` and result.json    Sheet.to_dict
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from types import MethodType
from typing import Any

import numpy as np

from annealz.diagnostics.findings import Note, in_options, in_python, messages_of
from annealz.diagnostics.status import Status
from annealz.io.reading import need

Row = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of text; without headings each row is a label and its value."""

    rows: Sequence[Sequence[str]]
    headings: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure that is drawn when a page is written."""

    name: str
    """Its name, the only one on the page."""
    draw: Callable[[], Any]
    """Returns matplotlib axes."""
    caption: str
    """Words for what is to be seen."""


@dataclasses.dataclass(frozen=True)
class Code:
    """Something to be typed."""

    text: str


Part = str | Table | Figure | Code | Sequence[Note]
"""A paragraph, a table, a figure, code, or a list of notes."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page under a heading; neighbouring figures stand side by side."""

    title: str
    parts: Sequence[Part]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sheet:
    """All that a result shows."""

    name: str
    """The class of the result."""
    headline: Row
    """The row that matters: its label and the number with its error."""
    rows: Sequence[Row] = ()
    """Labels and values in their order, the headline among them where it is repeated in tables."""
    title: str = ""
    """The title of its page; by default the headline's label with the model."""
    status: Status | None = None
    meaning: str = ""
    """The status in words, for this number."""
    notes: Sequence[Note] = ()
    """Findings, advice and plain text."""
    next_command: str | None = None
    """The command that may do better."""
    table: Table | None = None
    curves: Sequence[tuple[str, np.ndarray]] = ()
    """Small pictures of a notebook: a title, and heights between 0 and 1."""
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The result as JSON values, without status and messages."""

    def __post_init__(self):
        if not self.title:
            label, model = self.headline[0], dict(self.rows).get("model")
            object.__setattr__(self, "title", f"{label} of {model}" if model else label)

    @property
    def details(self) -> list[Row]:
        """The rows beside headline and status."""
        return [row for row in self.rows if row[0] not in (self.headline[0], "status")]

    def to_dict(self) -> dict[str, Any]:
        """Return the record with status and messages; remedies are named as options."""
        status = {} if self.status is None else {"status": self.status.value}
        return {**self.record, **status, "messages": list(messages_of(self.notes, in_options))}


class View:
    """A method that is a function of `annealz.views`, imported when it is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, shown: Any, owner: type | None = None) -> Callable[..., Any]:
        module, _, name = self._name.rpartition(".")
        function = getattr(import_module(f"annealz.views.{module}"), name)
        return function if shown is None else MethodType(function, shown)


class Shown:
    """Something that describes itself by a sheet."""

    def sheet(self) -> Sheet:
        """Return what it shows."""
        raise NotImplementedError

    def described(self, headline: Row, rows: Sequence[Row], **more: Any) -> Sheet:
        """Return a sheet with the name, the status and the notes of this object."""
        own = {name: getattr(self, name) for name in ("status", "notes") if hasattr(self, name)}
        return Sheet(**{"name": type(self).__name__, **own, **more}, headline=headline, rows=rows)

    def rows(self) -> list[Row]:
        """Return labels and values, for people."""
        return list(self.sheet().rows)

    def __repr__(self) -> str:
        from annealz.views.text import to_text

        return to_text(self.sheet())

    def _repr_html_(self) -> str:
        from annealz.views.html import to_html

        return to_html(self.sheet())


class Result(Shown):
    """A result of a computation, which has a record and a page too."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Findings, plain text and advice, as data."""
        return tuple(getattr(self, "extra_messages", ()))

    @property
    def messages(self) -> tuple[str, ...]:
        """Findings, and what to do about them; empty if there is nothing to report."""
        return messages_of(self.notes, in_python)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values; what is unknown is None."""
        return self.sheet().to_dict()

    def sections(self) -> Sequence[Section]:
        """Return what its page shows below the result."""
        return ()

    report = View("report.write_report")
    """Write the result as one HTML page that needs nothing else."""


def record_of(thing: Any, names: str) -> dict[str, Any]:
    """Return attributes, blanks between their names, as JSON values; what is not finite is None."""
    return {name: json_of(getattr(thing, name)) for name in names.split()}


def json_of(value: Any) -> Any:
    """Return JSON values; what is not finite is None."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if callable(value):
        value = value()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: json_of(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def data_frame(data: Any, index: str | None = None) -> Any:
    """Return a pandas table of columns by name, or of rows that are dictionaries."""
    frame = need("pandas", "tables are made", "notebook").DataFrame(data)
    return frame if index is None else frame.rename_axis(index)
