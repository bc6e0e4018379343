"""Gibbs by enumeration: one unit after the other is drawn from its exact conditional.

    p_beta(x_i = k | rest)  ∝  exp[(1-beta) log p*_A(x_i = k, rest) + beta f(x_i = k, rest)]

The value of f where the chain stands is carried along (`paths/discrete.py`), so that a unit of q states
takes q - 1 evaluations, of all chains at once. A sweep updates m units in a row, i, i ± 1, …, modulo n,
where every chain draws i and the direction for itself. As the same units in the opposite order are as
likely, a sweep is its own reversal; with m = n every unit is updated once.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from annealz.core.random import Bits
from annealz.core.units import SoftmaxUnits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.paths.discrete import DiscretePath


class UnitGibbs(AbstractKernel):
    """A sweep over `num_updates` units of `num_states` states each.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.DiscreteDensity(lambda x: 0.5 * jnp.sum(x), num_units=4)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     kernel=annealz.UnitGibbs(num_updates=2),
    ...     base="uniform",
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ...     second_opinion=False,
    ... )
    >>> abs(estimate.log_z - estimate.exact_log_z) < 5 * estimate.std_err
    True
    >>> estimate.evaluations["main"]  # two per sweep, and one where a chain starts
    5050
    """

    num_updates: int = eqx.field(static=True)
    num_states: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        for name, value, least in (
            ("num_updates", self.num_updates, 1),
            ("num_states", self.num_states, 2),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}.")

    @property
    def evaluations(self) -> int:
        return self.num_updates * (self.num_states - 1)

    def extend(self, path: AbstractPath) -> DiscretePath:
        own = discrete_path(path, "UnitGibbs")
        if own.num_states != self.num_states:
            raise ValueError(
                f"UnitGibbs has units of {self.num_states} states, and the model has {own.num_states}: "
                f"give num_states={own.num_states}."
            )
        return own if own.has_value else own.carrying()

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

    def reversed(self) -> "UnitGibbs":
        return self


def discrete_path(path: AbstractPath, who: str) -> DiscretePath:
    """The path itself, if it is one of a `DiscreteDensity`."""
    if not isinstance(path, DiscretePath):
        raise ValueError(
            f"{who} moves the units of a DiscreteDensity, got a {type(path).__name__}: take the model's "
            "own kernel (leave kernel out)."
        )
    return path
