"""An annealed run as everybody who takes part in it knows it: what is annealed, and how a block goes on."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.engine.advance import (
    CHUNK_CAPACITY,
    FUSED_RECORD_CAPACITY,
    RECORD_CAPACITY,
    Block,
    Chunk,
    Record,
    advance,
    advance_fused,
    round_steps,
    start,
    start_reverse,
    window,
)
from annealz.engine.blocks import split_chains, states_like
from annealz.engine.checkpoint import digest_of
from annealz.engine.gpu import choose_fused
from annealz.engine.loop import BlockProgram
from annealz.engine.observers import AbstractObserver
from annealz.engine.progress import Progress
from annealz.engine.resampling import Resampling, island_size
from annealz.engine.statistics import Tally, Weighted, merge_records, recorded_steps, tally
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractLatentPath, AbstractPath
from annealz.schedules.schedule import Schedule


class Part(NamedTuple):
    """What a block gives to a chunk: its part of the records, and of the weights as they stand."""

    record: Record
    tally: Tally


@dataclasses.dataclass(frozen=True)
class RunProgram(BlockProgram):
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
        return self.path.log_z0

    @functools.cached_property
    def resampling(self) -> Resampling | None:
        if self.resample is None:
            return None
        return Resampling(self.resample, island_size(self.num_chains))

    @property
    def island_size(self) -> int | None:
        """Chains an island, where there are any."""
        return None if self.resampling is None else self.resampling.island_size

    @functools.cached_property
    def betas(self) -> np.ndarray:
        """As the engine takes them, in the order of its steps."""
        betas = self.schedule.betas.astype(np.float32)
        return betas[::-1] if self.is_reverse else betas

    @functools.cached_property
    def blocks(self) -> tuple[list[int], int]:
        is_halved = isinstance(self.path, AbstractLatentPath)
        return split_chains(self.num_chains, self.island_size or 1, is_halved)

    @property
    def num_filling(self) -> int:
        """Chains that fill up the last block."""
        starts, size = self.blocks
        return len(starts) * size - self.num_chains

    @functools.cached_property
    def given(self) -> tuple:
        """What every block needs: path, kernel, observers, random bits, and fused steps if any."""
        kernel = self.kernel.reversed() if self.is_reverse else self.kernel
        fused = choose_fused(self.path, kernel, self.observers, self.resampling, self.blocks[1])
        stream = Stream(self.seed, self.purpose)
        return self.path.unnamed(), kernel, self.observers, stream, fused

    @property
    def first_steps(self) -> int:
        fused = self.given[-1]
        return super().first_steps if fused is None else fused.first_steps

    def digest(self, draws: np.ndarray | None) -> str:
        """Return the digest of everything that the run is given."""
        settings = (self.seed, self.purpose, self.num_chains, self.blocks[1], self.every)
        mode = self.schedule.digest, self.is_reverse, self.resample and float(self.resample)
        words = " ".join(map(str, settings + mode))
        return digest_of((self.path, self.kernel, self.observers, draws), words)

    @functools.cached_property
    def _states_like(self) -> jax.ShapeDtypeStruct:
        return states_like(self.path, self.blocks[1])

    @property
    def _load(self) -> dict[str, float]:
        """What its programs are worth: numbers in all, and of the states of a block."""
        size = self.num_chains * self.num_steps * self.path.sweep_size
        return {"work": size, "at_once": self._states_like.size}

    def _start(self, given: tuple, i: int, draws: Any) -> tuple[Compiled, tuple]:
        """Return what makes block i, and what it is given."""
        path, kernel, observers, stream, _ = given
        starts, width = self.blocks
        if draws is not None:
            return start_reverse, (path, kernel, observers, stream, np.int32(starts[i]), draws)
        return start, (path, observers, stream, np.int32(starts[i]), width, self.island_size)

    @functools.cached_property
    def like(self) -> Block:
        draws = self._states_like if self.is_reverse else None
        program, arguments = self._start(self.given, 0, draws)
        return program.shapes(*arguments)

    def first(self, given: tuple, i: int, draws: np.ndarray | None) -> Block:
        """Return block i before its first step: draws from the base, or what follows these."""
        program, arguments = self._start(given, i, draws)
        return program(*arguments, **self._load)

    def advance(self, given: tuple, i: int, block: Block, step: int, stop: int, *_: Any):
        path, kernel, observers, stream, fused = given
        first, width = self.blocks[0][i], self.blocks[1]
        numbers = map(np.int32, (step, stop, self.every, self.num_steps))
        betas = window(self.betas, step)
        chunk = Chunk(np.int32(first), np.int32(self.num_chains), betas, *numbers)
        if fused is not None:
            block, record = _fused(fused, path, stream, block, chunk)
        else:
            mode = self.is_reverse, self.resampling, round_steps(path, self.every)
            done = advance(path, kernel, observers, stream, block, chunk, *mode, **self._load)
            block, record = jax.block_until_ready(done)
        count = len(recorded_steps(step, stop, self.every, self.num_steps))
        record = jax.tree.map(lambda a: a[:count], jax.device_get(record))
        return block, Part(record, tally(block, min(width, self.num_chains - first)))

    def limit(self, step: int) -> int:
        capacity = RECORD_CAPACITY if self.given[-1] is None else FUSED_RECORD_CAPACITY
        return min(CHUNK_CAPACITY, (capacity - 1) * self.every, self.num_steps - step)

    def merge(self, step: int, stop: int, parts: list[Part], records: list[dict[str, Any]]):
        tallies = [part.tally for part in parts]
        wrong = sum(tally.num_wrong for tally in tallies)
        if wrong:
            raise ValueError(
                f"{wrong} of {self.num_chains} log weights became infinite or NaN by step {stop} of "
                f"{self.num_steps} (beta = {self.betas[stop]:.4g}): the log density is NaN there, or too "
                "large for float32; return -inf where the density is zero, take more steps, or rescale it."
            )
        weighted = Weighted.of(tallies)
        gain = float(weighted.log_sum) - np.log(self.num_chains)
        log_z = self.log_z0 - gain if self.is_reverse else self.log_z0 + gain
        steps = recorded_steps(step, stop, self.every, self.num_steps)
        progress = Progress(
            stop, self.num_steps, log_z, float(weighted.ess), num_chains=self.num_chains
        )
        return merge_records([part.record for part in parts], steps), progress


def _fused(*arguments: Any) -> tuple[Block, Record]:
    """Take fused steps; where the device cannot, a sentence says how to do without."""
    try:
        return jax.block_until_ready(advance_fused(*arguments))
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"the fused steps do not run on this device ({reason}): set ANNEALZ_FUSED=0 to go without "
            "them."
        ) from error
