"""The geometric path from independent units, or a mixture of such, to any function of discrete states.

    log p*_beta(x) = (1-beta) log p*_A(x) + beta f(x),      x in {0 .. q-1}^n,  f the model's log density
    U(x)           = f(x) - log p*_A(x)                      whatever beta
    log ratio      = (beta1 - beta0) U(x)                    exact

A row of the states is

    x (n)  |  f (1)  |  D (n (q-1))

f, and for kernels that want it D, do not depend on beta: the evaluation that ends one move serves the next
increment, the slope and the start of the next move. D[i, k-1] = df/dx_ik - df/dx_i0 is the gradient of f at
the one-hot form of x, from which unit i is expected to gain D[i, k] - D[i, x_i] in the state k; of the base
the same is known exactly, or by the shares of the components.

Where f is -inf the density is zero. There f counts as -1e18, as in `tempered.py`.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.categorical import CategoricalBase
from annealz.bases.mixture import MixtureBase
from annealz.core.products import matmul
from annealz.core.random import Bits
from annealz.core.units import AbstractUnits, SoftmaxUnits
from annealz.paths.abstract import AbstractPath
from annealz.paths.tempered import ZERO_DENSITY, floored


class Evaluated(NamedTuple):
    """The parts of a state, chains first; None for what is not carried."""

    x: Float[Array, "chains units"]
    value: Any = None
    """(chains,)"""
    gains: Any = None
    """D, (chains, units, states - 1)"""


class DiscretePath(AbstractPath):
    """From a base to a `DiscreteDensity`; states are the numbers 0 .. q - 1, as floats.

    Parameters
    ----------
    base : the distribution at beta = 0
    model : the density at beta = 1
    carries_value, has_gains : whether f and D are parts of the states
    """

    base: AbstractBase
    model: Any
    constants: Float[Array, " components"] | None
    """Of a mixture."""
    carries_value: bool = eqx.field(static=True)
    has_gains: bool = eqx.field(static=True)

    def __init__(
        self,
        base: AbstractBase,
        model: Any,
        *,
        carries_value: bool = False,
        has_gains: bool = False,
    ):
        self.base, self.model = base, model
        self.constants = base.constants if isinstance(base, MixtureBase) else None
        self.carries_value, self.has_gains = carries_value, has_gains

    def carrying(self, *, gains: bool = False) -> "DiscretePath":
        """The same with f, and D if wanted, in its states."""
        return DiscretePath(self.base, self.model, carries_value=True, has_gains=gains)

    @property
    def num_units(self) -> int:
        return self.model.num_units

    @property
    def num_states(self) -> int:
        return self.model.num_states

    @property
    def units(self) -> AbstractUnits:
        return self.model.units

    @property
    def log_z0(self) -> float:
        return self.base.log_z

    def sample(self, bits: Bits):
        return self.join(self.evaluated(self.base.sample(bits)))

    def state(self, bits: Bits, position):
        return self.join(self.evaluated(jnp.asarray(position, jnp.float32)))

    def position(self, x):
        return x[:, : self.num_units]

    def split(self, x) -> Evaluated:
        """The parts of a state."""
        number = self.num_units
        value = x[:, number] if self.carries_value else None
        gains = None
        if self.has_gains:
            gains = x[:, number + 1 :].reshape(-1, number, self.num_states - 1)
        return Evaluated(x[:, :number], value, gains)

    def join(self, parts: Evaluated) -> Float[Array, "chains width"]:
        """The state of these parts."""
        columns = [parts.x]
        columns += [] if parts.value is None else [parts.value[:, None]]
        columns += [] if parts.gains is None else [parts.gains.reshape(parts.x.shape[0], -1)]
        return jnp.concatenate(columns, axis=1)

    def evaluated(self, x) -> Evaluated:
        """The parts of a state at x: one evaluation of the model, where its value is carried."""
        if not self.carries_value:
            return Evaluated(x)
        if not self.has_gains:
            return Evaluated(x, self.value(x))
        values, gains = self.model.value_and_gains(x)
        is_zero = (values < ZERO_DENSITY)[:, None, None] | ~jnp.isfinite(gains)
        return Evaluated(x, floored(values), jnp.where(is_zero, 0, gains))

    def value(self, x) -> Float[Array, " chains"]:
        """f of these positions."""
        return floored(self.model.log_density(x))

    def at_beta(self, x, value, beta) -> Float[Array, " chains"]:
        """log p*_beta of positions at which f has this value."""
        base = self.base_value(x)
        return base + beta * (value - base)

    def base_value(self, x) -> Float[Array, " chains"]:
        """log p*_A of these positions."""
        if isinstance(self.base, MixtureBase):
            return jax.nn.logsumexp(self._terms(x), axis=-1)
        return self.base.log_density(x)

    def base_gains(self, x) -> Float[Array, "... units more"]:
        """What D is for the base: (units, states - 1), or one such table per chain."""
        base, shape = self.base, (self.num_units, -1)
        if isinstance(base, BernoulliBase):
            return base.logits[:, None]
        if isinstance(base, CategoricalBase):
            return base.logits[:, 1:] - base.logits[:, :1]
        assert isinstance(base, MixtureBase)
        shares = jax.nn.softmax(self._terms(x), axis=-1)
        table = matmul(shares, base.logits).reshape(x.shape[0], *shape)
        is_softmax = isinstance(base.units, SoftmaxUnits)
        return table[..., 1:] - table[..., :1] if is_softmax else table

    def log_density(self, x, beta):
        parts = self.split(x)
        return self.at_beta(parts.x, self._value(parts), beta)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        parts = self.split(x)
        return self._value(parts) - self.base_value(parts.x)

    def _terms(self, x) -> Float[Array, "... components"]:
        """log pi_k + log p_k(x) of the components of a mixture."""
        assert isinstance(self.base, MixtureBase)
        terms = matmul(self.base.units.encode(x), self.base.logits.T)
        return terms if self.constants is None else terms + self.constants

    def _value(self, parts: Evaluated):
        return self.value(parts.x) if parts.value is None else parts.value
