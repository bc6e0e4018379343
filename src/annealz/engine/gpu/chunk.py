"""Fused steps, whatever program takes them: what goes into a chunk of steps, and what comes out."""

import abc
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from annealz.core.random import Stream, row_keys
from annealz.paths.geometric import GeometricPath

NEVER = -1e4  # logit of a unit that is only filling
_MOST_KEYS, _LONGEST_PIECE = 2**22, 2048  # 16 bytes per chain and step


class Chains(NamedTuple):
    """Chains between two steps."""

    indices: Integer[Array, " chains"]
    x: Float[Array, "chains units"]
    log_weights: Float[Array, " chains"]
    compensation: Float[Array, " chains"]


class Span(NamedTuple):
    """Steps start + 1 … stop; every `every`-th and the `last` of the run are recorded."""

    start: Integer[Array, ""]
    stop: Integer[Array, ""]
    every: Integer[Array, ""]
    last: Integer[Array, ""]
    capacity: int
    """Records that a chunk can hold."""

    def slots(self, first, count: int) -> Integer[Array, " steps"]:
        """Where steps first + 1 … first + count are recorded; -1 where they are not."""
        k = first + 1 + jnp.arange(count)
        is_recorded = (k % self.every == 0) | (k == self.last)
        return jnp.where(is_recorded, (k - 1) // self.every - self.start // self.every, -1)


class FusedSteps(eqx.Module):
    """The arrays of one path as a program takes them, and that program."""

    block: ClassVar[int]
    """Chains that are taken together."""
    first_steps: ClassVar[int] = 2048
    """Of a first chunk, before anything is known of its time: they take microseconds each."""

    @classmethod
    @abc.abstractmethod
    def fits(cls, path: GeometricPath, num_chains: int, num_processors: int) -> bool:
        """Whether the program takes this model, and so many chains of it, on this device."""

    @classmethod
    @abc.abstractmethod
    def of(cls, path: GeometricPath, num_processors: int) -> Self:
        """The arrays of this path."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Bytes of a state."""

    @abc.abstractmethod
    def take(self, count, slots, betas, keys, held) -> tuple[Any, ...]:
        """What is held after the first `count` steps of a piece.

        Keys are those of the random bits (steps, 4, chains), of draws 0 and 1, two words each. Held are
        states, log weights, their compensation, and the records of these two and of the slope.
        """

    def __call__(self, stream: Stream, chains: Chains, betas, span: Span):
        """The chains after the steps of `span`, and what was recorded on the way.

        Chains are filled up to a multiple of `block`, and states to `width` bytes each. Steps are taken in
        pieces whose keys fit into memory.
        """
        count, units = chains.x.shape
        fill = -count % self.block
        indices = jnp.pad(chains.indices.astype(jnp.uint32), (0, fill))
        v = jnp.pad(chains.x.astype(jnp.int8), ((0, fill), (0, self.width - units)))
        pair = (jnp.pad(a, (0, fill)) for a in (chains.log_weights, chains.compensation))
        records = (jnp.zeros((span.capacity, count + fill), jnp.float32) for _ in range(3))
        length = max(16, min(_LONGEST_PIECE, _MOST_KEYS // len(indices), len(betas) - 1))
        betas = jnp.pad(betas, (0, length))

        def piece(i, held):
            first = span.start + i * length
            steps = (first + 1 + jnp.arange(length)).astype(jnp.uint32)[:, None]
            keys = [row_keys(stream, draw, indices, steps) for draw in (0, 1)]
            keys = jnp.stack([word for pair in keys for word in pair], axis=1)
            window = jax.lax.dynamic_slice(betas, (i * length,), (length + 1,))
            left = jnp.minimum(span.stop - first, length)
            return tuple(self.take(left.reshape(1), span.slots(first, length), window, keys, held))

        held = (v, *pair, *records)
        if len(betas) <= 2 * length + 1:  # one piece, without a loop that asks the host to go on
            held = piece(0, held)
        else:
            held = jax.lax.fori_loop(0, -(-(span.stop - span.start) // length), piece, held)
        v, *pair, log_weights, compensation, slope = held
        x = v[:count, :units].astype(chains.x.dtype)
        after = Chains(chains.indices, x, *(a[:count] for a in pair))
        return after, tuple(a[:, :count] for a in (log_weights, compensation, slope))


def largest_field(matrix: np.ndarray, path: GeometricPath) -> float:
    """More than any field of a latent unit can be; `matrix` (latent, units) holds the weights."""
    weights = np.abs(matrix).sum(1)
    return float((weights + np.abs(np.asarray(path.latent_bias_change, np.float64))).max())
