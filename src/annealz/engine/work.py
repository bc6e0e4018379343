"""One run as everybody who takes part in it knows it, and the blocks that one process has of it.

Blocks share nothing, so each has a device to itself for as long as a chunk of steps takes, and nothing
passes between devices. A thread waits for each of them, because the call that advances a block returns
only when it is done (a loop of unknown length asks the host whether to go on). A CPU is one device to
JAX and runs as many blocks side by side as it has cores.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from annealz.core.arrays import indices
from annealz.core.devices import Device, is_first, num_side_by_side, preferred, preferring
from annealz.core.random import Stream
from annealz.engine.advance import (
    Block,
    Chunk,
    Record,
    advance,
    advance_fused,
    start,
    start_reverse,
    window,
)
from annealz.engine.blocks import split_chains
from annealz.engine.checkpoint import digest_of
from annealz.engine.gpu import choose_fused
from annealz.engine.observers import AbstractObserver
from annealz.engine.resampling import Resampling, island_size
from annealz.engine.statistics import Tally, recorded_steps, tally
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

__all__ = ["Part", "Share", "Work"]


class Part(NamedTuple):
    """What a block gives to a chunk: its part of the records, and of the weights as they stand."""

    record: Record
    tally: Tally


@dataclasses.dataclass(frozen=True)
class Work:
    """A run: what is annealed, over which betas, in which direction."""

    path: AbstractPath
    kernel: AbstractKernel
    observers: Mapping[str, AbstractObserver]
    schedule: Schedule
    num_chains: int
    seed: int
    purpose: str
    every: int
    is_reverse: bool = False
    resample: float | None = None

    @property
    def num_steps(self) -> int:
        return self.schedule.num_steps

    @functools.cached_property
    def log_z0(self) -> float:
        """log Z_A."""
        return self.path.log_z0

    @functools.cached_property
    def resampling(self) -> Resampling | None:
        return None if self.resample is None else Resampling(self.resample, self.island_size or 1)

    @property
    def island_size(self) -> int | None:
        """Chains an island, where there are any."""
        return None if self.resample is None else island_size(self.num_chains)

    @functools.cached_property
    def betas(self) -> np.ndarray:
        """As the engine takes them, in the order of its steps."""
        betas = self.schedule.betas.astype(np.float32)
        return betas[::-1] if self.is_reverse else betas

    @functools.cached_property
    def blocks(self) -> tuple[list[int], int]:
        """First chain of every block, and the size of a block."""
        return split_chains(self.num_chains, self.island_size or 1)

    @functools.cached_property
    def given(self) -> tuple:
        """What every block needs: path, kernel, observers, random bits, and fused steps if any."""
        kernel = self.kernel.reversed() if self.is_reverse else self.kernel
        fused = choose_fused(self.path, kernel, self.observers, self.resampling, self.blocks[1])
        stream = Stream(self.seed, self.purpose)
        return self.path.unnamed(), kernel, self.observers, stream, fused

    @property
    def terms(self) -> dict[str, Any]:
        """What a process needs besides path, kernel, observers and schedule, as JSON."""
        names = ("num_chains", "seed", "purpose", "every", "is_reverse", "resample")
        terms = {name: getattr(self, name) for name in names}
        return {**terms, "observers": list(self.observers)}

    @property
    def settings(self) -> str:
        """All that distinguishes this run from another, except path, kernel, observers and draws."""
        mode = " reverse" if self.is_reverse else ""
        if self.resample is not None:
            mode = f" resample {float(self.resample)}"
        width = self.blocks[1]
        return (
            f"{self.seed} {self.purpose} {self.num_chains} {width} {self.every} "
            f"{self.schedule.digest}{mode}"
        )

    def digest(self, *more: Any) -> str:
        """Of everything that the run is given."""
        return digest_of((self.path, self.kernel, self.observers, *more), self.settings)

    def first(self, given: tuple, i: int, draws: np.ndarray | None) -> Block:
        """Block i before its first step: draws from the base, or what follows these of the target."""
        path, kernel, observers, stream, _ = given
        starts, width = self.blocks
        if draws is not None:
            return start_reverse(path, kernel, observers, stream, np.int32(starts[i]), draws)
        return start(path, observers, stream, np.int32(starts[i]), width, self.island_size)

    @functools.cached_property
    def like(self) -> Block:
        """Shapes and types of a block."""
        draws = self.draws_like if self.is_reverse else None
        return eqx.filter_eval_shape(lambda x: self.first(self.given, 0, x), draws)

    @property
    def draws_like(self) -> Any:
        """Shape and type of the states of a block."""
        chains = indices(self.blocks[1])
        return jax.eval_shape(lambda: self.path.sample(Stream(0, "").at(0, chains)))

    def advance(self, given: tuple, i: int, block: Block, step: int, stop: int):
        """Block i after steps step + 1 .. stop, and its part of the records of them."""
        path, kernel, observers, stream, fused = given
        first, width = self.blocks[0][i], self.blocks[1]
        chunk = Chunk(
            np.int32(first),
            np.int32(self.num_chains),
            window(self.betas, step),
            *map(np.int32, (step, stop, self.every, self.num_steps)),
        )
        if fused is not None:
            block, record = _fused(fused, path, stream, block, chunk)
        else:
            mode = self.is_reverse, self.resampling
            taken = advance(path, kernel, observers, stream, block, chunk, *mode)
            block, record = jax.block_until_ready(taken)
        count = len(recorded_steps(step, stop, self.every, self.num_steps))
        record = jax.tree.map(lambda a: a[:count], jax.device_get(record))
        return block, Part(record, tally(block, min(width, self.num_chains - first)))


def _fused(fused, path, stream: Stream, block: Block, chunk: Chunk):
    """Fused steps; where the device cannot take them, a sentence that says how to do without."""
    try:
        return jax.block_until_ready(advance_fused(fused, path, stream, block, chunk))
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"the fused steps do not run on this device ({reason}): set ANNEALZ_FUSED=0 to go without "
            "them."
        ) from error


class Share:
    """The blocks that one process has of a run, each on one of its devices.

    The state before the last chunk is kept beside the state after it, so that an interrupt between
    them finds all processes at one step.
    """

    def __init__(self, work: Work, mine: Sequence[int], devices: Sequence[Device]):
        self.work, self.mine = work, list(mine)
        self._where = [devices[j % len(devices)] for j in range(len(self.mine))]
        self._is_placed = not is_first(devices)  # else where JAX puts it by itself
        self._given = {
            device: _put(work.given, device) if self._is_placed else work.given
            for device in devices
        }
        num_threads = min(len(self.mine), num_side_by_side(devices))
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None
        self._is_compiled = False
        self._standing: dict[int, list[Block]] = {}

    def begin(self, draws: Sequence[np.ndarray] | None = None) -> None:
        """Before the first step; in reverse from these draws, one set per block."""
        starts = draws or [None] * len(self.mine)
        self.put(0, [
            self.work.first(self._given[device], i, x)
            for device, i, x in zip(self._where, self.mine, starts, strict=True)
        ])  # fmt: skip

    def put(self, step: int, blocks: Sequence[Block]) -> None:
        """Stand at this step, with these blocks."""
        if self._is_placed:
            blocks = [jax.device_put(b, d) for b, d in zip(blocks, self._where, strict=True)]
        self._standing = {step: list(blocks)}

    def at(self, step: int) -> list[Block]:
        """The blocks as they stand at this step, the last or the one before."""
        return self._standing[step]

    def advance(self, step: int, stop: int) -> list[Part]:
        """Take steps step + 1 .. stop with every block."""
        before, device = self.at(step), preferred()

        def one(j: int) -> tuple[Block, Part]:
            given = self._given[self._where[j]]
            with preferring(device):  # in a thread that has a preference of its own
                return self.work.advance(given, self.mine[j], before[j], step, stop)

        alone = 0 if self._is_compiled or self._pool is None else 1  # one compiles, not all at once
        done = [one(j) for j in range(len(before) if self._pool is None else alone)]
        if self._pool is not None:
            done += self._pool.map(one, range(alone, len(before)))
        self._is_compiled = True
        self._standing = {step: before, stop: [block for block, _ in done]}
        return [part for _, part in done]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _put(given: tuple, device: Device) -> tuple:
    arrays, rest = eqx.partition(given, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, device), rest)
