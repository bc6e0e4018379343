"""What goes into a fused chunk of steps, and what comes out."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from annealz.paths.geometric import GeometricPath

__all__ = ["SHARED_BYTES", "Chains", "Span", "largest_field", "piece_length"]

SHARED_BYTES = 228_000  # of a multiprocessor that a program may plan with: 4 kB less than there are
_MOST_KEYS, _LONGEST_PIECE = 2**22, 2048


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


def piece_length(num_chains: int) -> int:
    """Steps whose keys of random bits are computed at a time: 16 bytes a chain and step."""
    return max(16, min(_LONGEST_PIECE, _MOST_KEYS // num_chains))
