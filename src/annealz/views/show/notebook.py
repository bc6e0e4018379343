"""The board in a notebook: one output that updates itself, and ends as a line on what took how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from annealz.views.show.board import Board, duration
from annealz.views.show.html import curve

__all__ = ["board_html", "notebook_board"]

_SECONDS_BETWEEN = 0.1
_WIDTH, _HEIGHT = 240, 22  # of the sparkline, pixels
_CELLS = 60
_LINE = "font-family:monospace;font-size:90%;line-height:1.5"


def board_html(board: Board) -> str:
    """The stage that runs, with a bar, the time left and the ESS so far."""
    left = board.seconds_left
    when = "" if left is None or board.share == 1 else f"{duration(left)} left"
    words = [f"{100 * board.share:.0f} %", when, board.note]
    bar = (
        f"<progress value='{board.share:.4f}' max='1' style='width:{_WIDTH}px;"
        f"vertical-align:middle'></progress>"
    )
    shown = " &middot; ".join(escape(word) for word in words if word)
    rows = [f"<b>{escape(board.label)}</b>" + (f" {bar} {shown}" if board.is_measured else "")]
    levels = board.levels(_CELLS)
    if len(levels) > 1:
        width = max(round(_WIDTH * len(levels) / _CELLS), 2)
        rows.append(f"ESS {curve(levels, width, _HEIGHT)} {escape(board.gauge)}")
    return f"<div style='{_LINE}'>{_over(board)}{'<br>'.join(rows)}</div>"


def _over(board: Board) -> str:
    """The stages that are over."""
    if not board.over:
        return ""
    shown = " &middot; ".join(
        f"{escape(stage.label)} {duration(stage.seconds)}" for stage in board.over
    )
    return f"<span style='opacity:.65'>&#10003; {shown}</span><br>"


class _NotebookBoard(Board):
    def __init__(self):
        from IPython.display import HTML, display

        super().__init__()
        self._html, self._last = HTML, time.monotonic()
        self._handle = display(HTML(board_html(self)), display_id=True)

    def update(self, *arguments, **options) -> None:
        super().update(*arguments, **options)
        if time.monotonic() - self._last > _SECONDS_BETWEEN:
            self.draw(board_html(self))

    def draw(self, html: str) -> None:
        self._last = time.monotonic()
        if self._handle is not None:
            self._handle.update(self._html(html))


@contextmanager
def notebook_board() -> Iterator[Board]:
    """A board that is shown while it is filled, and ends with what was done or where it was cut off."""
    board = _NotebookBoard()
    try:
        yield board
    except BaseException as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        where = f"{board.label}, {100 * board.share:.0f} %"
        board.draw(f"<div style='{_LINE}'>{_over(board)}{why} in {escape(where)}</div>")
        raise
    board.finish()
    board.draw(f"<div style='{_LINE}'>{_over(board)}</div>")
