"""TeX between dollars becomes MathML when the site is built: pages need neither a script nor a network.

The extension arithmatex finds the formulas (not in code) and marks them; `latex2mathml` writes them.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_FUNCTION = re.compile(r"(<mi>log</mi>)(?!<mo)")  # TeX puts a thin space after it, MathML nothing


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return _MARKED.sub(_formula, content)


def _formula(match: re.Match[str]) -> str:
    display = "block" if match["tag"] == "div" else "inline"
    formula = convert(html.unescape(match["tex"]).strip(), display=display)
    return _FUNCTION.sub(r'\1<mspace width="0.167em"/>', formula)
