"""Progress on stderr: a bar in a terminal, a line every ten seconds elsewhere, nothing if quiet."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from annealz.anneal import Progress

__all__ = ["show_enumeration", "show_labelled_progress", "show_progress"]

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def show_progress(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A function to call with the Progress of a run."""
    with show_labelled_progress(quiet) as show:
        yield None if show is None else (lambda now: show("annealing", now))


@contextmanager
def show_labelled_progress(quiet: bool) -> Iterator[Callable[[str, Progress], None] | None]:
    """A function to call with the name of a run and its Progress."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    with _bar(console, TextColumn("{task.fields[note]}")) as bar:
        task = bar.add_task("annealing", total=None, note="compiling")
        last = ""

        def update(label: str, now: Progress) -> None:
            nonlocal last
            if label != last:
                bar.reset(task, description=label)
                last = label
            note = "" if math.isnan(now.log_z) else f"log Z {now.log_z:.3f}  ESS {now.ess:.0f}"
            bar.update(task, total=now.num_steps, completed=now.step, note=note)

        yield update


@contextmanager
def show_enumeration(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A function to call with the fraction of an enumeration that is done."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with _bar(console) as bar:
        task = bar.add_task("enumerating", total=1.0)
        yield lambda done: bar.update(task, completed=done)


def _bar(console: Console, *columns) -> Bar:
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        *columns,
        console=console,
        transient=True,
    )


class _Lines:
    """Plain lines, for logs."""

    def __init__(self):
        self._label, self._last = "", time.monotonic()

    def __call__(self, label: str, now: Progress) -> None:
        clock = time.monotonic()
        if label != self._label or now.step < self._first:
            self._label, self._began, self._first = label, clock, now.step
        if clock - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = clock
        left = (clock - self._began) * (now.num_steps - now.step) / max(now.step - self._first, 1)
        found = "" if math.isnan(now.log_z) else f"  log Z {now.log_z:.3f}  ESS {now.ess:.0f}"
        print(
            f"{label}: step {now.step:,} of {now.num_steps:,}{found}  {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )
