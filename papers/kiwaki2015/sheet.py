"""A table of named columns, written as CSV and as Markdown.

A cell is a number, a word, or None where there is nothing to say. Each column has two formats: CSV
keeps the digits, Markdown rounds them for the eye, and may join several numbers into one text.
"""

import csv
import dataclasses
import io
import math
from pathlib import Path
from typing import Any, NamedTuple

from annealz.io.files import write_atomic

__all__ = ["Column", "Sheet"]


class Column(NamedTuple):
    """A column's name in CSV and its heading in Markdown (where it has either), and its formats."""

    name: str
    heading: str
    shown: str = ""
    """In Markdown; a column with a format is flush right."""
    kept: str = ""
    """In CSV."""


@dataclasses.dataclass(frozen=True)
class Sheet:
    """Columns and rows."""

    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]

    def without_empty(self) -> "Sheet":
        """The same without the columns that say nothing in any row."""
        kept = [i for i in range(len(self.columns)) if any(row[i] is not None for row in self.rows)]
        columns = tuple(self.columns[i] for i in kept)
        return Sheet(columns, [tuple(row[i] for i in kept) for row in self.rows])

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        kept = [i for i, column in enumerate(self.columns) if column.name]
        writer.writerow(self.columns[i].name for i in kept)
        for row in self.rows:
            writer.writerow(_text(row[i], self.columns[i].kept) for i in kept)
        return out.getvalue()

    def markdown(self) -> str:
        heading, *rows = self._shown()
        rule = ["---:" if column.shown else "---" for column in self.columns if column.heading]
        return "".join(f"| {' | '.join(words)} |\n" for words in (heading, rule, *rows))

    def text(self) -> str:
        """Aligned columns for a terminal."""
        table = self._shown()
        widths = [max(map(len, words)) for words in zip(*table, strict=True)]
        flush = [">" if column.shown else "<" for column in self.columns if column.heading]
        return "".join(
            "  ".join(f"{w:{f}{n}}" for w, f, n in zip(line, flush, widths, strict=True)) + "\n"
            for line in table
        )

    def write(self, folder: Path, name: str) -> None:
        """NAME.csv, and NAME.md where any column has a heading."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / f"{name}.csv", self.csv())
        if any(column.heading for column in self.columns):
            write_atomic(folder / f"{name}.md", self.markdown())

    def _shown(self) -> list[list[str]]:
        """The headings and the rows, as they are read."""
        shown = [(i, column) for i, column in enumerate(self.columns) if column.heading]
        rows = [[_text(row[i], column.shown, none="–") for i, column in shown] for row in self.rows]
        return [[column.heading for _, column in shown], *rows]


def _text(value: Any, how: str, none: str = "") -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return none
    if isinstance(value, str):
        return value
    text = format(value, how)
    return text.replace("-", "−") if none else text
