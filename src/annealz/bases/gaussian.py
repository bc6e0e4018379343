"""The product of independent Gaussians: log p*_A(x) = -sum_i (x_i - m_i)^2 / (2 s_i^2).

Exact samples, exact log Z = sum_i log(s_i sqrt(2 pi)).
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.abstract import AbstractBase
from annealz.random import Bits

__all__ = ["GaussianBase"]


class GaussianBase(AbstractBase):
    """Independent Gaussians of these means and standard deviations."""

    mean: Float[Array, " units"]
    scale: Float[Array, " units"]
    name: str = eqx.field(static=True)

    @classmethod
    def checked(cls, mean: ArrayLike, scale: ArrayLike, name: str = "gaussian") -> Self:
        """The base of these vectors; a scale may be one number for all."""
        mean = np.asarray(mean, np.float32)
        scale = np.broadcast_to(np.asarray(scale, np.float32), mean.shape)
        if mean.ndim != 1 or not np.isfinite(mean).all():
            raise ValueError(f"the base's mean must be a finite vector, got shape {mean.shape}.")
        if not ((scale > 0) & np.isfinite(scale)).all():
            raise ValueError(f"the base's scale must be positive and finite, got {scale.min():g}.")
        return cls(jnp.asarray(mean), jnp.asarray(scale), name)

    @property
    def num_units(self) -> int:
        return self.mean.shape[0]

    @property
    def log_z(self) -> float:
        scale = np.asarray(self.scale, np.float64)
        return float(np.log(scale).sum() + scale.size * np.log(2 * np.pi) / 2)

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains units"]:
        return self.mean + self.scale * bits.normals(self.num_units, draw)

    def log_density(self, x: Float[Array, "*batch units"]) -> Float[Array, "*batch"]:
        return -0.5 * (((x - self.mean) / self.scale) ** 2).sum(-1)
