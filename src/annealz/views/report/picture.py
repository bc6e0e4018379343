"""Axes as SVG inside a page, in the page's colours.

Matplotlib writes colours into style attributes. Each colour of `plots/style.py` is replaced by a variable
of the page, which has one value for light and one for dark. Text remains text: it can be read aloud,
searched, and has the page's fonts. What several pictures of one page would share by accident, the names of
clips and markers, gets a prefix.
"""

import io
import re
from html import escape

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annealz.views.plots import style
from annealz.views.report.page import Html

__all__ = ["picture"]

_VARIABLES = {
    style.BLUE: "--blue",
    style.RED: "--red",
    style.GREEN: "--green",
    style.PURPLE: "--purple",
    style.GREY: "--quiet",
    style.INK: "--ink",
}


def picture(ax: Axes, name: str, words: str) -> Html:
    """The figure of these axes; `name` is its own on the page, `words` say what is to be seen."""
    figure = ax.figure
    assert isinstance(figure, Figure)
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*;?\s*", "", text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return Html(_titled(_renamed(text, name), name, words))


def _renamed(text: str, name: str) -> str:
    """Without names that nothing uses, and those that are used with this one before them."""
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", text))

    def keep(found: re.Match) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    text = re.sub(r' id="([^"]*)"', keep, text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    return re.sub(r'xlink:href="#', f'href="#{name}-', text)


def _titled(text: str, name: str, words: str) -> str:
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opened = f'<svg role="img" aria-labelledby="{name}-words" {box[0]}>'
    said = escape(words.replace(r"\$", "$"))  # dollars are escaped in titles of axes
    title = f'<title id="{name}-words">{said}</title>'
    return re.sub(r"<svg[^>]*>", lambda _: opened + title, text, count=1)
