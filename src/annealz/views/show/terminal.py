"""The board in a terminal: three lines on stderr that redraw themselves and go when the work is done.

    ✓ pilot 0.9 s  ✓ schedule 0.1 s
    annealing  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━──────────────────────────  53 %  7 s left
    ESS        ▇▇▆▆▅▅▄▄▄▃▃▃▃▃▃▃▂▂▂▂▂▂▂▂▂▂▂▂▂▂                            341 of 1,000  log Z 201.782

No line is as wide as the terminal, so that none wraps and the ^C of a terminal fits behind. Where letters
beyond ASCII cannot be shown the signs are #, - and digits. A terminal that cannot move its cursor
(TERM=dumb) gets one plain line a stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from annealz.views.show.board import Board, duration

__all__ = ["Screen", "sparkline", "terminal_board"]

_BLOCKS, _DIGITS = "▁▂▃▄▅▆▇█", "0123456789"
_LABEL = 10  # columns, at least
_WIDEST = 100
_SPARE = 3  # columns left free
_NARROW = 60  # below, only numbers stand beside the bar
_REFRESH = 8  # times a second


def sparkline(levels: list[float], is_ascii: bool = False) -> str:
    """Values between 0 and 1, one character each."""
    signs = _DIGITS if is_ascii else _BLOCKS
    return "".join(signs[min(int(level * len(signs)), len(signs) - 1)] for level in levels)


class Screen:
    """The lines of a board, for rich."""

    def __init__(self, board: Board):
        self.board = board

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(min(options.max_width, _WIDEST) - _SPARE, 1)
        for line in self.lines(room, options.ascii_only or options.legacy_windows):
            line.no_wrap, line.overflow = True, "crop"
            line.truncate(room)
            yield line

    def lines(self, room: int, is_ascii: bool) -> list[Text]:
        board = self.board
        tick, full, empty = ("*", "#", "-") if is_ascii else ("✓", "━", "─")
        lines: list[Text] = []
        if board.over:
            done = [f"{tick} {stage.label} {duration(stage.seconds)}" for stage in board.over]
            while len(done) > 1 and len("  ".join(done)) > room:
                done = done[1:]
            lines.append(Text("  ".join(done), style="dim"))
        is_narrow = room < _NARROW
        width = max(_LABEL, len(board.label)) + 1
        beside, below = self._beside(is_narrow)
        if not board.is_measured:
            lines.append(Text.assemble((f"{board.label:<{width}}", "bold"), beside))
            return lines
        cells = max(room - width - max(len(beside), len(below)) - 2, 4)
        filled = round(board.share * cells)
        bar = Text.assemble(
            (f"{board.label:<{width}}", "bold"),
            (full * filled, "cyan"),
            (empty * (cells - filled), "dim"),
            f"  {beside}",
        )
        lines.append(bar)
        levels = board.levels(cells)
        if levels:
            curve = sparkline(levels, is_ascii)
            lines.append(
                Text.assemble(
                    (f"{'ESS':<{width}}", "dim"), (f"{curve:<{cells}}", "green"), f"  {below}"
                )
            )
        return lines

    def _beside(self, is_narrow: bool) -> tuple[str, str]:
        """What stands to the right of the bar, and of the sparkline."""
        board = self.board
        share, left = f"{100 * board.share:3.0f} %", board.seconds_left
        if not board.is_measured:
            return duration(board.seconds), ""
        if left is None or board.share == 1:
            when = ""
        else:
            when = duration(left) if is_narrow else f"{duration(left)} left"
        if is_narrow:
            return f"{share} {when:<6}", board.gauge.partition(" ")[0]
        note = board.note if not board.gauge else ""
        below = f"{board.gauge}  {board.note}".strip()
        return "  ".join(word for word in (share, f"{when:<11}", note) if word), below


@contextmanager
def terminal_board(console: Console) -> Iterator[Board]:
    """A board that is shown while it is filled."""
    if console.is_dumb_terminal:
        yield _PlainBoard(console)
        return
    board = Board()
    with Live(
        Screen(board),
        console=console,
        transient=True,
        refresh_per_second=_REFRESH,
        redirect_stdout=False,
        vertical_overflow="crop",
    ):
        yield board


class _PlainBoard(Board):
    """Prints the name of every stage, once."""

    def __init__(self, console: Console):
        super().__init__()
        self._console = console

    def update(self, label: str, done: int, total: int, **rest) -> None:
        if label != self.label:
            self._console.print(f"annealz: {label}", highlight=False, soft_wrap=True, markup=False)
        super().update(label, done, total, **rest)
