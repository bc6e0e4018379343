"""Progress where somebody looks: a bar of rich in a terminal, HTML in a notebook, nothing anywhere else.

    pilot 0.9 s  schedule 0.1 s
    annealing ━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━  53 %  7 s left
    ESS 341 of 1,000  log Z 201.782

The time left of a stage counts from its first report, so that compiling, which comes before, is not in
it. A terminal that cannot move its cursor (TERM=dumb) gets one plain line per stage.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from annealz.training.train import TrainingProgress

_LABELS = {"run": "annealing", "second": "second opinion", "below": "lower bound"}
_NOTHING = "starting"
_MINOR = {"base", "tuning", "timing", "draws"}  # not listed afterwards if they are brief
_BRIEF = 0.5  # seconds
_REFRESH = 8  # times a second
_SPARE = 3  # columns left free, for the ^C of a terminal
_LINE = "font-family:monospace;font-size:90%;line-height:1.5"


class Board(Progress):
    """The stages that are over, and the one that runs."""

    def __init__(self, console: Console, **options: Any):
        self.over: list[tuple[str, float]] = []
        """Stages and their seconds."""
        self.note = ""
        self._screen = console
        cropped = Column(no_wrap=True, overflow="crop")
        super().__init__(
            TextColumn("{task.description}", style="bold", markup=False, table_column=cropped),
            BarColumn(complete_style="cyan", finished_style="cyan"),
            _HowFar(cropped),
            console=console,
            transient=True,
            redirect_stdout=False,
            refresh_per_second=_REFRESH,
            **options,
        )
        self._number = self.add_task(_NOTHING, total=None)

    @property
    def stage(self) -> Task:
        """The stage that runs; its total is None where it does not report how far it is."""
        return self.tasks[0]

    def show(self, label: str, done: int, total: int, note: str = "") -> None:
        """Show how much of a stage is done."""
        if label != self.stage.description or done < self.stage.completed:
            self.close()
            self.reset(self._number, description=label)
            if self.console.is_dumb_terminal:
                self.console.print(f"annealz: {label}", highlight=False, markup=False)
        self.note, self.stage.total = note, total if total > 1 else None
        self.update(self._number, completed=done)

    def close(self) -> None:
        """Put the stage that runs on the list of those that are over."""
        label, seconds = self.stage.description, self.stage.elapsed or 0.0
        if label != _NOTHING and not (label in _MINOR and seconds < _BRIEF):
            self.over.append((label, seconds))

    @property
    def over_in_words(self) -> str:
        """The stages that are over, with their times."""
        return "  ".join(f"{label} {duration(seconds)}" for label, seconds in self.over)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the lines of a terminal; the latest stages are those that fit."""
        room = max(self._screen.width - _SPARE, 1)
        bar = Padding(self.make_tasks_table(self.tasks), (0, _SPARE, 0, 0), expand=False)
        for line in (Text(self.over_in_words[-room:], "dim"), bar, Text(self.note[:room], "dim")):
            if line:
                yield line


class _HowFar(ProgressColumn):
    """The share that is done with the time left, or the time so far."""

    def render(self, task: Task) -> Text:
        return Text(_how_far(task), no_wrap=True)


def _how_far(task: Task) -> str:
    if task.total is None:
        return duration(task.elapsed or 0.0)
    left = None if task.finished else task.time_remaining
    when = "" if left is None else f"{duration(left)} left"
    return f"{task.percentage:3.0f} %  {when:<11}"


def duration(seconds: float) -> str:
    """Return seconds for people: 0.4 s, 12 s, 3:05, 1:02:03."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def report_to(board: Board) -> Callable[..., None]:
    """Return the function that shows a Progress, or the name of a run and its Progress."""

    def report(*given: Any) -> None:
        *names, now = given
        label: str = _LABELS.get(now.stage) or now.stage
        if now.num_parts > 1:
            label += f" {now.part}/{now.num_parts}"
        elif now.part > 1:
            label += f" {now.part}"
        for name in names:
            label = name if now.stage == "run" else f"{name}, {label}"
        notes = []
        if not math.isnan(now.ess) and now.num_chains:
            notes.append(f"ESS {now.ess:,.0f} of {now.num_chains:,}")
        if not math.isnan(now.log_z):
            notes.append(f"log Z {now.log_z:.3f}")
        board.show(label, now.step, now.num_steps, "  ".join(notes))

    return report


def training_report(board: Board) -> Callable[[TrainingProgress], None]:
    """Return the function that shows a TrainingProgress."""

    def report(now: TrainingProgress) -> None:
        rate = now.updates_per_second
        speed = "" if math.isnan(rate) else f"  {rate:,.0f}/s"
        error, likelihood = now.fitness
        note = f"error {error:.4f}  pseudo-likelihood {likelihood:.1f}{speed}"
        board.show("training", now.num_done, now.num_updates, note)

    return report


def enumeration_report(board: Board) -> Callable[[float], None]:
    """Return the function that shows the fraction of an enumeration that is done."""
    return lambda done: board.show("enumerating", round(1000 * done), 1000)


@contextmanager
def live_report(
    kind: Callable[[Board], Callable[..., None]] = report_to, is_quiet: bool = False
) -> Iterator[Callable[..., None] | None]:
    """Show a board that a function of this kind fills; None if quiet or where nobody looks."""
    if is_quiet:
        yield None
        return
    with live_board() as board:
        yield None if board is None else kind(board)


def live_board() -> AbstractContextManager[Board | None]:
    """Return a board that is shown while it is filled; None where nobody looks."""
    if in_notebook():
        return _NotebookBoard()
    console = Console(stderr=True)
    if not (console.is_terminal and sys.stderr.isatty()):  # FORCE_COLOR makes a terminal of a pipe
        return nullcontext()
    board = Board(console)
    return nullcontext(board) if console.is_dumb_terminal else board


def in_notebook() -> bool:
    """Check whether a Jupyter kernel runs this, and shows HTML."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()  # pyright: ignore
    return shell is not None and hasattr(shell, "kernel")


def notebook_html(board: Board, end: str | None = None) -> str:
    """Return a board as HTML: the stages that are over, then the one that runs or how it all ended."""
    over = f"<span style='opacity:.65'>{escape(board.over_in_words)}</span><br>"
    stage, bar = board.stage, ""
    if stage.total is not None:
        share = stage.percentage / 100
        bar = f"<progress value='{share:.4f}' max='1' style='vertical-align:middle'></progress>"
    words = f"{_how_far(stage)}  {board.note}"
    running = f"<b>{escape(stage.description)}</b> {bar} {escape(words)}"
    return f"<div style='{_LINE}'>{over}{running if end is None else escape(end)}</div>"


class _NotebookBoard(Board):
    """A board in one output of a notebook, which ends with what was done, or where it was cut off."""

    def __init__(self):
        from IPython.display import HTML, display

        super().__init__(Console(stderr=True, force_jupyter=False))
        self._html, self._last = HTML, time.monotonic()
        self._handle = display(HTML(notebook_html(self)), display_id=True)

    def __enter__(self):
        return self  # nothing refreshes it but `show`

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        end = ""
        if kind is None:
            self.close()
        else:
            why = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
            end = f"{why} in {self.stage.description}, {self.stage.percentage:.0f} %"
        self._draw(end)

    def show(self, label: str, done: int, total: int, note: str = "") -> None:
        super().show(label, done, total, note)
        if time.monotonic() - self._last > 1 / _REFRESH:
            self._last = time.monotonic()
            self._draw()

    def _draw(self, end: str | None = None) -> None:
        if self._handle is not None:
            self._handle.update(self._html(notebook_html(self, end)))
