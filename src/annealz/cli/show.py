"""Results on stdout: a table for people, one JSON object for programs; pictures and pages in files.

Letters that a stream of another encoding than UTF-8 cannot show are spelled in ASCII, by an error handler
of Python's codecs. A terminal whose locale is plain C gets ASCII altogether: Python itself takes UTF-8
there, and the terminal need not.
"""

from __future__ import annotations

import codecs
import dataclasses
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from annealz.io.files import check_file, writing

if TYPE_CHECKING:
    from annealz.cli.options import Options
    from annealz.diagnostics.sheet import Row, Sheet

_STATUS_STYLES = {"ok": "bold green", "unreliable": "bold red"}
# columns without numbers
_WORDS = ("model", "parameter", "status", "schedule", "training", "units")
_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)
_WIDE = 1000  # columns where nobody looks: lines of a file are not wrapped
_SPELLED = {"±": "+/-", "…": "...", "–": "-", "—": "-", "→": "->", "×": "x", "·": "*", "√": "sqrt"}
_SPELLED |= {"β": "beta", "τ": "tau", "≤": "<=", "≥": ">=", "’": "'", "\u0302": "^"}


def spell_letters() -> None:
    """Let stdout and stderr spell what they cannot show."""
    codecs.register_error("annealz.spelled", _spell)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # what tests put there may not have it
        if reconfigure is None:
            continue
        if stream.isatty() and _is_plain(os.environ):
            reconfigure(encoding="ascii", errors="annealz.spelled")
        elif (stream.encoding or "").lower().replace("-", "") != "utf8":
            reconfigure(errors="annealz.spelled")


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_SPELLED.get(letter, "?") for letter in letters), error.end


def _is_plain(environment: Mapping[str, str]) -> bool:
    """Whether the locale is C; LC_CTYPE=C.UTF-8 is passed over, because Python sets it there by itself."""
    names = [environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    said = [name for name in names if name and name != "C.UTF-8"] or names[:1]
    return said[0] in ("C", "POSIX")


class _Stripped:
    """Stdout, with no blanks at the ends of lines."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_BLANKS.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


def open_console() -> Console:
    """Open stdout: as wide as the terminal, or as the text where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDE, file=cast(IO[str], _Stripped()))


def show_sheet(sheet: Sheet, as_json: bool, next_command: str | None = None) -> None:
    """Print a sheet, as one JSON object or as a table with its headline in bold.

    `next_command` is what to type where the result is not good enough.
    """
    from annealz.diagnostics.findings import in_options, messages_of

    if as_json:
        print(json.dumps(sheet.to_dict(), allow_nan=False))
        return
    console = open_console()
    show_rows(console, sheet.rows, sheet.headline[0])
    if sheet.table is not None:
        console.print()
        show_table(console, sheet.table.headings, sheet.table.rows)
    _show_messages(console, messages_of(sheet.notes, in_options))
    if next_command is not None:  # to be copied, so that nothing breaks its line
        console.print(
            f"> {next_command}", style="bold", highlight=False, markup=False, soft_wrap=True
        )


def show_rows(console: Console, rows: Iterable[Row], highlight: str = "") -> None:
    """Print words and their values below each other, one row in bold."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim" if console.is_terminal else None, no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        style = _STATUS_STYLES.get(value.split(",")[0], "") if label == "status" else ""
        table.add_row(label, Text(value, "bold" if label == highlight else style))
    console.print(table)


def show_table(console: Console, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table, columns of numbers to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim" if console.is_terminal else "")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _WORDS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _show_messages(console: Console, messages: Iterable[str]) -> None:
    """Print one line each in a pipe, wrapped at words in a terminal."""
    for message in messages:
        if not console.file.isatty():
            console.print(Text(f"! {message}", "yellow"), soft_wrap=True)
            continue
        table = Table(show_header=False, box=None, padding=0, pad_edge=False, style="yellow")
        table.add_row(Text("! ", "yellow"), Text(message, "yellow"))
        console.print(table)


def with_log10(sheet: Sheet) -> Sheet:
    """Return the sheet with log10 Z too."""
    names = {"log10_z": "log_z", "log10_std_err": "std_err", "exact_log10_z": "exact_log_z"}
    known = {new: sheet.record.get(old) for new, old in names.items()}
    values = {name: None if v is None else v / math.log(10) for name, v in known.items()}
    error, exact = values["log10_std_err"], values["exact_log10_z"]
    text = f"{values['log10_z']:.5f} ± " + ("unknown" if error is None else f"{error:.5f}")
    text += "" if exact is None else f" (exact {exact:.5f})"
    place = 1 + [label for label, _ in sheet.rows].index("log Z")
    rows = (*sheet.rows[:place], ("log10 Z", text), *sheet.rows[place:])
    return dataclasses.replace(sheet, rows=rows, record={**sheet.record, **values})


def check_outputs(options: Options) -> None:
    """Refuse a picture or a page that could not be written, before the work is done."""
    check_plot(getattr(options, "plot", None))
    if getattr(options, "report", None) is not None:
        from annealz.views.report import check_report

        check_report(options.report)


def check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be written, before the work is done."""
    if path is not None:
        from matplotlib.figure import Figure

        known = Figure().canvas.get_supported_filetypes()
        check_file(path, "picture", [f".{ending}" for ending in sorted(known)])


def check_free(path: Path, force: bool) -> None:
    """Refuse to overwrite a file unasked."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists: choose another name, or overwrite it with --force.")


def save_pages(options: Options, result: Any) -> None:
    """Write the picture and the page that are wanted; if one cannot be written, the other is."""
    plot, report = (getattr(options, name, None) for name in ("plot", "report"))
    try:
        if plot is not None:
            save_figure(result.plot(), plot)
    finally:
        if report is not None:
            result.report(report)
            if not options.as_json:
                print(f"report: {report}")


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture."""
    with writing(f"the picture {path}"):
        figure.savefig(path, dpi=150)
