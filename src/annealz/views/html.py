"""Results in a notebook: the number, its error and its status first, then a small table.

Colours are the notebook's own, light or dark, except the badge of the status, which is white on dark green
or dark red in both. All text is escaped. Nothing is loaded from anywhere.
"""

import sys
from collections.abc import Callable
from html import escape

import numpy as np

from annealz.diagnostics.findings import in_python, messages_of
from annealz.diagnostics.sheet import Sheet, Table
from annealz.diagnostics.status import Status
from annealz.views.progress import in_notebook

_GREEN, _RED = "#1a7f37", "#b3261e"
_LEFT = "text-align:left;vertical-align:top"
_BADGE = "color:#fff;border-radius:3px;padding:1px 7px;font-weight:bold"
_NOTE = "border-left:3px solid #c77700;padding-left:8px;margin:4px 0"
_CURVE_POINTS, _WIDTH, _HEIGHT = 80, 200, 24


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str) -> Html:
    """Return an element; what is not markup is escaped; `class_` is its class, `_` in names `-`."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    opened = "".join(f' {key}="{escape(value)}"' for key, value in named.items())
    inside = "".join(part if isinstance(part, Html) else escape(part) for part in content)
    return Html(f"<{name}{opened}>{inside}</{name}>")


def table_html(
    table: Table, cell: Callable[[str, str], str] = lambda _, text: text, style: str = ""
) -> Html:
    """Return a table whose first column heads its rows; `cell` takes the heading of a column too.

    Its cells have the style; without one the table has a class of `report.css`.
    """
    own = {"style": style} if style else {}
    body = []
    for first, *rest in table.rows:
        headings = table.headings[1:] or [""] * len(rest)
        cells = (tag("td", cell(*pair), **own) for pair in zip(headings, rest, strict=True))
        body.append(tag("tr", tag("th", first, scope="row", **own), *cells))
    heads = [tag("th", heading, scope="col", **own) for heading in table.headings]
    head = [tag("thead", tag("tr", *heads))] if heads else []
    kind = {} if style else {"class_": "grid" if heads else "pairs"}
    return tag("table", *head, tag("tbody", *body), **kind)


def to_html(sheet: Sheet) -> str:
    """Return a sheet as HTML."""
    quantity, number = sheet.headline
    badge = "" if sheet.status is None else f" {status_html(sheet.status)}"
    parts = [tag("div", note, style=_NOTE) for note in messages_of(sheet.notes, in_python)]
    rows = [*sheet.details, *((label, _curve(heights)) for label, heights in sheet.curves)]
    parts += [table_html(Table(rows), style=_LEFT)] if rows else []
    parts += [] if sheet.table is None else [table_html(sheet.table, _cell, style=_LEFT)]
    return (
        f"<div><div style='font-size:115%'>{escape(quantity)} <b>{escape(number)}</b>{badge}</div>"
        f"{''.join(parts)}</div>"
    )


def status_html(status: Status) -> Html:
    """Return the status as a badge."""
    colour = _GREEN if status is Status.OK else _RED
    return tag("span", status.value, style=f"background:{colour};{_BADGE}")


def _cell(heading: str, text: str) -> str:
    return status_html(Status(text)) if heading == "status" else text


def _curve(heights: np.ndarray) -> Html:
    """Return heights between 0 and 1 as a line, in the colour of the text around it."""
    count = min(len(heights), _CURVE_POINTS)
    picked = np.linspace(0, len(heights) - 1, count).round().astype(int)
    x = np.linspace(1, _WIDTH - 1, count)
    y = (1 - np.clip(np.asarray(heights)[picked], 0, 1)) * (_HEIGHT - 2) + 1
    points = " ".join(f"{left:.1f},{top:.1f}" for left, top in zip(x, y, strict=True))
    return Html(
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
