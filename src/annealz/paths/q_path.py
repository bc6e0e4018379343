"""The q-path: power means between the two ends of another path (Masrani et al. 2021).

With f_A and f_B the log densities at the ends, d = f_B - f_A - c and r = 1 - q > 0,

    log p*_beta(x) = c + f_A + a(beta),     a(beta) = 1/r log[(1 - beta) + beta exp(u)],     u = r d
    log ratio      = a(beta1) - a(beta0) = 1/r log1p(y),     y = (beta1 - beta0) m / w(beta0)
    slope          = 1/r m / w(beta)
    m = expm1(u),        w(beta) = 1 - beta + beta exp(u)                u <= 0
    m = -expm1(-u),      w(beta) = (1 - beta) exp(-u) + beta             u > 0, both times exp(-u)

Where |y| > 1/2 the ratio is the difference itself, and loses nothing.

q = 0 mixes the two densities, q -> 1 is the geometric path between the marginals. c is a constant that
leaves both ends what they are up to a factor; a mixture compares unnormalised densities, so that c ought to
be about log Z_B / Z_A, or the path is all but its end or all but its start at every beta. log Z_A counts c
as well.

The conditionals of such a mixture are not those of any layer: move along it with `Metropolised`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath

__all__ = ["QPath"]


class QPath(AbstractPath):
    """Power means of order 1 - q between the ends of a path.

    Parameters
    ----------
    between : the path whose ends are taken
    q : from 0 to below 1
    log_scale : c, about log Z_B / Z_A where that is known roughly

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> from annealz.testing import random_rbm
    >>> straight = random_rbm(4, 6).path(annealz.BernoulliBase.uniform(6))
    >>> path = annealz.QPath(straight, q=0.9)
    >>> x = jnp.ones((1, 6))
    >>> bool(jnp.allclose(path.log_density(x, 1.0), straight.log_density(x, 1.0), atol=1e-4))
    True
    """

    base: Any
    between: AbstractPath
    rest: Float[Array, ""]
    log_scale: Float[Array, ""]

    def __init__(self, between: AbstractPath, q: float, log_scale: float = 0.0):
        if not 0 <= q < 1:
            raise ValueError(
                f"q must be from 0 to below 1, got {q}: the path of q = 1 is the geometric one itself."
            )
        self.base, self.between = between.base, between
        self.rest, self.log_scale = jnp.float32(1 - q), jnp.float32(log_scale)

    @property
    def log_z0(self) -> float:
        return self.between.log_z0 + float(self.log_scale)

    def sample(self, bits: Bits):
        return self.between.sample(bits)

    def pack(self, x):
        return self.between.pack(x)

    def unpack(self, packed):
        return self.between.unpack(packed)

    def log_density(self, x, beta):
        return self.between.log_density(x, 0.0) + self.log_scale + self.above_start(x, beta)

    def log_target(self, x):
        return self.between.log_target(x)

    def latent_entropy(self, x):
        return self.between.latent_entropy(x)

    def above_start(self, x, beta) -> Float[Array, " chains"]:
        """log p*_beta(x) - log p*_0(x)."""
        return self._above(self._gap(x), beta)

    def log_ratio(self, x, beta0, beta1):
        gap = self._gap(x)
        excess, whole = self._parts(gap, beta0)
        share = (beta1 - beta0) * excess / whole
        is_small = jnp.abs(share) < 0.5  # false for NaN
        near = jnp.log1p(jnp.where(is_small, share, 0.0)) / self.rest
        return jnp.where(is_small, near, self._above(gap, beta1) - self._above(gap, beta0))

    def slope(self, x, beta):
        excess, whole = self._parts(self._gap(x), beta)
        return excess / whole / self.rest

    def _gap(self, x):
        """u."""
        ends = self.between.log_ratio(x, jnp.float32(0), jnp.float32(1))
        return self.rest * (ends - self.log_scale)

    def _above(self, gap, beta):
        """a(beta)."""
        return jnp.logaddexp(jnp.log1p(-beta), jnp.log(beta) + gap) / self.rest

    def _parts(self, gap, beta):
        """m and w(beta)."""
        less = jnp.exp(-jnp.abs(gap))
        excess = jnp.sign(gap) * -jnp.expm1(-jnp.abs(gap))
        return excess, jnp.where(gap > 0, (1 - beta) * less + beta, 1 - beta + beta * less)
