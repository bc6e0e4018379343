"""A sheet as text: a line per row, the table, then a line per message."""

from collections.abc import Sequence

from annealz.diagnostics.findings import in_python, messages_of
from annealz.diagnostics.sheet import Sheet


def to_text(sheet: Sheet) -> str:
    """Return a sheet as lines under the name of its class."""
    lines = aligned(sheet.rows)
    if sheet.table is not None:
        lines += ["", *aligned([sheet.table.headings, *sheet.table.rows])]
    lines += [f"! {message}" for message in messages_of(sheet.notes, in_python)]
    return "\n".join([sheet.name, *(f"  {line}".rstrip() for line in lines)])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ((f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return ["  ".join(cells).rstrip() for cells in padded]
