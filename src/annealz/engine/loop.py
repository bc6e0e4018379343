"""The host's loop over the steps of a run in blocks, and what such a run must say of itself.

Steps are taken in chunks, as long as the clock allows, so that the host can report, save and be
interrupted in between. Random bits depend on the seed, the purpose, the chain and the step alone, so that
neither chunks nor resumes, neither the order of blocks nor where they are computed change a bit.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from annealz.core.interrupts import Pace
from annealz.engine.checkpoint import RunState, Saver
from annealz.engine.cluster import LostCluster
from annealz.engine.local_blocks import open_blocks
from annealz.engine.progress import Progress

_FIRST_STEPS = 8


class BlockProgram(abc.ABC):
    """A run whose chains are in blocks that share nothing: a dataclass of what it is given."""

    num_steps: Any
    blocks: Any
    """First row of every block, and the size of a block."""
    given: Any
    """What every block needs: the one thing that depends on where it is made."""
    like: Any
    """Shapes and types of a block."""

    @property
    def first_steps(self) -> int:
        """Steps of the first chunk, before anything is known of its time."""
        return _FIRST_STEPS

    def fresh(self) -> Self:
        """Return the same run, with nothing that was made on this machine."""
        return dataclasses.replace(self)  # pyright: ignore[reportArgumentType]

    @abc.abstractmethod
    def first(self, given: tuple, i: int, draws: Any, /) -> Any:
        """Return block i before its first step; of a run that is given draws, from its share."""

    @abc.abstractmethod
    def advance(
        self, given: tuple, i: int, block: Any, step: int, stop: int, /, *terms: Any
    ) -> tuple[Any, Any]:
        """Take steps step + 1 .. stop of block i; return it with what it gives to the records."""

    @abc.abstractmethod
    def limit(self, step: int) -> int:
        """Return the most steps that a chunk after this one can have."""

    def terms(self, records: list[dict[str, Any]]) -> tuple:
        """Return the numbers that all blocks take for the next chunk."""
        return ()

    @abc.abstractmethod
    def merge(
        self, step: int, stop: int, parts: list[Any], records: list[dict[str, Any]], /
    ) -> tuple[list[dict[str, Any]], Progress]:
        """Merge what the blocks gave; return the new records, and where the run stands."""


class Finished(NamedTuple):
    """A run at its end."""

    blocks: list[Any]
    records: list[dict[str, Any]]
    seconds: float
    messages: tuple[str, ...]
    places: tuple[int, str]
    """How many blocks could run at a time, and what a place is called."""


def take_steps(
    program: BlockProgram,
    saver: Saver,
    *,
    draws: np.ndarray | None = None,
    chunk_steps: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Finished:
    """Take all steps of a run, from where it was left."""
    with open_blocks(program) as blocks:
        pace = Pace(chunk_steps, blocks.span_seconds, program.first_steps)
        start = saver.load(lambda: RunState(0, [program.like] * len(program.blocks[0]), []))
        if start is None:
            blocks.begin(draws)
        else:
            blocks.put(start.step, start.blocks)
        now = (0, []) if start is None else (start.step, start.records)

        def state() -> RunState | None:
            step, records = now
            try:
                return RunState(step, blocks.at(step), records)
            except LostCluster:
                return None

        with saver.keeping(state):
            while now[0] < program.num_steps:
                step, records = now
                stop = step + pace.take(program.limit(step))
                with pace:
                    parts = blocks.advance(step, stop, *program.terms(records))
                new, progress = program.merge(step, stop, parts, records)
                now = stop, records + new  # in one go: an interrupt may come
                if on_progress is not None:
                    on_progress(progress)
                saver.save_if_due()
        places = blocks.places
        end = blocks.at(program.num_steps)
        return Finished(end, now[1], saver.seconds, tuple(saver.messages), places)
