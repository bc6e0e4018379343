"""The host's loop over the steps of a run in blocks, and what such a run must say of itself.

Steps are taken in chunks, as long as the clock allows, so that the host can report, save and be
interrupted in between. Random bits depend on the seed, the purpose, the chain and the step alone, so that
neither chunks nor resumes, neither the order of blocks nor where they are computed change a bit.

Blocks share nothing, so each has a device to itself for as long as a chunk of steps takes, and nothing
passes between devices. A thread waits for each of them, because the call that advances a block returns
only when it is done (a loop of unknown length asks the host whether to go on). A CPU is one device to
JAX and runs as many blocks side by side as it has cores. On a cluster the blocks are tasks (`cluster.py`).
"""

import abc
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from annealz.core import devices
from annealz.core.interrupts import Pace
from annealz.engine.blocks import cut, on_one
from annealz.engine.checkpoint import RunState, Saver
from annealz.engine.cluster import ClusterWorkers, current_cluster
from annealz.engine.progress import Progress


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
        return 8

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


class LocalDevices:
    """The devices of this process, which call a method of the program for every block."""

    span_seconds = 0.25
    """What a chunk should take: an interrupt is answered within about this."""

    def __init__(self, program: BlockProgram):
        every, count = devices.local_devices(), len(program.blocks[0])
        self.program, self._preferred = program, devices.preferred()
        self._where = [every[i % len(every)] for i in range(count)]
        self._is_placed = not devices.is_first(every)  # else where JAX puts it by itself
        given = {
            device: on_one(program.given, device) if self._is_placed else program.given
            for device in every
        }
        self._given = [given[device] for device in self._where]
        num_threads = min(count, devices.num_side_by_side(every))
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None
        self._compiled: set[str] = set()
        self.places = len(every), "devices"
        """How many blocks run at a time at least, and what a place is called."""

    def place(self, blocks: Sequence[Any]) -> list[Any]:
        """Return the blocks where they are computed."""
        if self._is_placed:
            return [jax.device_put(*pair) for pair in zip(blocks, self._where, strict=True)]
        return list(blocks)

    def call(self, method: str, rows: Sequence[tuple]) -> list[Any]:
        """Call a method of the program with each of these rows of arguments, one for every block."""

        def call_one(i: int) -> Any:
            with devices.preferring(self._preferred):  # a thread has a preference of its own
                return getattr(self.program, method)(self._given[i], i, *rows[i])

        done, rest = [], range(len(rows))
        if method not in self._compiled:  # one compiles, not all at once
            done, rest = [call_one(0)], rest[1:]
        done += (map if self._pool is None else self._pool.map)(call_one, rest)
        self._compiled.add(method)
        return done

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class Blocks:
    """All blocks of a run, in their order.

    The state before the last chunk is kept beside the state after it, so that an interrupt between
    them finds all blocks at one step.
    """

    def __init__(self, program: BlockProgram, places: LocalDevices | ClusterWorkers):
        self.program, self.places = program, places
        self._standing: dict[int, list[Any]] = {}

    def begin(self, draws: np.ndarray | None = None) -> None:
        """Stand before the first step; in reverse from these draws."""
        firsts, size = self.program.blocks
        starts = [None] * len(firsts) if draws is None else cut(draws, firsts, size)
        self.put(0, self.places.call("first", [(start,) for start in starts]))

    def put(self, step: int, blocks: Sequence[Any]) -> None:
        """Stand at this step, with these blocks."""
        self._standing = {step: self.places.place(blocks)}

    def at(self, step: int) -> list[Any]:
        """Return the blocks as they stand at this step, the last or the one before."""
        return self._standing[step]

    def move(self, step: int, stop: int, blocks: list[Any]) -> None:
        """Stand at the later of these steps with these blocks; those of the earlier one are kept."""
        self._standing = {step: self.at(step), stop: blocks}


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
    cluster = current_cluster()
    opened = LocalDevices(program) if cluster is None else ClusterWorkers(program, cluster)
    with contextlib.closing(opened) as places:
        blocks = Blocks(program, places)
        pace = Pace(chunk_steps, places.span_seconds, program.first_steps)
        start = saver.load(lambda: RunState(0, [program.like] * len(program.blocks[0]), []))
        if start is None:
            blocks.begin(draws)
        else:
            blocks.put(start.step, start.blocks)
        now = (0, []) if start is None else (start.step, start.records)

        def state() -> RunState:
            step, records = now
            return RunState(step, blocks.at(step), records)

        with saver.keeping(state):
            while now[0] < program.num_steps:
                step, records = now
                stop = step + pace.take(program.limit(step))
                terms = program.terms(records)
                with pace:
                    rows = [(block, step, stop, *terms) for block in blocks.at(step)]
                    done = places.call("advance", rows)
                    blocks.move(step, stop, [block for block, _ in done])
                parts = [part for _, part in done]
                new, progress = program.merge(step, stop, parts, records)
                now = stop, records + new  # in one go: an interrupt may come
                if on_progress is not None:
                    on_progress(progress)
                saver.save_if_due()
        end = blocks.at(program.num_steps)
        return Finished(end, now[1], saver.seconds, tuple(saver.messages), places.places)
