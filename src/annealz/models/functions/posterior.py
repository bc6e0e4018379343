"""Prior times likelihood, as a function of unconstrained coordinates.

    f(x) = log L(theta(x)) + log p(x)

The offset goes with the likelihood, whose precision it is for; the prior is of order dim, in float32.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from annealz.models.functions.abstract import AbstractFunction


class Posterior(AbstractFunction):
    """A likelihood as a function of x, and the normalised log density of x under the prior."""

    likelihood: AbstractFunction
    log_prior: Callable[[Any], Any]

    def value(self, x, offset=0.0):
        return self.likelihood.value(x, offset) + self.log_prior(x).astype(jnp.float32)

    def value_and_gradient(self, x, offset=0.0):
        value, gradient = self.likelihood.value_and_gradient(x, offset)
        prior, slope = jax.value_and_grad(self.log_prior)(x)
        return value + prior.astype(jnp.float32), gradient + slope.astype(jnp.float32)

    @property
    def is_differentiable(self) -> bool:
        return self.likelihood.is_differentiable

    @property
    def note(self) -> str | None:
        return self.likelihood.note

    def rounding(self, x) -> float:
        return self.likelihood.rounding(x)

    @property
    def num_roundings(self) -> int:
        return self.likelihood.num_roundings
