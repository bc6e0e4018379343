"""The prose of the repository: strings, comments and pages, without code."""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

Passage = tuple[int, str]  # line, text

FENCE = re.compile(r"^([ \t]*)(```|~~~)(\w*)(.*?)^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(
    r"``(?:(?!\n\n)[^`])*``"
    r"|`(?:(?!\n\n)[^`])*`"
    r"|\]\([^)]*\)"  # where a link leads
    r"|https?://\S+"
    r"|<!--.*?-->"
    r"|<[a-z/][^<>]*>"
    r"|^\s*(?:>>>|\.\.\.) .*$"
    r"|^[ \t]*[\w, *]+ :(?= |$)"  # a parameter and its type
    r"|^\s*::: .*$"
    r"|\B--[a-z][\w-]*"
    r"|\$\$.*?\$\$"
    r"|\b\w+\.(?:py|md|json|npz|png|svg|html|csv)\b"
    r"|\b\w*_\w*\b",
    re.MULTILINE | re.DOTALL,
)


def _same_lines(match: re.Match[str]) -> str:
    return "\N{OBJECT REPLACEMENT CHARACTER}" + "\n" * match[0].count("\n")


def _fenced(match: re.Match[str]) -> str:
    """What a program printed is prose as a whole, of code only the comments are."""
    if match[3] == "text":
        return match[4]
    found = (re.search(r"(?:^|\s)# (.*)", line) for line in match[0].splitlines())
    return "\n".join("" if comment is None else f"{comment[1]}." for comment in found)


def without_code(text: str) -> str:
    """`text` with code, links and identifiers replaced by a mark."""
    return CODE.sub(_same_lines, FENCE.sub(_fenced, text))


def paragraphs(text: str, first: int = 1) -> Iterator[Passage]:
    """Paragraphs of a text with the line on which each begins, white space made single."""
    start, lines = first, []
    for number, line in enumerate(without_code(text).splitlines(), first):
        if line.strip():
            start = start if lines else number
            lines.append(line.strip())
        elif lines:
            yield start, re.sub(r"\s+", " ", " ".join(lines))
            lines = []
    if lines:
        yield start, re.sub(r"\s+", " ", " ".join(lines))


def comments(source: str) -> Iterator[Passage]:
    """Comments; those on lines that follow each other are one passage."""
    start, last, words = 0, 0, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if words and token.start[0] != last + 1:
            yield from paragraphs("\n".join(words), start)
            words = []
        start = start if words else token.start[0]
        last = token.start[0]
        words.append(token.string.lstrip("#: "))
    yield from paragraphs("\n".join(words), start)


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "_" for part in node.values)
    return None


def strings(source: str) -> Iterator[Passage]:
    """String literals, f-strings with a mark for each value. Words alone are keys, not prose."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.expr) or id(node) in inside:
            continue
        text = _text(node)
        if text is not None:
            inside.update(id(part) for part in ast.walk(node))
            if not re.fullmatch(r"[\w.\-/{}]*", text):
                yield from paragraphs(text, node.lineno)


def cells(source: str) -> Iterator[Passage]:
    """Markdown cells of a notebook, numbered, and the comments of its code."""
    for number, cell in enumerate(json.loads(source)["cells"], 1):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from ((number, words) for _, words in paragraphs(text))
        else:
            yield from ((number, words) for _, words in comments(text))


def targets(source: str) -> Iterator[Passage]:
    """Comments and helps of a Makefile or of a YAML file."""
    for number, line in enumerate(source.splitlines(), 1):
        if match := re.search(r"(?:^|\s)#+ (.*)$", line):
            yield from paragraphs(match[1], number)


def passages(path: Path) -> list[Passage]:
    """All prose of a file, by its suffix."""
    source = path.read_text()
    if path.suffix == ".py":
        return [*comments(source), *strings(source)]
    if path.suffix == ".ipynb":
        return list(cells(source))
    if path.suffix == ".md":
        return list(paragraphs(source))
    if path.suffix == ".yml":
        return list(paragraphs(source))
    return list(targets(source))
