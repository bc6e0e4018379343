"""The geometric path from a Gaussian to any density, in the Gaussian's own coordinates.

With x = m + S z, where N(m, S S^T) is the base, states are z and

    log p*_beta(z) = -(1 - beta) |z|^2 / 2 + beta f(m + S z)       f the model's log density
    U(z)           = f(m + S z) + |z|^2 / 2                        whatever beta
    log ratio      = (beta1 - beta0) U(z)                          exact, one evaluation of f

At beta = 0 all coordinates of z are alike, so that a kernel need not know S. Both ends are counted as
densities of x, dx = |S| dz: log Z_A is that of the base, and log Z_B the model's own.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import GaussianBase
from annealz.models.log_density import LogDensity
from annealz.paths.abstract import AbstractPath
from annealz.random import Bits

__all__ = ["TemperedPath"]


class TemperedPath(AbstractPath):
    """From a Gaussian base to a model with a log density over the reals."""

    base: AbstractBase
    model: LogDensity
    gaussian: GaussianBase

    def __init__(self, base: GaussianBase, model: LogDensity):
        if not isinstance(base, GaussianBase) or base.dim != model.dim:
            raise ValueError(
                f"base of {model.name} must be a GaussianBase of dimension {model.dim}, got "
                f"{type(base).__name__} of dimension {getattr(base, 'dim', 'unknown')}."
            )
        self.base = self.gaussian = base
        self.model = model

    @property
    def log_z0(self) -> float:
        return self.base.log_z

    def sample(self, bits: Bits) -> Float[Array, "chains dim"]:
        return bits.normals(self.gaussian.dim, draw=0)

    def log_density(self, x, beta):
        return beta * self.slope(x, beta) - 0.5 * (x**2).sum(-1)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        return self.model.log_density(self.gaussian.from_unit(x)) + 0.5 * (x**2).sum(-1)

    def position(self, x):
        return self.gaussian.from_unit(x)

    def state(self, bits, position):
        return self.gaussian.to_unit(jnp.asarray(position, jnp.float32))
