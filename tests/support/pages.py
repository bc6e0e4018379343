"""The pages that users read, and what is in them: code that must run, commands that must exist.

Blocks of a page share their names and their folder, and run from top to bottom. A block of Python under
the line `<!-- not run: reason -->` is only compiled. A console block shows commands, whose options and
values are checked; under the line `<!-- run -->` its annealz commands are run as well.
"""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import typer

from annealz.cli.main import app, run
from support.places import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for pattern in ("*.md", "docs/**/*.md", "papers/*/README.md", "studies/*/README.md")
    for path in sorted(ROOT.glob(pattern))
}
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>(?:not )?run[^\n]*) -->\n\n?)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"(?:^|\s)annealz (?P<words>[a-z]+( .*)?)$")


class Block(NamedTuple):
    language: str
    code: str
    mark: str


def blocks(page: str) -> Iterator[Block]:
    for match in _BLOCK.finditer(PAGES[page]):
        yield Block(match["language"], match["code"], match["mark"] or "")


def commands(code: str) -> Iterator[list[str]]:
    """The words after `annealz` of every command in a console block."""
    for line in re.sub(r"\\\n\s*", "", code).splitlines():
        shown = _COMMAND.search(line.split(" # ")[0].rstrip())
        if shown is not None:
            yield shlex.split(shown["words"])


def run_page(page: str) -> dict:
    """Run it in the current folder; returns the names that its Python blocks leave."""
    names: dict = {}
    for number, block in enumerate(blocks(page), 1):
        place = f"{page}, block {number}"
        if block.language == "python":
            code = compile(block.code, place, "exec")
            if not block.mark.startswith("not run"):
                exec(code, names)
        elif block.language == "console" and block.mark == "run":
            for words in commands(block.code):
                assert run(words) == 0, f"{place}: annealz {shlex.join(words)}"
    return names


def options(command: str) -> dict[str, object]:
    """The options of a command by name, those of all commands for an empty name."""
    found = {"--help": None, "--version": None, "--install-completion": None}
    for name, each in _commands().items():
        if command in ("", name):
            found |= {text: param for param in each.params for text in param.opts}
            found |= {text: param for param in each.params for text in param.secondary_opts}
    return found


def check_command(words: list[str]) -> None:
    """Refuse a command, option or value that annealz would refuse; files need not exist."""
    name, *rest = words
    assert name in _commands(), f"annealz has no command {name}"
    _commands()[name].make_context(name, rest)  # reads the words, and runs nothing


def _commands() -> dict:
    return typer.main.get_command(app).commands  # pyright: ignore
