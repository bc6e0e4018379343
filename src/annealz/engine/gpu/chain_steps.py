"""All steps of a chunk with a block per chain, for models of which a unit has few neighbours or one colour.

The states of a chain stay in the shared memory of a multiprocessor, a byte per unit, and all that its units
need of each other is there. A step is three or more barriers of a block; no block waits for another. Steps
of XLA are a dozen or more small programs each, some 3 µs whatever their size (docs/design-notes.md).

Random bits are the same as elsewhere; their keys are computed by the block, some steps at a time.
"""

import abc
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp

from annealz.core.random import Stream
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import Chains, Span

MOST_BYTES = 65_536  # of a chain: more would leave most multiprocessors idle
_MOST_DRAWS = 2048  # of a step, whose keys are in shared memory
_UNITS_OF_A_THREAD, _MOST_THREADS = 4, 512


class Launch(NamedTuple):
    """How a program is compiled and launched."""

    constants: dict[str, int]
    num_draws: int
    """Of a step."""
    num_threads: int
    num_bytes: int
    """Of the states of a chain."""


class ChainSteps(eqx.Module):
    """The arrays of one path and kernel as a program takes them, and that program."""

    name: ClassVar[str]
    """Of its source, and of its entry."""
    first_steps: ClassVar[int] = 64
    """Of a first chunk, before anything is known of its time: some take tens of microseconds each."""

    @classmethod
    @abc.abstractmethod
    def of(cls, path: Any, kernel: Any) -> Self | None:
        """The arrays of this path and kernel; None where the program does not take them."""

    @property
    @abc.abstractmethod
    def arrays(self) -> tuple[Any, ...]:
        """In the order in which the program takes them."""

    @property
    @abc.abstractmethod
    def launch(self) -> Launch: ...

    def __call__(self, stream: Stream, chains: Chains, betas, span: Span):
        """The chains after the steps of `span`, and what was recorded on the way."""
        count, launch = len(chains.indices), self.launch
        records = (jnp.zeros((span.capacity, count), jnp.float32) for _ in range(3))
        held = (
            chains.x.astype(jnp.int8),
            chains.log_weights,
            chains.compensation,
            *records,
        )
        start = jnp.asarray(span.start, jnp.int32)
        args = (
            jnp.asarray(span.stop - start, jnp.int32).reshape(1),
            span.slots(start, len(betas) - 1).astype(jnp.int32),
            betas,
            stream.key,
            start.reshape(1),
            chains.indices.astype(jnp.uint32),
            *self.arrays,
            *held,
        )
        constants = launch.constants | {
            "DRAWS": launch.num_draws,
            "AHEAD": max(launch.num_threads // launch.num_draws, 1),
            "THREADS": launch.num_threads,
            "NUM_CHAINS": count,
        }
        aliases = {len(args) - len(held) + i: i for i in range(len(held))}
        shared = (Path(__file__).parent / "chains.cu").read_text()
        x, *pair, log_weights, compensation, slope = cuda.call(
            f"{self.name}_steps",
            cuda.source(self.name, shared),
            constants,
            args,
            list(held),
            aliases,
            (count, launch.num_threads, launch.num_bytes),
        )
        after = Chains(chains.indices, x.astype(chains.x.dtype), *pair)
        return after, (log_weights, compensation, slope)

    @property
    def fits(self) -> bool:
        """Whether states and keys have their place on a multiprocessor."""
        return self.launch.num_bytes <= MOST_BYTES and self.launch.num_draws <= _MOST_DRAWS


def num_threads(num_units: int) -> int:
    """Of a block whose threads draw so many units at once, some each."""
    warps = -(-num_units // (32 * _UNITS_OF_A_THREAD))
    return min(max(32 * warps, 32), _MOST_THREADS)
