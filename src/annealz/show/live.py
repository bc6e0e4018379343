"""Progress where somebody looks: a bar in a notebook or a terminal, nothing anywhere else."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from annealz.show.board import Board, report_labelled_to, report_to

__all__ = ["in_notebook", "live_board", "shown", "shown_by_name"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this, and shows HTML."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()  # pyright: ignore
    return found is not None and hasattr(found, "kernel")


@contextmanager
def live_board() -> Iterator[Board | None]:
    """A board that is shown while it is filled; None where nobody looks."""
    if in_notebook():
        from annealz.show.notebook import notebook_board

        with notebook_board() as board:
            yield board
        return
    from rich.console import Console

    from annealz.show.terminal import terminal_board

    console = Console(stderr=True)
    if not (console.is_terminal and sys.stderr.isatty()):  # FORCE_COLOR makes a terminal of a pipe
        yield None
        return
    with terminal_board(console) as board:
        yield board


def shown(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, its progress shown where `progress=True`; `on_progress` is called all the same."""
    return _showing(function, report_to)


def shown_by_name(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The same for a function whose runs have names."""
    return _showing(function, report_labelled_to)


def _showing(function: Callable[Given, Result], reporter: Callable) -> Callable[Given, Result]:
    @functools.wraps(function)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
        given: dict[str, Any] = dict(options)
        if not given.pop("progress", False):
            return function(*arguments, **given)  # pyright: ignore[reportCallIssue]
        with live_board() as board:
            if board is not None:
                given["on_progress"] = _both(reporter(board), given.get("on_progress"))
            return function(*arguments, **given)  # pyright: ignore[reportCallIssue]

    return call


def _both(first: Callable, second: Callable | None) -> Callable:
    if second is None:
        return first

    def report(*now: Any) -> None:
        first(*now)
        second(*now)

    return report
