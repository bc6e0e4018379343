"""Rectified units: a Gaussian cut off below zero, and one that is another Gaussian below zero.

As `units.py` has it, p(l | z) = exp(z l + r(l) - A(z)), with f and m of `half_normal.py`:

    kind    values    r(l)                                         A(z), a unit
    ReLU    l >= 0    -l^2 / 2 s^2                                 f(s z) + log s
    dReLU   real      b+ l - l^2 / 2 s+^2   for l >= 0             log(exp P + exp N)
                      b- l - l^2 / 2 s-^2   for l < 0              P = f( s+ (z + b+)) + log s+
                                                                   N = f(-s- (z + b-)) + log s-

In the letters of RestrictedBoltzmannMachines.jl b is theta and s = 1 / sqrt(gamma). Means are s m(s z), and
q s+ m(u+) - (1 - q) s- m(u-) with u the arguments of f and q = sigmoid(P - N), the share of the positive
side,

    P - N = (max(u+, 0) - max(u-, 0)) (max(u+, 0) + max(u-, 0)) / 2 + c(u+) - c(u-) + log(s+ / s-)

in which large squares do not cancel. Differences A(z + d) - A(z) of dReLU are those of a sum of two terms
whose own differences keep their digits:  log(q exp dP + (1 - q) exp dN).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core import half_normal
from annealz.core.random import Bits
from annealz.core.units import AbstractUnits

SIDE_DRAW = 2
"""Added to the number of a draw: the bits that choose the side of zero."""

_SMALL = 0.5  # a change up to which log1p keeps more digits than the log of the sum


class ReLUUnits(AbstractUnits):
    """Real values from zero up: Gaussians of these standard deviations, cut off below zero.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> units = annealz.ReLUUnits(np.ones(2, np.float32))
    >>> round(float(units.log_z(np.zeros(2))), 4)  # log(pi / 2), of two half Gaussians
    0.4516
    """

    scale: Float[Array, " units"]

    @property
    def is_real(self) -> bool:
        return True

    def reference(self, x):
        return -0.5 * ((x / self.scale) ** 2).sum(-1)

    def log_z(self, fields):
        return (half_normal.log_z(self.scale * fields) + jnp.log(self.scale)).sum(-1)

    def log_z_difference(self, low, step):
        return half_normal.log_z_difference(self.scale * low, self.scale * step).sum(-1)

    def mean(self, fields):
        return self.scale * half_normal.mean(self.scale * fields)

    def sample(self, bits: Bits, fields, draw: int):
        return self.scale * half_normal.draw(bits, self.scale * fields, draw)

    def exact_log_z(self, fields):
        scale = np.asarray(self.scale, np.float64)
        return (half_normal.exact_log_z(scale * fields) + np.log(scale)).sum(-1)


class DReLUUnits(AbstractUnits):
    """Real values: on either side of zero a Gaussian of its own.

    Parameters
    ----------
    positive_bias, negative_bias : b+ and b-, added to the field on their side
    positive_scale, negative_scale : s+ and s-, standard deviations of the uncut Gaussians

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> zeros, ones = np.zeros(2, np.float32), np.ones(2, np.float32)
    >>> units = annealz.DReLUUnits(zeros, zeros, ones, ones)  # plain Gaussian units
    >>> round(float(units.log_z(zeros)), 4)  # log(2 pi)
    1.8379
    """

    positive_bias: Float[Array, " units"]
    negative_bias: Float[Array, " units"]
    positive_scale: Float[Array, " units"]
    negative_scale: Float[Array, " units"]

    @property
    def is_real(self) -> bool:
        return True

    def reference(self, x):
        bias = jnp.where(x < 0, self.negative_bias, self.positive_bias)
        scale = jnp.where(x < 0, self.negative_scale, self.positive_scale)
        return (bias * x - 0.5 * (x / scale) ** 2).sum(-1)

    def log_z(self, fields):
        above, below = self._sides(fields)
        terms = (
            half_normal.log_z(above) + jnp.log(self.positive_scale),
            half_normal.log_z(below) + jnp.log(self.negative_scale),
        )
        return jnp.logaddexp(*terms).sum(-1)

    def log_z_difference(self, low, step):
        above, below = self._sides(low)
        up = half_normal.log_z_difference(above, self.positive_scale * step)
        down = half_normal.log_z_difference(below, -self.negative_scale * step)
        logit = self._logit(above, below)
        small = jnp.log1p(
            jax.nn.sigmoid(logit) * jnp.expm1(up) + jax.nn.sigmoid(-logit) * jnp.expm1(down)
        )
        large = jnp.logaddexp(jax.nn.log_sigmoid(logit) + up, jax.nn.log_sigmoid(-logit) + down)
        is_small = jnp.maximum(jnp.abs(up), jnp.abs(down)) < _SMALL
        return jnp.where(is_small, small, large).sum(-1)

    def mean(self, fields):
        above, below = self._sides(fields)
        logit = self._logit(above, below)
        up = self.positive_scale * half_normal.mean(above)
        down = self.negative_scale * half_normal.mean(below)
        return jax.nn.sigmoid(logit) * up - jax.nn.sigmoid(-logit) * down

    def sample(self, bits: Bits, fields, draw: int):
        above, below = self._sides(fields)
        is_above = bits.bernoulli(self._logit(above, below), draw + SIDE_DRAW) > 0
        size = half_normal.draw(bits, jnp.where(is_above, above, below), draw)
        return size * jnp.where(is_above, self.positive_scale, -self.negative_scale)

    def exact_log_z(self, fields):
        biases = (np.asarray(b, np.float64) for b in (self.positive_bias, self.negative_bias))
        scales = (np.asarray(s, np.float64) for s in (self.positive_scale, self.negative_scale))
        terms = (
            half_normal.exact_log_z(sign * scale * (fields + bias)) + np.log(scale)
            for sign, scale, bias in zip((1, -1), scales, biases, strict=True)
        )
        return np.logaddexp(*terms).sum(-1)

    def _sides(self, fields):
        """u+ and u-."""
        above = self.positive_scale * (fields + self.positive_bias)
        return above, -self.negative_scale * (fields + self.negative_bias)

    def _logit(self, above, below):
        """P - N."""
        high, low = jnp.maximum(above, 0), jnp.maximum(below, 0)
        rest = half_normal.slow_part(above) - half_normal.slow_part(below)
        scales = jnp.log(self.positive_scale) - jnp.log(self.negative_scale)
        return 0.5 * (high - low) * (high + low) + rest + scales
