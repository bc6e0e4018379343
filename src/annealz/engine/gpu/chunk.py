"""What goes into a fused chunk of steps, and what comes out."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from annealz.core.random import Stream, row_keys
from annealz.paths.geometric import GeometricPath

__all__ = ["SHARED_BYTES", "Chains", "Span", "in_pieces", "largest_field"]

SHARED_BYTES = 228_000  # of a multiprocessor that a program may plan with: 4 kB less than there are
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


def largest_field(matrix: np.ndarray, path: GeometricPath) -> float:
    """More than any field of a latent unit can be; `matrix` is that of the product with the state."""
    weights = np.abs(matrix[:, :-1]).sum(0)
    return float((weights + np.abs(np.asarray(path.latent_bias_change, np.float64))).max())


def in_pieces(stream: Stream, indices, betas, span: Span, held, take: Callable):
    """What is held after all steps of a span, taken in pieces whose keys fit into memory.

    `take(count, slots, betas, keys, held)` takes the first `count` steps of a piece: keys of the random
    bits (steps, 4, chains), of draws 0 and 1, two words each.
    """
    length = max(16, min(_LONGEST_PIECE, _MOST_KEYS // len(indices)))
    betas = jnp.pad(betas, (0, length))

    def piece(i, held):
        first = span.start + i * length
        steps = (first + 1 + jnp.arange(length)).astype(jnp.uint32)[:, None]
        keys = [row_keys(stream, draw, indices, steps) for draw in (0, 1)]
        keys = jnp.stack([word for pair in keys for word in pair], axis=1)
        window = jax.lax.dynamic_slice(betas, (i * length,), (length + 1,))
        count = jnp.minimum(span.stop - first, length)
        return tuple(take(count, span.slots(first, length), window, keys, held))

    return jax.lax.fori_loop(0, -(-(span.stop - span.start) // length), piece, tuple(held))
