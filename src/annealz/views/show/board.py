"""What is being done, how far it is, and how long it will take: the state behind every progress bar.

    seconds left  =  seconds since the first report of a stage  x  steps left / steps since then

so that compiling, which comes before the first report, is not counted. The sparkline has one cell for each
equal share of the steps of a stage, and shows in it the lowest level reported there; a cell that no report
fell into shows that of the cell before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from annealz.engine.progress import Progress

__all__ = ["Board", "Done", "duration", "label_of", "report_labelled_to", "report_to"]

_LABELS = {
    "marginal": "marginal",
    "base": "base",
    "tuning": "tuning",
    "pilot": "pilot",
    "schedule": "schedule",
    "sizing": "sizing",
    "timing": "timing",
    "run": "annealing",
    "draws": "draws",
    "reverse": "reverse",
    "below": "lower bound",
}
_NOTHING = "starting"
_MINOR = {"base", "tuning", "timing", "draws"}  # not listed afterwards if they are brief
_BRIEF = 0.5  # seconds


class Done(NamedTuple):
    """A stage that is over."""

    label: str
    seconds: float


class Board:
    """The stages so far, and the one that runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self.over: list[Done] = []
        self.label = _NOTHING
        self.done, self.total = 0, 1
        self.note = ""
        self.gauge = ""
        self._levels: list[tuple[float, float]] = []  # (share of the steps, level)
        self._began = clock()
        self._first: tuple[float, int] | None = None

    def update(
        self,
        label: str,
        done: int,
        total: int,
        *,
        note: str = "",
        gauge: str = "",
        level: float = math.nan,
    ) -> None:
        """What is done of a stage; `level` between 0 and 1 goes to the sparkline, `gauge` beside it."""
        clock = self._clock()
        if label != self.label or done < self.done:
            self._close(clock)
            self.label, self._levels, self._first = label, [], None
        if self._first is None and done > 0:
            self._first = clock, done
        self.done, self.total, self.note, self.gauge = done, max(total, 1), note, gauge
        if not math.isnan(level):
            self._levels.append((self.share, min(max(level, 0.0), 1.0)))

    def finish(self) -> None:
        """The last stage is over."""
        self._close(self._clock())
        self.done = 0

    @property
    def share(self) -> float:
        """Of the stage that runs, what is done."""
        return min(self.done / self.total, 1.0)

    @property
    def is_measured(self) -> bool:
        """Whether the stage reports how far it is."""
        return self.total > 1

    @property
    def seconds(self) -> float:
        """That the stage has run for."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Of the stage; None if it is not known yet."""
        if self._first is None or self.done <= self._first[1]:
            return None
        began, first = self._first
        return (self._clock() - began) * (self.total - self.done) / (self.done - first)

    def levels(self, width: int) -> list[float]:
        """The sparkline so far, as values of its first cells."""
        cells: dict[int, float] = {}
        for share, level in self._levels:
            cell = min(int(share * width), width - 1)
            cells[cell] = min(level, cells.get(cell, 1.0))
        values: list[float] = []
        first = next(iter(cells.values()), 1.0)
        for cell in range(max(cells, default=-1) + 1):
            values.append(cells.get(cell, values[-1] if values else first))
        return values

    def _close(self, clock: float) -> None:
        is_minor = self.label in _MINOR and clock - self._began < _BRIEF
        if self.label != _NOTHING and not is_minor:
            self.over.append(Done(self.label, clock - self._began))
        self._began = clock


def label_of(now: Progress) -> str:
    """The stage in words, with its part where there are several."""
    label = _LABELS.get(now.stage, now.stage)
    if now.num_parts > 1:
        return f"{label} {now.part}/{now.num_parts}"
    return f"{label} {now.part}" if now.part > 1 else label


def report_to(board: Board) -> Callable[[Progress], None]:
    """What shows a Progress on the board."""
    return lambda now: _show(board, label_of(now), now)


def report_labelled_to(board: Board) -> Callable[[str, Progress], None]:
    """The same where every run has a name."""

    def report(name: str, now: Progress) -> None:
        _show(board, name if now.stage == "run" else f"{name}, {label_of(now)}", now)

    return report


def _show(board: Board, label: str, now: Progress) -> None:
    note, gauge, level = "", "", math.nan
    if not math.isnan(now.ess) and now.num_chains:
        gauge = f"{now.ess:,.0f} of {now.num_chains:,}"
        level = now.ess / now.num_chains
    if not math.isnan(now.log_z):
        note = f"log Z {now.log_z:.3f}"
    board.update(label, now.step, now.num_steps, note=note, gauge=gauge, level=level)


def duration(seconds: float) -> str:
    """Seconds for people: 0.4 s, 12 s, 3:05, 1:02:03."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
