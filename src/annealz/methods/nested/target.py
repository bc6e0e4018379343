"""A density as prior times likelihood, which is what nested sampling takes.

log p*(x) = log pi(x) + log L(x),    pi normalised,    log Z = log of the mean of L over pi
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.models.log_density import LogDensity


class Target(eqx.Module):
    """log pi and log L of rows of positions; the likelihood is the density divided by the prior."""

    model: LogDensity
    prior: AbstractBase

    def __call__(
        self, x: Float[Array, "rows dim"], offset: Float[Array, ""]
    ) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        """log pi(x) + log Z_pi and log L(x) - log Z_pi - offset, Z_pi the normaliser of the prior.

        L is 0 where the prior has no mass.
        """
        log_prior = self.prior.log_density(x).astype(jnp.float32)
        joint = self.model.log_density(x, offset).astype(jnp.float32)
        return log_prior, jnp.where(jnp.isneginf(log_prior), -jnp.inf, joint - log_prior)
