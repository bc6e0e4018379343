"""Results in a notebook: the number, its error and its status first, then a small table.

Colours are the notebook's own, light or dark, except the badge of the status, which is white on dark green
or dark red in both. All text is escaped. Nothing is loaded from anywhere.
"""

import sys
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from annealz.diagnostics.findings import in_python, messages_of
from annealz.diagnostics.sheet import Sheet
from annealz.diagnostics.status import Status
from annealz.views.progress import in_notebook

_GREEN, _RED = "#1a7f37", "#b3261e"
_LEFT = "text-align:left;vertical-align:top"
_CURVE_POINTS, _WIDTH, _HEIGHT = 80, 200, 24


def to_html(sheet: Sheet) -> str:
    """Return a sheet as HTML."""
    quantity, number = sheet.headline
    badge = "" if sheet.status is None else f" {status_html(sheet.status)}"
    notes = (
        f"<div style='border-left:3px solid #c77700;padding-left:8px;margin:4px 0'>{escape(words)}</div>"
        for words in messages_of(sheet.notes, in_python)
    )
    rows = [(escape(label), escape(value)) for label, value in sheet.details]
    rows += [(escape(label), _curve(heights)) for label, heights in sheet.curves]
    parts = [_table([], rows)] if rows else []
    if sheet.table is not None:
        headings = sheet.table.headings
        parts.append(_table(headings, [_cells(headings, row) for row in sheet.table.rows]))
    return (
        f"<div><div style='font-size:115%'>{escape(quantity)} <b>{escape(number)}</b>{badge}</div>"
        f"{''.join(notes)}{''.join(parts)}</div>"
    )


def status_html(status: Status) -> str:
    """Return the status as a badge."""
    colour = _GREEN if status is Status.OK else _RED
    return (
        f"<span style='background:{colour};color:#fff;border-radius:3px;padding:1px 7px;"
        f"font-weight:bold'>{escape(status.value)}</span>"
    )


def _cells(headings: Iterable[str], row: Iterable[str]) -> list[str]:
    """Return the cells of a row, those of a column of statuses as badges."""
    pairs = zip(headings, row, strict=True)
    return [status_html(Status(cell)) if head == "status" else escape(cell) for head, cell in pairs]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML; without headings the first of a row is its heading."""
    heads = [f"<th style='{_LEFT}'>{escape(word)}</th>" for word in headings]
    top = f"<thead><tr>{''.join(heads)}</tr></thead>" if heads else ""
    first, body = "td" if heads else "th", ""
    for row in rows:
        tags = [first, *["td"] * len(row)]
        cells = (
            f"<{tag} style='{_LEFT}'>{cell}</{tag}>" for tag, cell in zip(tags, row, strict=False)
        )
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _curve(heights: np.ndarray) -> str:
    """Return heights between 0 and 1 as a line, in the colour of the text around it."""
    count = min(len(heights), _CURVE_POINTS)
    picked = np.linspace(0, len(heights) - 1, count).round().astype(int)
    x = np.linspace(1, _WIDTH - 1, count)
    y = (1 - np.clip(np.asarray(heights)[picked], 0, 1)) * (_HEIGHT - 2) + 1
    points = " ".join(f"{left:.1f},{top:.1f}" for left, top in zip(x, y, strict=True))
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' style='vertical-align:middle' role='img'>"
        f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )


def show_figures_inline() -> None:
    """Let the notebook that runs this, if one does, show figures as PNG pictures.

    It is pyplot that teaches a notebook to do so, and figures are made without it. Who has taught the
    notebook before, or does so later, is not overruled, and matplotlib is not imported for it.
    """
    if in_notebook():
        shell = sys.modules["IPython"].get_ipython()
        pictures = shell.display_formatter.formatters["image/png"]
        pictures.for_type_by_name("matplotlib.figure", "Figure", _as_png)


def _as_png(figure) -> bytes | str | None:
    from IPython.core.pylabtools import print_figure

    return print_figure(figure, "png")
