"""The blocks of a run in this process, each on one of its devices.

Blocks share nothing, so each has a device to itself for as long as a chunk of steps takes, and nothing
passes between devices. A thread waits for each of them, because the call that advances a block returns
only when it is done (a loop of unknown length asks the host whether to go on). A CPU is one device to
JAX and runs as many blocks side by side as it has cores.
"""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from annealz.core import devices
from annealz.engine.blocks import cut, on_one
from annealz.engine.cluster import ClusterBlocks, current_cluster

if TYPE_CHECKING:
    from annealz.engine.loop import BlockProgram


class LocalBlocks:
    """All blocks of a run, in their order.

    The state before the last chunk is kept beside the state after it, so that an interrupt between
    them finds all blocks at one step.
    """

    span_seconds = 0.25
    """What a chunk should take: an interrupt is answered within about this."""

    def __init__(self, program: "BlockProgram"):
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
        self._is_compiled = False
        self._standing: dict[int, list[Any]] = {}
        self.places = len(every), "devices"
        """How many blocks run at a time at least, and what a place is called."""

    def begin(self, draws: np.ndarray | None = None) -> None:
        """Stand before the first step; in reverse from these draws."""
        count = len(self._where)
        starts = [None] * count if draws is None else cut(draws, *self.program.blocks)
        self.put(0, [self.program.first(self._given[i], i, starts[i]) for i in range(count)])

    def put(self, step: int, blocks: Sequence[Any]) -> None:
        """Stand at this step, with these blocks."""
        if self._is_placed:
            blocks = [jax.device_put(*pair) for pair in zip(blocks, self._where, strict=True)]
        self._standing = {step: list(blocks)}

    def at(self, step: int) -> list[Any]:
        """Return the blocks as they stand at this step, the last or the one before."""
        return self._standing[step]

    def advance(self, step: int, stop: int, *terms: Any) -> list[Any]:
        """Take steps step + 1 .. stop with every block; return what each gives."""
        before, done = self.at(step), []
        rows = [
            (given, i, block, step, stop, *terms)
            for i, (given, block) in enumerate(zip(self._given, before, strict=True))
        ]
        num_here = len(rows) if self._pool is None else int(not self._is_compiled)
        for row in rows[:num_here]:  # one compiles, not all at once
            done.append(self.program.advance(*row))
        if self._pool is not None:
            done += self._pool.map(self._advance_one, rows[num_here:])
        self._is_compiled = True
        self._standing = {step: before, stop: [block for block, _ in done]}
        return [part for _, part in done]

    def _advance_one(self, row: tuple) -> tuple[Any, Any]:
        with devices.preferring(self._preferred):  # a thread has a preference of its own
            return self.program.advance(*row)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


Blocks = LocalBlocks | ClusterBlocks


@contextlib.contextmanager
def open_blocks(program: "BlockProgram") -> Iterator[Blocks]:
    """Open the blocks of this run, here or on the current cluster, until the context ends."""
    cluster = current_cluster()
    blocks = LocalBlocks(program) if cluster is None else ClusterBlocks(program, cluster)
    with contextlib.closing(blocks):
        yield blocks
