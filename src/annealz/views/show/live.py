"""Progress where somebody looks: a bar in a notebook or a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from annealz.views.html import in_notebook
from annealz.views.show.board import Board

__all__ = ["live_board"]


@contextmanager
def live_board() -> Iterator[Board | None]:
    """A board that is shown while it is filled; None where nobody looks."""
    if in_notebook():
        from annealz.views.show.notebook import notebook_board

        with notebook_board() as board:
            yield board
        return
    from rich.console import Console

    from annealz.views.show.terminal import terminal_board

    console = Console(stderr=True)
    if not (console.is_terminal and sys.stderr.isatty()):  # FORCE_COLOR makes a terminal of a pipe
        yield None
        return
    with terminal_board(console) as board:
        yield board
