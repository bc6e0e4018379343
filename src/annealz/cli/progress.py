"""Progress on stderr: a bar in a terminal, a line every ten seconds elsewhere, nothing if quiet."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from annealz.anneal import Progress
    from annealz.training.train import TrainingProgress

__all__ = ["show_enumeration", "show_labelled_progress", "show_progress", "show_training"]

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def show_progress(
    quiet: bool, label: str = "annealing"
) -> Iterator[Callable[[Progress], None] | None]:
    """A function to call with the Progress of a run."""
    with show_labelled_progress(quiet) as show:
        yield None if show is None else (lambda now: show(label, now))


@contextmanager
def show_labelled_progress(quiet: bool) -> Iterator[Callable[[str, Progress], None] | None]:
    """A function to call with the name of a run and its Progress."""
    with _show("annealing", "step", quiet) as show:

        def update(label: str, now: Progress) -> None:
            note = "" if math.isnan(now.log_z) else f"log Z {now.log_z:.3f}  ESS {now.ess:.0f}"
            show(label, now.step, now.num_steps, note)

        yield None if quiet else update


@contextmanager
def show_training(quiet: bool) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """A function to call with the TrainingProgress of a training."""
    with _show("training", "update", quiet) as show:

        def update(now: TrainingProgress) -> None:
            rate = now.updates_per_second
            speed = "" if math.isnan(rate) else f"  {rate:,.0f}/s"
            error, likelihood = now.fitness
            note = f"error {error:.4f}  pseudo-likelihood {likelihood:.1f}{speed}"
            show("training", now.num_done, now.num_updates, note)

        yield None if quiet else update


@contextmanager
def _show(label: str, unit: str, quiet: bool) -> Iterator[Callable[[str, int, int, str], None]]:
    """A function to call with a label, what is done, the total and a note."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _Lines(unit)
        return
    with _bar(console, TextColumn("{task.fields[note]}")) as bar:
        task = bar.add_task(label, total=None, note="compiling")
        last = ""

        def update(label: str, done: int, total: int, note: str) -> None:
            nonlocal last
            if label != last:
                bar.reset(task, description=label)
                last = label
            bar.update(task, total=total, completed=done, note=note)

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

    def __init__(self, unit: str):
        self._unit, self._label, self._last = unit, "", time.monotonic()

    def __call__(self, label: str, done: int, total: int, note: str) -> None:
        clock = time.monotonic()
        if label != self._label or done < self._first:
            self._label, self._began, self._first = label, clock, done
        if clock - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = clock
        left = (clock - self._began) * (total - done) / max(done - self._first, 1)
        found = f"  {note}" if note else ""
        print(
            f"{label}: {self._unit} {done:,} of {total:,}{found}  {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )
