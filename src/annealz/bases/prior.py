"""The base that is a prior: exact draws, a normalised density in unconstrained coordinates.

    log p_A(x) = log prior(theta(x)) + log |d theta / dx|,        log Z_A = 0

Draws come from keys of JAX's own generator, one per chain (`Bits.keys`), so that they too are functions of
(seed, purpose, chain, step) alone.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.random import Bits
from annealz.io.fingerprint import program_digest


class PriorBase(AbstractBase):
    """A prior as functions of one position: a draw (dim,) from a key, and the normalised log density.

    Examples
    --------
    >>> import annealz
    >>> from jax import random
    >>> base = annealz.PriorBase(lambda key: random.uniform(key, 3), lambda x: 0.0, dim=3)
    >>> base.log_z, base.name
    (0.0, 'prior')
    """

    draw: Callable[[Array], Array]
    log_prob: Callable[[Array], Array]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="prior")
    offset: Float[Array, ""] | None = None  # see `with_offset`

    @property
    def log_z(self) -> float:
        return 0.0

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return jax.vmap(self.draw)(bits.keys(draw))

    def log_density(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        rows = jax.vmap(self.log_prob)(x.reshape(-1, self.dim))
        return rows.reshape(x.shape[:-1])

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of the programs of its functions."""
        draw = jax.make_jaxpr(self.draw)(jax.random.key(0))
        log_prob = jax.make_jaxpr(self.log_prob)(jnp.zeros(self.dim, jnp.float32))
        return program_digest(f"prior {self.dim}", draw, log_prob)
