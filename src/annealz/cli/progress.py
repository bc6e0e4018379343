"""Progress on stderr: a live board in a terminal, nothing if quiet or where nobody looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from annealz.views.progress import Board, live_board, report_labelled_to, report_to

if TYPE_CHECKING:
    from annealz.engine.progress import Progress
    from annealz.training.train import TrainingProgress


@contextmanager
def _board(quiet: bool) -> Iterator[Board | None]:
    if quiet:
        yield None
        return
    with live_board() as board:
        yield board


@contextmanager
def show_progress(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A function to call with the Progress of an estimate; None where nothing is to be shown."""
    with _board(quiet) as board:
        yield None if board is None else report_to(board)


@contextmanager
def show_labelled_progress(quiet: bool) -> Iterator[Callable[[str, Progress], None] | None]:
    """The same for runs that have names."""
    with _board(quiet) as board:
        yield None if board is None else report_labelled_to(board)


@contextmanager
def show_training(quiet: bool) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """A function to call with the TrainingProgress of a training."""
    with _board(quiet) as board:

        def update(now: TrainingProgress) -> None:
            rate = now.updates_per_second
            speed = "" if math.isnan(rate) else f"  {rate:,.0f}/s"
            error, likelihood = now.fitness
            note = f"error {error:.4f}  pseudo-likelihood {likelihood:.1f}{speed}"
            assert board is not None
            board.show("training", now.num_done, now.num_updates, note)

        yield None if board is None else update


@contextmanager
def show_enumeration(quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """A function to call with the fraction of an enumeration that is done."""
    with _board(quiet) as board:

        def update(done: float) -> None:
            assert board is not None
            board.show("enumerating", round(1000 * done), 1000)

        yield None if board is None else update
