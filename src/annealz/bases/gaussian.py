"""The Gaussian base: p*_A(x) = exp(-|z|^2 / 2), x = m + S z.

S is diagonal or lower triangular, so that S S^T is the covariance, and

    log Z_A = dim/2 log 2 pi + sum_i log S_ii
"""

from typing import Self

import equinox as eqx
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.frame import AbstractFrameBase, root_of
from annealz.core.arrays import on_device
from annealz.core.random import Bits


class GaussianBase(AbstractFrameBase):
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
    offset: Float[Array, ""] | None = None
    """What is subtracted from the log density that a path leads to (`paths/tempered.py`)."""

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
        return cls(on_device(mean), on_device(root_of(covariance)), name, evaluations)

    @property
    def log_z(self) -> float:
        """dim/2 log 2 pi + sum_i log S_ii, in float64."""
        return float(self.dim / 2 * np.log(2 * np.pi) + self.log_volume)

    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return bits.normals(self.dim, draw)

    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return -0.5 * (z**2).sum(-1)
