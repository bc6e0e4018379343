"""Pages of the site that live outside docs/, and links that hold in the repository and on the site.

A file has one place in the repository and one on the site:

    README.md                     index.md
    docs/NAME                     NAME
    studies/ising/README.md       studies/ising/index.md
    anything else                 the same

Links are written as they hold in the repository, and are turned here. What a page links to comes along:
pages and pictures as they are, programs and plain text as a page that shows them. A folder has no page, so
that its link becomes plain text. A link that leads nowhere is left as it is, for MkDocs to complain. Where
the text of a link is the name of a page's file, the page's title takes its place.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "papers/*/README.md",
    "studies/*/README.md",
)
SHOWN = {".py": "python", ".cff": "yaml", "": "text"}
"""What is shown inside a page, by suffix, and the language of it."""

_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<link>[^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_sources: dict[str, str] = {}
"""Place on the site of what comes from elsewhere, and its place in the repository."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    _sources.clear()
    waiting = [path.relative_to(ROOT).as_posix() for page in PAGES for path in ROOT.glob(page)]
    inside = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    waiting += [source for page in inside if page.endswith(".md") for source in _linked(page)]
    while waiting:
        source = waiting.pop()
        place = _place(source)
        if place in _sources:
            continue
        _sources[place] = source
        files.append(_file(source, place, config))
        if source.endswith(".md"):
            waiting += _linked(source)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    source = _sources.get(here, f"docs/{here}")

    def turned(match: re.Match[str]) -> str:
        path, mark, anchor = match["link"].partition("#")
        target = _target(source, path)
        if target is None:
            return match[0]
        if (ROOT / target).is_dir():
            return match["text"].removeprefix("!")[1:-1]
        link = posixpath.relpath(_place(target), posixpath.dirname(here))
        text = match["text"]
        if text[1:-1] in (path, target, posixpath.dirname(target)) and target.endswith(".md"):
            text = f"[{_title(target)}]"
        return f"{text}({link}{mark}{anchor})"

    return "".join(
        part if is_code else _LINK.sub(turned, part) for part, is_code in _parts(markdown)
    )


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Of notebooks, whose text is turned into HTML before anybody sees it."""
    here = page.file.src_uri
    if not here.endswith(".ipynb"):
        return content

    def turned(match: re.Match[str]) -> str:
        target = _target(f"docs/{here}", match["link"])
        if target is None or (ROOT / target).is_dir():
            return match[0]
        link = posixpath.relpath(_place(target), posixpath.dirname(here))
        return match[0].replace(match["link"], re.sub(r"\.(md|ipynb)$", ".html", link))

    return re.sub(r'href="(?P<link>[^"#:]+)(?=["#])', turned, content)


def _file(source: str, place: str, config: MkDocsConfig) -> File:
    path = ROOT / source
    if path.suffix not in SHOWN:
        return File.generated(config, place, abs_src_path=str(path))
    text = f"# {source}\n\n```{SHOWN[path.suffix]}\n{path.read_text().strip()}\n```\n"
    return File.generated(config, place, content=text)


def _place(source: str) -> str:
    folder, name = posixpath.split(source.removeprefix("docs/"))
    name = "index.md" if name == "README.md" else name
    if posixpath.splitext(name)[1] in SHOWN:
        name += ".md"
    return posixpath.join(folder, name)


def _title(source: str) -> str:
    return (ROOT / source).read_text().partition("\n")[0].removeprefix("# ")


def _linked(source: str) -> Iterator[str]:
    """The files that a page links to and MkDocs does not know by itself."""
    for part, is_code in _parts((ROOT / source).read_text()):
        for match in () if is_code else _LINK.finditer(part):
            target = _target(source, match["link"].partition("#")[0])
            if target is None or not (ROOT / target).is_file():
                continue
            if not target.startswith("docs/") or Path(target).suffix in SHOWN:
                yield target


def _target(source: str, link: str) -> str | None:
    """The place in the repository that a link leads to, if it leads to one."""
    if not link or ":" in link:
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return target if (ROOT / target).exists() else None


def _parts(markdown: str) -> Iterator[tuple[str, bool]]:
    """Text and fenced code in turn, and whether it is code."""
    end = 0
    for fence in _FENCE.finditer(markdown):
        yield markdown[end : fence.start()], False
        yield fence[0], True
        end = fence.end()
    yield markdown[end:], False
