"""A page and its parts, as HTML. All that is text is escaped here, and only here.

The page forbids itself all that it does not hold (Content-Security-Policy): no script runs and nothing is
fetched, whatever a model is called.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

__all__ = ["Html", "code", "figures", "items", "join", "page", "section", "table", "tag"]

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


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str) -> Html:
    """An element; what is not Html is escaped. `class_` is the attribute class, `_` in names is `-`."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    opened = "".join(f' {key}="{escape(value)}"' for key, value in named.items())
    return Html(f"<{name}{opened}>{join(content)}</{name}>")


def join(parts: Iterable[str], by: str = "") -> Html:
    """The parts one after another."""
    return Html(by.join(part if isinstance(part, Html) else escape(part) for part in parts))


def page(title: str, *content: str) -> str:
    """The whole page."""
    style = (files("annealz.views.report") / "style.css").read_text(encoding="utf-8")
    return _PAGE.format(title=escape(title), style=style, body=join(content, "\n"))


def section(title: str, *content: str) -> Html:
    """A part of the page under its heading."""
    return tag("section", tag("h2", title), *content)


def table(
    rows: Iterable[Sequence[str]], headings: Sequence[str] = (), caption: str | None = None
) -> Html:
    """A table whose first column heads its rows."""
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    parts = [] if caption is None else [tag("caption", caption)]
    if headings:
        cells = (tag("th", heading, scope="col") for heading in headings)
        parts.append(tag("thead", tag("tr", *cells)))
    kind = "grid" if headings else "pairs"
    shown = tag("table", *parts, tag("tbody", *body), class_=kind)
    return tag("div", shown, class_="scroll", tabindex="0") if headings else shown


def items(entries: Iterable[str]) -> Html:
    """A list."""
    return tag("ul", *(tag("li", entry) for entry in entries))


def code(text: str) -> Html:
    """Something to be typed: lines break between words, and not after the dashes of an option."""
    words = (part if part.isspace() else tag("span", part) for part in re.findall(r"\s+|\S+", text))
    return tag("pre", tag("code", *words))


def figures(*shown: tuple[Html, str]) -> Html:
    """Pictures with the words below them."""
    each = (tag("figure", picture, tag("figcaption", words)) for picture, words in shown)
    return tag("div", *each, class_="figures")
