"""The geometric path of units that are coupled in pairs, all of them annealed.

Units x_i of q states, couplings J of pairs that are in the same state, fields h and those of the base b_A:

    log p*_beta(x) = (1-beta) sum_i b_A[i, x_i] + beta E(x)
    E(x)           = sum_{i<j} J_ij [x_i = x_j] + sum_i h[i, x_i] + f

is linear in beta, so that U(x) = E(x) - sum_i b_A[i, x_i] at every beta and a log ratio is
(beta1 - beta0) U. Given all others unit i has the logits

    (1-beta) b_A[i, k] + beta (h[i, k] + sum_j J_ij [x_j = k])
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.core.units import SoftmaxUnits
from annealz.paths.abstract import AbstractPath

__all__ = ["PairPath"]


class PairPath(AbstractPath):
    """From independent units to units coupled in pairs; states are the numbers 0 .. q - 1, as floats.

    Parameters
    ----------
    base : the distribution at beta = 0
    start : (units, states), the logits of the base
    couplings : (units, units), symmetric, with nothing on the diagonal
    fields : (units, states)
    offset : f, a constant of E
    """

    base: Any
    start: Float[Array, "units states"]
    couplings: Float[Array, "units units"]
    change: Float[Array, "units states"]
    offset: Float[Array, ""]

    def __init__(self, base, start, couplings, fields, offset: float = 0.0):
        self.base, self.start, self.couplings = base, start, couplings
        self.change, self.offset = fields - start, on_device(offset)

    @property
    def num_states(self) -> int:
        return self.start.shape[1]

    @property
    def units(self) -> SoftmaxUnits:
        return SoftmaxUnits(self.num_states)

    @property
    def log_z0(self) -> float:
        return float(self.units.exact_log_z(np.asarray(self.start, np.float64).ravel()))

    def sample(self, bits: Bits):
        fields = jnp.broadcast_to(self.start.ravel(), (bits.num_chains, self.start.size))
        return self.units.sample(bits, fields, 0)

    def store(self, x):
        return x.astype(jnp.uint8) if self.num_states <= 256 else x

    def restore(self, stored):
        return stored.astype(jnp.float32)

    def log_density(self, x, beta):
        return (self._hot(x) * self.start).sum((-2, -1)) + beta * self.slope(x, beta)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        hot = self._hot(x)
        return (hot * (0.5 * self._sums(hot, self.couplings) + self.change)).sum(
            (-2, -1)
        ) + self.offset

    def conditioned(self, bits: Bits, x, beta) -> "PairPath":
        """The path given what a sweep draws before it touches the units: nothing here."""
        return self

    def site_logits(self, x, sites, beta) -> Float[Array, "chains sites states"]:
        """The logits of some units, given all others."""
        sums = self._sums(self._hot(x), self.couplings[:, sites])
        return self.start[sites] + beta * (sums + self.change[sites])

    def _hot(self, x) -> Float[Array, "chains units states"]:
        return (x[..., None] == jnp.arange(self.num_states)).astype(jnp.float32)

    def _sums(self, hot, couplings):
        """sum_j J_ij [x_j = k], (chains, sites, states)."""
        highest = jax.lax.Precision.HIGHEST
        return jnp.einsum("cjk,js->csk", hot, couplings, precision=highest)
