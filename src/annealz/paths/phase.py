"""A path with momenta: p_beta(x) N(p; 0, 1), for kernels that keep their momentum between steps.

States are (chains, 2, dim): positions and momenta. The momenta are standard normal at every beta, so that
increment and slope are those of the positions alone.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath
from annealz.paths.bases.abstract import AbstractBase

__all__ = ["PhasePath"]

_MOMENTUM = 2**31  # its draw


class PhasePath(AbstractPath):
    """The path of positions (chains, dim), with momenta beside them."""

    base: AbstractBase
    positions: AbstractPath

    def __init__(self, positions: AbstractPath):
        self.base, self.positions = positions.base, positions

    @property
    def log_z0(self) -> float:
        return self.positions.log_z0

    def sample(self, bits: Bits) -> Float[Array, "chains 2 dim"]:
        return _with_momentum(bits, self.positions.sample(bits))

    def log_density(self, x, beta):
        return self.positions.log_density(x[:, 0], beta) - 0.5 * (x[:, 1] ** 2).sum(-1)

    def log_ratio(self, x, beta0, beta1):
        return self.positions.log_ratio(x[:, 0], beta0, beta1)

    def slope(self, x, beta):
        return self.positions.slope(x[:, 0], beta)

    def position(self, x):
        return self.positions.position(x[:, 0])

    def state(self, bits, position):
        return _with_momentum(bits, self.positions.state(bits, position))


def _with_momentum(bits: Bits, x) -> Float[Array, "chains 2 dim"]:
    return jnp.stack([x, bits.normals(x.shape[-1], _MOMENTUM)], axis=1)
