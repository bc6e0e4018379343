"""The page of a result: one HTML file that needs nothing else.

All that is text is escaped here. The page forbids itself all that it does not hold
(Content-Security-Policy): no script runs and nothing is fetched, whatever a model is called.
"""

import datetime
import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from matplotlib import rc_context

from annealz.diagnostics.findings import Advice, Finding, Note, in_options
from annealz.diagnostics.sheet import Code, Figure, Part, Result, Sheet, Table
from annealz.diagnostics.status import Status
from annealz.io.files import check_file, write_atomic, writing
from annealz.views.html import Html, table_html, tag
from annealz.views.plots import style

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="annealz">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
_MARKS = {Status.OK: "✓", Status.UNRELIABLE: "✗"}
_VARIABLES = {
    style.BLUE: "--blue",
    style.RED: "--red",
    style.GREEN: "--green",
    style.PURPLE: "--purple",
    style.GREY: "--quiet",
    style.INK: "--ink",
}


def check_report(path: str | Path) -> Path:
    """Refuse a place where no page can be written."""
    return check_file(path, "report", [".html"])


def write_report(result: Result, path: str | Path) -> None:
    """Write the page of a result, atomically."""
    path = check_report(path)
    page = render_report(result)
    with writing(f"the report {path}"):
        write_atomic(path, page)


def render_report(result: Result) -> str:
    """Return the page of a result; equal results give equal pages on one day."""
    sheet = result.sheet()
    rows = [row for row in sheet.rows if row[0] != sheet.headline[0]]
    parts: list[Part] = [*([Table(rows)] if rows else []), *([sheet.table] if sheet.table else [])]
    body = [_header(sheet), _section("Result", parts)]
    body += [_section(one.title, one.parts) for one in result.sections()]
    body.append(tag("footer", f"Page written {_today()}."))
    css = (files("annealz.views") / "report.css").read_text(encoding="utf-8")
    return _PAGE.format(title=escape(sheet.title), style=css, body="\n".join(body))


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _header(sheet: Sheet) -> Html:
    """Return the number, its interval, and a box with the status, what to know and what to try next."""
    rows = dict(sheet.rows)
    kind = "verdict" if sheet.status is None else "number"
    parts = [tag("h1", sheet.title), tag("p", sheet.headline[1], class_=kind)]
    if "95 % interval" in rows:
        parts.append(tag("p", f"95 % interval {rows['95 % interval']}", class_="interval"))
    notes = [_list(sheet.notes)] if sheet.notes else []
    if sheet.next_command is not None:
        notes += [tag("p", "What to try next:"), _code(sheet.next_command)]
    if sheet.status is not None:
        words = f"{_MARKS[sheet.status]} {rows.get('status', sheet.status.value)}"
        meaning = [tag("p", sheet.meaning)] if sheet.meaning else []
        notes = [tag("p", tag("strong", words)), *meaning, *notes]
        notes = [tag("div", *notes, class_=f"status {sheet.status.value}", role="status")]
    return tag("header", *parts, *notes)


def _section(title: str, parts: Sequence[Part]) -> Html:
    """Return parts under a heading, neighbouring figures in one grid."""
    shown: list[Html] = []
    for is_figure, group in groupby(parts, lambda part: isinstance(part, Figure)):
        each = [_part(part) for part in group]
        shown += [tag("div", *each, class_="figures")] if is_figure else each
    return tag("section", tag("h2", title), *shown)


def _part(part: Part) -> Html:
    if isinstance(part, str):
        return tag("p", part)
    if isinstance(part, Table):
        table = table_html(part)
        return tag("div", table, class_="scroll", tabindex="0") if part.headings else table
    if isinstance(part, Figure):
        return tag("figure", _picture(part), tag("figcaption", part.caption))
    if isinstance(part, Code):
        return _code(part.text)
    return _list(part) if part else Html()


def _list(notes: Iterable[Note]) -> Html:
    """Return notes as a list, in bold what to do."""
    items: list[Html] = []
    for note in notes:
        if isinstance(note, Advice):
            items.append(tag("li", tag("strong", note.in_words(in_options))))
        elif isinstance(note, Finding) and note.what_to_do(in_options):
            to_do = tag("strong", f"{note.what_to_do(in_options)}.")
            items.append(tag("li", f"{note.what}; ", to_do))
        else:
            items.append(tag("li", note if isinstance(note, str) else note.in_words(in_options)))
    return tag("ul", *items)


def _code(text: str) -> Html:
    """Return something to be typed: lines break between words, and not after the dashes of an option."""
    words = (
        Html(part) if part.isspace() else tag("span", part) for part in re.findall(r"\s+|\S+", text)
    )
    return tag("pre", tag("code", *words))


def _picture(figure: Figure) -> Html:
    """Return a figure as SVG in the colours of the page.

    Each colour of `plots/style.py` is replaced by a variable of the page, which has one value for light and
    one for dark. Text remains text: it can be read aloud, searched, and has the page's fonts. What several
    pictures of one page would share by accident, the names of clips and markers, gets a prefix.
    """
    ax, name, buffer = figure.draw(), figure.name, io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        ax.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*;?\s*", "", text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'xlink:href="#', f'href="#{name}-', text)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    words = f"{ax.get_title()}. {figure.caption}".replace(r"\$", "$")  # escaped in titles of axes
    opened = f'<svg role="img" aria-labelledby="{name}-words" {box[0]}>'
    title = f'<title id="{name}-words">{escape(words)}</title>'
    return Html(re.sub(r"<svg[^>]*>", lambda _: opened + title, text, count=1))
