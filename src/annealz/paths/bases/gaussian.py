"""The Gaussian base: p*_A(x) = exp(-|z|^2 / 2), x = m + S z.

S is diagonal or lower triangular, so that S S^T is the covariance, and

    log Z_A = dim/2 log 2 pi + sum_i log S_ii
"""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.paths.bases.abstract import AbstractBase

__all__ = ["GaussianBase"]


class GaussianBase(AbstractBase):
    """A Gaussian with this mean and scale: standard deviations (dim,) or a lower triangle (dim, dim).

    Examples
    --------
    >>> import annealz
    >>> base = annealz.GaussianBase.from_moments(
    ...     mean=[1.0, 0.0], covariance=[[2.0, 0.5], [0.5, 1.0]]
    ... )
    >>> base.dim, round(base.log_z, 4)  # log of 2 pi sqrt(det)
    (2, 2.1177)
    >>> annealz.GaussianBase.standard(3).name
    'standard'
    """

    mean: Float[Array, " dim"]
    scale: Float[Array, " dim"] | Float[Array, "dim dim"]
    name: str = eqx.field(static=True, default="gaussian")
    evaluations: int = eqx.field(static=True, default=0)
    """Of the density, that finding it took."""

    @classmethod
    def standard(cls, dim: int) -> Self:
        """Mean 0, variance 1."""
        return cls(on_device(np.zeros(dim)), on_device(np.ones(dim)), "standard")

    @classmethod
    def from_moments(
        cls, mean: ArrayLike, covariance: ArrayLike, name: str = "gaussian", evaluations: int = 0
    ) -> Self:
        """The Gaussian of this mean (dim,) and covariance, (dim, dim) or the variances (dim,)."""
        mean, covariance = np.asarray(mean, np.float64), np.asarray(covariance, np.float64)
        if mean.ndim != 1 or covariance.shape not in (mean.shape, mean.shape * 2):
            raise ValueError(
                "a Gaussian base takes a mean (dim,) and a covariance (dim, dim) or variances (dim,), got "
                f"shapes {mean.shape} and {covariance.shape}."
            )
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            raise ValueError("mean and covariance of a Gaussian base must be finite.")
        try:
            scale = np.linalg.cholesky(covariance) if covariance.ndim == 2 else np.sqrt(covariance)
        except np.linalg.LinAlgError:
            scale = np.full(1, np.nan)
        if not (np.isfinite(scale).all() and (np.diag(np.atleast_2d(scale)) > 0).all()):
            raise ValueError(
                "the covariance of a Gaussian base must be positive definite: add to its diagonal."
            )
        return cls(on_device(mean), on_device(scale), name, evaluations)

    @property
    def dim(self) -> int:
        return self.mean.shape[0]

    @property
    def log_z(self) -> float:
        """dim/2 log 2 pi + sum_i log S_ii, in float64."""
        scale = np.asarray(self.scale, np.float64)
        diagonal = scale if scale.ndim == 1 else np.diag(scale)
        return float(self.dim / 2 * np.log(2 * np.pi) + np.log(diagonal).sum())

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return self.from_unit(bits.normals(self.dim, draw))

    def log_density(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return -0.5 * (self.to_unit(x) ** 2).sum(-1)

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
