"""Bases over the reals that have a frame: coordinates z in which they are all alike, x = m + S z.

S is diagonal or lower triangular. A base is a density of z, and dx = |S| dz:

    log Z_A = log of the normaliser in z + sum_i log S_ii
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.random import Bits


class AbstractFrameBase(AbstractBase):
    """A base whose own coordinates are z = S^-1 (x - m)."""

    mean: eqx.AbstractVar[Float[Array, " dim"]]
    scale: eqx.AbstractVar[Float[Array, " dim"] | Float[Array, "dim dim"]]

    @abc.abstractmethod
    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        """Exact draws of z."""

    @abc.abstractmethod
    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        """log p*_A as a function of z."""

    def log_stretch(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"] | float:
        """log |dx/dz| less its constant part log |S|: 0 where the frame is the same everywhere."""
        return 0.0

    def is_resolved(self, z: Float[Array, "*batch dim"]) -> Bool[Array, "*batch"] | bool:
        """Whether numbers distinguish these states; elsewhere the density counts as zero."""
        return True

    @property
    def dim(self) -> int:
        return self.mean.shape[0]

    @property
    def log_volume(self) -> float:
        """log |S|, in float64."""
        scale = np.asarray(self.scale, np.float64)
        return float(np.log(scale if scale.ndim == 1 else np.diag(scale)).sum())

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return self.from_unit(self.sample_unit(bits, draw))

    def log_density(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return self.log_density_unit(self.to_unit(x))

    def from_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """x = m + S z."""
        if self.scale.ndim == 1:
            return self.mean + self.scale * z
        return self.mean + jnp.matmul(z, self.scale.T, precision=jax.lax.Precision.HIGHEST)

    def to_unit(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """z = S^-1 (x - m)."""
        if self.scale.ndim == 1:
            return (x - self.mean) / self.scale
        rows = (x - self.mean).reshape(-1, self.dim)
        solved = jax.scipy.linalg.solve_triangular(self.scale, rows.T, lower=True).T
        return solved.reshape(x.shape)


def root_of(covariance: np.ndarray) -> np.ndarray:
    """S with S S^T the covariance (dim, dim), or its root where variances (dim,) are given."""
    try:
        root = np.linalg.cholesky(covariance) if covariance.ndim == 2 else np.sqrt(covariance)
    except np.linalg.LinAlgError:
        root = np.full(1, np.nan)
    if not (np.isfinite(root).all() and (np.diag(np.atleast_2d(root)) > 0).all()):
        raise ValueError(
            "the covariance of a Gaussian base must be positive definite: add to its diagonal."
        )
    return root
