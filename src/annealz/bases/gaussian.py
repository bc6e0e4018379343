"""Bases over the reals that have a frame: coordinates z in which they are all alike, x = m + S z.

S is diagonal or lower triangular. A base is a density of z, and dx = |S| dz:

    log Z_A = log of the normaliser in z + sum_i log S_ii

The simplest is the Gaussian, p*_A(x) = exp(-|z|^2 / 2), whose covariance is S S^T and

    log Z_A = dim/2 log 2 pi + sum_i log S_ii
"""

import abc
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.arrays import on_device
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
    def log_z(self) -> float:
        """log |S|, of a density that is normalised in z."""
        return self.log_volume

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


class GaussianBase(AbstractFrameBase):
    """A Gaussian with this mean and scale: standard deviations (dim,) or a lower triangle (dim, dim).

    Examples
    --------
    >>> import annealz
    >>> base = annealz.GaussianBase.from_moments([1.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> base.dim, round(base.log_z, 4)  # log of 2 pi sqrt(det)
    (2, 2.1177)
    """

    mean: Float[Array, " dim"]
    scale: Float[Array, " dim"] | Float[Array, "dim dim"]
    name: str = eqx.field(static=True, default="gaussian")
    offset: Float[Array, ""] | None = None  # see `with_offset`

    @classmethod
    def standard(cls, dim: int) -> Self:
        """Mean 0, variance 1."""
        return cls(on_device(np.zeros(dim)), on_device(np.ones(dim)), "standard")

    @classmethod
    def from_moments(cls, mean: ArrayLike, covariance: ArrayLike, name: str = "gaussian") -> Self:
        """The Gaussian of this mean (dim,) and covariance, (dim, dim) or the variances (dim,)."""
        mean, covariance = np.asarray(mean, np.float64), np.asarray(covariance, np.float64)
        if mean.ndim != 1 or covariance.shape not in (mean.shape, mean.shape * 2):
            raise ValueError(
                "a Gaussian base takes a mean (dim,) and a covariance (dim, dim) or variances (dim,), got "
                f"shapes {mean.shape} and {covariance.shape}."
            )
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            raise ValueError("mean and covariance of a Gaussian base must be finite.")
        return cls(on_device(mean), on_device(root_of(covariance)), name)

    @property
    def log_z(self) -> float:
        """dim/2 log 2 pi + sum_i log S_ii, in float64."""
        return float(self.dim / 2 * np.log(2 * np.pi) + self.log_volume)

    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return bits.normals(self.dim, draw)

    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return -0.5 * (z**2).sum(-1)


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
