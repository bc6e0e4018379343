"""The result on stdout: a table for people, one JSON object for programs."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from annealz.cli import strict

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "Result",
    "check_page",
    "check_plot",
    "open_console",
    "save_figure",
    "save_pages",
    "show_messages",
    "show_result",
    "show_rows",
]

_STATUS_STYLES = {"ok": "bold green", "unreliable": "bold red"}
_WORDS = ("model", "parameter", "status")  # columns that hold no numbers
_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)
_WIDE = 1000  # columns where nobody looks: lines of a file are not wrapped


class Result(Protocol):
    """What can be shown."""

    def rows(self) -> list[tuple[str, str]]: ...
    def to_dict(self) -> dict[str, Any]: ...


class Pictured(Protocol):
    """What has a picture and a page."""

    def plot(self) -> "Figure": ...
    def report(self, path: str | Path) -> None: ...


class _Stripped:
    """Stdout, with no blanks at the ends of lines."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


def open_console() -> Console:
    """Stdout: as wide as the terminal, or as the text where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDE, file=cast(IO[str], _Stripped()))


def show_result(
    result: Result, as_json: bool, highlight: str, next_command: str | None = None
) -> None:
    """Print a result, as one JSON object or as a table with this row in bold.

    `next_command` is what to type where the result is not good enough.
    """
    record = result.to_dict()
    strict.judge(record)
    if as_json:
        print(json.dumps(record, allow_nan=False))
        return
    console = open_console()
    show_rows(console, result.rows(), highlight)
    if hasattr(result, "headings"):  # a table of its own, such as that of rounds
        _show_table(console, result)
    show_messages(console, record["messages"])  # which name options
    if next_command is not None:  # to be copied, so that nothing breaks its line
        console.print(
            f"> {next_command}", style="bold", highlight=False, markup=False, soft_wrap=True
        )


def show_rows(console: Console, rows: list[tuple[str, str]], highlight: str = "") -> None:
    """Words and their values, below each other, this row in bold."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim" if console.is_terminal else None, no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        style = _STATUS_STYLES.get(value.split(",")[0], "") if label == "status" else ""
        table.add_row(label, Text(value, "bold" if label == highlight else style))
    console.print(table)


def _show_table(console: Console, result: Any) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim" if console.is_terminal else "")
    for heading in result.headings():
        table.add_column(heading, justify=_justified(heading), no_wrap=True)
    for row in result.table():
        table.add_row(*row)
    console.print()
    console.print(table)


def _justified(heading: str) -> Literal["left", "right"]:
    return "left" if heading in _WORDS else "right"


def show_messages(console: Console, messages: Iterable[str]) -> None:
    """One line each in a pipe, wrapped at words in a terminal."""
    for message in messages:
        if not console.file.isatty():
            console.print(Text(f"! {message}", "yellow"), soft_wrap=True)
            continue
        table = Table(show_header=False, box=None, padding=0, pad_edge=False, style="yellow")
        table.add_row(Text("! ", "yellow"), Text(message, "yellow"))
        console.print(table)


def check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be written, before the work is done."""
    if path is None:
        return
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:] not in known:
        raise ValueError(f"the picture {path} must end in one of {', '.join(sorted(known))}.")
    if not path.parent.is_dir():
        raise ValueError(f"the picture {path} is to go to a folder that does not exist.")


def check_page(path: Path | None) -> None:
    """Refuse a report that could not be written, before the work is done."""
    if path is not None:
        from annealz.views.report import check_report

        check_report(path)


def save_pages(result: Pictured, plot: Path | None, report: Path | None, as_json: bool) -> None:
    """The picture and the report that are wanted; one that cannot be written does not stop the other."""
    try:
        if plot is not None:
            save_figure(result.plot(), plot)
    finally:
        if report is not None:
            result.report(report)
            if not as_json:
                print(f"report: {report}")


def save_figure(figure: "Figure | SubFigure", path: Path) -> None:
    """Write a picture."""
    from matplotlib.figure import Figure

    try:
        assert isinstance(figure, Figure)
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ValueError(f"cannot write the picture {path}: {error.strerror or error}.") from error
