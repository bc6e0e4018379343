"""Kinds of units of a layer that is independent given another one.

A layer of units l sees the rest of a model through linear fields z only,
p(l | z) = exp(z.e(l) + r(l) - A(z)):

    kind       values          e(l)                 r(l)              A(z), a unit
    Bernoulli  0, 1            l                    0                 softplus(z)
    softmax    0 .. q - 1      one of q indicators  0                 log sum_k exp(z_k)
    Gaussian   real            l                    -l^2 / 2 s^2      s^2 z^2 / 2 + log(s sqrt(2 pi))
    ReLU, dReLU: `rectified_units.py`

Summing a layer out leaves A(z); its gradient is the mean of e(l). Fields of softmax units lie side by
side: (chains, units * q). Differences A(z + d) - A(z) keep their digits for small d:

    softmax    log1p(sum_k p_k expm1(d_k)),  p = softmax(z);  for a large d the plain log of the sum
    Gaussian   s^2 d (z + d / 2)
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.numerics import softplus_difference
from annealz.core.random import Bits

_SMALL = 0.5  # a step of the fields, up to which log1p keeps more digits than the log of the sum


class AbstractUnits(eqx.Module):
    """One kind of units."""

    @property
    def is_real(self) -> bool:
        """Whether e(x) is anything else than zeros and ones."""
        return False

    def encode(self, x):
        """e(x): what the fields are multiplied with."""
        return x

    def reference(self, x) -> Float[Array, " chains"] | float:
        """r(x), summed over the units."""
        return 0.0

    @abc.abstractmethod
    def log_z(self, fields) -> Float[Array, "..."]:
        """A(z), summed over the units."""

    @abc.abstractmethod
    def log_z_difference(self, low, step) -> Float[Array, "..."]:
        """A(low + step) - A(low), summed over the units."""

    @abc.abstractmethod
    def mean(self, fields) -> Float[Array, "..."]:
        """E[e(l)] given the fields."""

    def entropy(self, fields) -> Float[Array, "..."]:
        """A(z) - z.E[e(l)], the entropy given the fields, summed over the units, where r(l) = 0."""
        if self.is_real:
            raise ValueError(f"the entropy of {type(self).__name__} is not known in closed form.")
        return self.log_z(fields) - (fields * self.mean(fields)).sum(-1)

    @abc.abstractmethod
    def sample(self, bits: Bits, fields, draw: int) -> Float[Array, "chains units"]:
        """Units given their fields."""

    @abc.abstractmethod
    def exact_log_z(self, fields: np.ndarray) -> np.ndarray:
        """A(z), summed over the units, in float64 on the host."""


class BernoulliUnits(AbstractUnits):
    """Zeros and ones."""

    def log_z(self, fields):
        return jax.nn.softplus(fields).sum(-1)

    def log_z_difference(self, low, step):
        return softplus_difference(low, step).sum(-1)

    def mean(self, fields):
        return jax.nn.sigmoid(fields)

    def entropy(self, fields):
        size = jnp.abs(fields)  # of which nothing cancels
        return (jax.nn.softplus(-size) + size * jax.nn.sigmoid(-size)).sum(-1)

    def sample(self, bits: Bits, fields, draw: int):
        return bits.bernoulli(fields, draw)

    def exact_log_z(self, fields):
        return np.logaddexp(0, fields).sum(-1)


class AbstractStateUnits(AbstractUnits):
    """Units of one of several values 0 .. q - 1, of which e(l) are q indicators."""

    num_states: eqx.AbstractVar[int]

    def natural(self, means: np.ndarray) -> np.ndarray:
        """The fields of these frequencies."""
        return np.log(means)


class SoftmaxUnits(AbstractStateUnits):
    """Units of `num_states` values, one of which they have."""

    num_states: int = eqx.field(static=True)

    def encode(self, x):
        hot = x[..., None] == jnp.arange(self.num_states)  # (chains, units, states)
        return hot.astype(jnp.float32).reshape(*x.shape[:-1], -1)

    def log_z(self, fields):
        return jax.nn.logsumexp(self._apart(fields), axis=-1).sum(-1)

    def log_z_difference(self, low, step):
        low, step = self._apart(low), self._apart(step)
        small = jnp.log1p((jax.nn.softmax(low, axis=-1) * jnp.expm1(step)).sum(-1))
        large = jax.nn.logsumexp(jax.nn.log_softmax(low, axis=-1) + step, axis=-1)
        return jnp.where(jnp.abs(step).max(-1) < _SMALL, small, large).sum(-1)

    def mean(self, fields):
        return jax.nn.softmax(self._apart(fields), axis=-1).reshape(fields.shape)

    def sample(self, bits: Bits, fields, draw: int):
        fields = self._apart(fields)
        weights = jnp.exp(fields - fields.max(-1, keepdims=True))
        sums = jnp.cumsum(weights, -1)  # (chains, units, states)
        level = bits.uniforms(fields.shape[-2], draw)[..., None] * sums[..., -1:]
        return (level > sums[..., :-1]).sum(-1).astype(jnp.float32)

    def exact_log_z(self, fields):
        apart = fields.reshape(*fields.shape[:-1], -1, self.num_states)
        largest = apart.max(-1, keepdims=True)
        return (largest[..., 0] + np.log(np.exp(apart - largest).sum(-1))).sum(-1)

    def _apart(self, fields):
        return fields.reshape(*fields.shape[:-1], -1, self.num_states)


class GaussianUnits(AbstractUnits):
    """Real values of these standard deviations.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> units = annealz.GaussianUnits(np.ones(2, np.float32))
    >>> round(float(units.log_z(np.zeros(2))), 4)  # log(2 pi)
    1.8379
    """

    scale: Float[Array, " units"]

    @property
    def is_real(self) -> bool:
        return True

    def reference(self, x):
        return -0.5 * ((x / self.scale) ** 2).sum(-1)

    def log_z(self, fields):
        free = jnp.log(self.scale).sum() + self.scale.size * math.log(2 * math.pi) / 2
        return 0.5 * ((self.scale * fields) ** 2).sum(-1) + free

    def log_z_difference(self, low, step):
        return (self.scale**2 * step * (low + 0.5 * step)).sum(-1)

    def mean(self, fields):
        return self.scale**2 * fields

    def sample(self, bits: Bits, fields, draw: int):
        return self.mean(fields) + self.scale * bits.normals(fields.shape[-1], draw)

    def exact_log_z(self, fields):
        scale = np.asarray(self.scale, np.float64)
        free = np.log(scale).sum() + scale.size * math.log(2 * math.pi) / 2
        return 0.5 * ((scale * fields) ** 2).sum(-1) + free
