"""TeX between dollars becomes MathML when the site is built: pages need neither a script nor a network.

The extension arithmatex finds the formulas (not in code) and marks them; `latex2mathml` writes them. The
cells of text of notebooks come with their dollars.
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
_CELL = re.compile(r'<div class="jp-RenderedHTMLCommon jp-RenderedMarkdown.*?</div>', re.DOTALL)
_DOLLARS = re.compile(
    r"<(?:code|pre).*?</(?:code|pre)>|(?P<dollars>\$\$?)(?P<tex>.+?)(?P=dollars)", re.DOTALL
)
_FUNCTION = re.compile(
    r"(?<!<msub>)(<mi>log</mi>)(?!<mo)"
)  # TeX puts a thin space after it, MathML nothing


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.endswith(".ipynb"):
        content = _CELL.sub(lambda cell: _DOLLARS.sub(_mark, cell[0]), content)
    return _MARKED.sub(_formula, content)


def _mark(match: re.Match[str]) -> str:
    if match["tex"] is None:
        return match[0]
    tag, opening, closing = ("div", "[", "]") if match["dollars"] == "$$" else ("span", "(", ")")
    return f'<{tag} class="arithmatex">\\{opening}{match["tex"]}\\{closing}</{tag}>'


def _formula(match: re.Match[str]) -> str:
    display = "block" if match["tag"] == "div" else "inline"
    formula = convert(html.unescape(match["tex"]).strip(), display=display)
    return _FUNCTION.sub(r'\1<mspace width="0.167em"/>', formula)
