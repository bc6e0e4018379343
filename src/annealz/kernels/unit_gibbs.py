"""Kernels of discrete densities: Gibbs by enumeration, and Gibbs with gradients.

The value of f where the chain stands is carried along (`paths/discrete.py`), with its gradient where one is
wanted. Both kernels are their own reversals.

By enumeration one unit after the other is drawn from its exact conditional,

    p_beta(x_i = k | rest)  ∝  exp[(1-beta) log p*_A(x_i = k, rest) + beta f(x_i = k, rest)]

where a unit of q states takes q - 1 evaluations, of all chains at once. A sweep updates m units in a row,
i, i ± 1, …, modulo n, where every chain draws i and the direction for itself. As the same units in the
opposite order are as likely, a sweep is its own reversal; with m = n every unit is updated once.

With gradients (Grathwohl et al. 2021) the gradient says which unit is worth changing. With d(x)[i, k] the
gain of log p_beta that the gradient at x promises if unit i took the state k,

    propose (i, k) with probability  Q(i, k | x) = exp(d[i, k] / 2) / sum exp(d / 2),   over all k != x_i
    take it with probability         min(1, p_beta(y) Q(i, x_i | y) / (p_beta(x) Q(i, k | x)))

Metropolis's test makes it exact however poor the promise is. A proposal takes one evaluation with its
gradient. Every proposal is reversible with respect to the same p_beta, and so is a sweep of several.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from annealz.core.random import Bits
from annealz.core.units import SoftmaxUnits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.paths.discrete import DiscretePath, Evaluated
from annealz.paths.tempered import where


class AbstractUnitKernel(AbstractKernel):
    """A kernel of the units of a `DiscreteDensity`, with counts as its fields; its own reversal."""

    def __check_init__(self):
        for name, value in vars(self).items():
            least = 2 if name == "num_states" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}.")

    def extend(self, path: AbstractPath) -> DiscretePath:
        if not isinstance(path, DiscretePath):
            raise ValueError(
                f"{type(self).__name__} moves the units of a DiscreteDensity, got a "
                f"{type(path).__name__}: take the model's own kernel (leave kernel out)."
            )
        return path if path.carries_value else path.carrying()

    def reversed(self) -> AbstractKernel:
        return self


class UnitGibbs(AbstractUnitKernel):
    """A sweep over `num_updates` units of `num_states` states each.

    Examples
    --------
    >>> import annealz
    >>> annealz.UnitGibbs(num_updates=2, num_states=3).evaluations  # per sweep
    4
    """

    num_updates: int = eqx.field(static=True)
    num_states: int = eqx.field(static=True, default=2)

    @property
    def evaluations(self) -> int:
        return self.num_updates * (self.num_states - 1)

    def extend(self, path: AbstractPath) -> DiscretePath:
        own = super().extend(path)
        if own.num_states != self.num_states:
            raise ValueError(
                f"UnitGibbs has units of {self.num_states} states, and the model has {own.num_states}: "
                f"give num_states={own.num_states}."
            )
        return own

    def step(self, bits: Bits, x, path: DiscretePath, beta):
        parts = path.split(x)
        number = path.num_units
        uniforms = bits.uniforms(2, draw=0)
        first = jnp.minimum(uniforms[:, 0] * number, number - 1).astype(jnp.int32)
        way = jnp.where(uniforms[:, 1] < 0.5, 1, -1)

        def update(k, held):
            x, value = held
            is_unit = (first + way * k)[:, None] % number == jnp.arange(number)
            here = jnp.where(is_unit, x, 0).sum(-1)
            others = (here[:, None] + jnp.arange(1, self.num_states)) % self.num_states
            options = jnp.where(is_unit[:, None], others[..., None], x[:, None])
            values = path.value(options.reshape(-1, number)).reshape(others.shape)
            options = jnp.concatenate([x[:, None], options], 1)  # (chains, states, units)
            values = jnp.concatenate([value[:, None], values], 1)
            logits = path.at_beta(options, values, beta)
            chosen = SoftmaxUnits(self.num_states).sample(bits, logits, k + 1).astype(jnp.int32)
            x = jnp.take_along_axis(options, chosen[:, :, None], 1)[:, 0]
            return x, jnp.take_along_axis(values, chosen, 1)[:, 0]

        moved, value = jax.lax.fori_loop(0, self.num_updates, update, (parts.x, parts.value))
        return path.join(parts._replace(x=moved, value=value))


class GradientGibbs(AbstractUnitKernel):
    """`num_proposals` changes of one unit, proposed by the gradient and taken or refused.

    Examples
    --------
    >>> import annealz
    >>> annealz.GradientGibbs(num_proposals=2).evaluations  # per sweep
    2
    """

    num_proposals: int = eqx.field(static=True)

    @property
    def evaluations(self) -> int:
        return self.num_proposals

    def extend(self, path: AbstractPath) -> DiscretePath:
        own = super().extend(path)
        own.model.check_gradient()
        return own if own.has_gains else own.carrying(gains=True)

    def step(self, bits: Bits, x, path: DiscretePath, beta):
        def propose(k, parts: Evaluated) -> Evaluated:
            forward = _log_chances(parts, path, beta)
            options = SoftmaxUnits(forward.shape[-1])
            chosen = options.sample(bits, forward, 2 * k)[:, 0].astype(jnp.int32)
            unit, state = jnp.divmod(chosen, path.num_states)
            is_unit = unit[:, None] == jnp.arange(path.num_units)
            old = jnp.where(is_unit, parts.x, 0).sum(-1).astype(jnp.int32)
            other = path.evaluated(jnp.where(is_unit, state[:, None].astype(x.dtype), parts.x))
            back = _log_chances(other, path, beta)
            there = jnp.take_along_axis(forward, chosen[:, None], 1)[:, 0]
            home = jnp.take_along_axis(back, (unit * path.num_states + old)[:, None], 1)[:, 0]
            gain = path.at_beta(other.x, other.value, beta)
            gain = gain - path.at_beta(parts.x, parts.value, beta)
            is_taken = bits.uniforms(1, 2 * k + 1)[:, 0] <= jnp.exp(gain + home - there)
            return where(is_taken, other, parts)

        parts = jax.lax.fori_loop(0, self.num_proposals, propose, path.split(x))
        return path.join(parts)


def _log_chances(parts: Evaluated, path: DiscretePath, beta):
    """log Q of every change, (chains, units * states); -inf for the state that a unit has."""
    base = path.base_gains(parts.x)
    table = base + beta * (parts.gains - base)
    table = jnp.concatenate([jnp.zeros_like(table[..., :1]), table], -1)
    is_here = parts.x[..., None] == jnp.arange(path.num_states)  # (chains, units, states)
    gains = table - jnp.where(is_here, table, 0).sum(-1, keepdims=True)
    logits = jnp.where(is_here, -jnp.inf, gains / 2).reshape(parts.x.shape[0], -1)
    return jax.nn.log_softmax(logits, axis=-1)
