"""One run as everybody who takes part in it knows it: what is annealed, and how a block of it goes on."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self

import jax
import numpy as np

from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.engine.advance import (
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
from annealz.engine.observers import AbstractObserver
from annealz.engine.resampling import Resampling, island_size
from annealz.engine.statistics import Tally, recorded_steps, tally
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractLatentPath, AbstractPath
from annealz.schedules.schedule import Schedule

__all__ = ["InBlocks", "Part", "Work"]

_FIRST_STEPS = 8  # of XLA's


class Part(NamedTuple):
    """What a block gives to a chunk: its part of the records, and of the weights as they stand."""

    record: Record
    tally: Tally


class InBlocks(Protocol):
    """A run of blocks that share nothing, each a function of what it is given."""

    blocks: Any
    """First row of every block, and the size of a block."""
    given: Any
    """What every block needs."""

    def first(self, given: tuple, i: int, draws: Any, /) -> Any:
        """Block i before its first step."""
        ...

    def advance(
        self, given: tuple, i: int, block: Any, step: int, stop: int, /, *terms: Any
    ) -> tuple[Any, Any]:
        """Block i after steps step + 1 .. stop, and what it gives to the records."""
        ...

    def fresh(self) -> Self:
        """The same run, with nothing that was made on this machine."""
        ...


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
    is_whole: bool = False
    """Whether chains are in one block instead of two halves, as in checkpoints of earlier versions."""

    @property
    def num_steps(self) -> int:
        return self.schedule.num_steps

    @functools.cached_property
    def size(self) -> float:
        """How many numbers it computes, roughly."""
        return self.num_chains * self.num_steps * self.path.sweep_size

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
        is_halved = isinstance(self.path, AbstractLatentPath) and not self.is_whole
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
    def is_fused(self) -> bool:
        return self.given[-1] is not None

    @property
    def record_capacity(self) -> int:
        """Records that a chunk can hold."""
        return FUSED_RECORD_CAPACITY if self.is_fused else RECORD_CAPACITY

    @property
    def first_steps(self) -> int:
        """Of the first chunk, before anything is known of its time."""
        return self.given[-1].first_steps if self.is_fused else _FIRST_STEPS

    def fresh(self) -> "Work":
        """The same run, with nothing that was made on this machine."""
        return dataclasses.replace(self)

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
        program, arguments = self._start(given, i, draws)
        return program(*arguments, **self._load)

    def _start(self, given: tuple, i: int, draws: Any) -> tuple[Compiled, tuple]:
        """What makes block i, and what it is given."""
        path, kernel, observers, stream, _ = given
        starts, width = self.blocks
        if draws is not None:
            return start_reverse, (path, kernel, observers, stream, np.int32(starts[i]), draws)
        return start, (path, observers, stream, np.int32(starts[i]), width, self.island_size)

    @functools.cached_property
    def like(self) -> Block:
        """Shapes and types of a block."""
        program, arguments = self._start(self.given, 0, self._draws_like)
        return program.shapes(*arguments)

    @functools.cached_property
    def _like_states(self) -> jax.ShapeDtypeStruct:
        """Shape and type of the states of a block."""
        return states_like(self.path, self.blocks[1])

    @functools.cached_property
    def _load(self) -> dict[str, float]:
        """What its programs are worth: numbers in all, and of the states of a block."""
        return {"work": self.size, "at_once": self._like_states.size}

    @property
    def _draws_like(self) -> jax.ShapeDtypeStruct | None:
        """Of a block in reverse: shape and type of the draws that it starts from."""
        return self._like_states if self.is_reverse else None

    def advance(self, given: tuple, i: int, block: Block, step: int, stop: int, *_: Any):
        """Block i after steps step + 1 .. stop, and its part of the records of them."""
        program, arguments = self._advance(given, i, block, step, stop)
        if program is advance_fused:
            block, record = _fused(*arguments)
        else:
            block, record = jax.block_until_ready(program(*arguments, **self._load))
        count = len(recorded_steps(step, stop, self.every, self.num_steps))
        record = jax.tree.map(lambda a: a[:count], jax.device_get(record))
        first, width = self.blocks[0][i], self.blocks[1]
        return block, Part(record, tally(block, min(width, self.num_chains - first)))

    def _advance(
        self, given: tuple, i: int, block: Block, step: int, stop: int
    ) -> tuple[Compiled, tuple]:
        """What takes these steps of block i, and what it is given."""
        path, kernel, observers, stream, fused = given
        chunk = Chunk(
            np.int32(self.blocks[0][i]),
            np.int32(self.num_chains),
            window(self.betas, step),
            *map(np.int32, (step, stop, self.every, self.num_steps)),
        )
        if fused is not None:
            return advance_fused, (fused, path, stream, block, chunk)
        mode = self.is_reverse, self.resampling, round_steps(path, self.every)
        return advance, (path, kernel, observers, stream, block, chunk, *mode)


def _fused(*arguments: Any) -> tuple[Block, Record]:
    """Fused steps; where the device cannot take them, a sentence that says how to do without."""
    try:
        return jax.block_until_ready(advance_fused(*arguments))
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"the fused steps do not run on this device ({reason}): set ANNEALZ_FUSED=0 to go without "
            "them."
        ) from error
