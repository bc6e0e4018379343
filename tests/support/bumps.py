"""Densities of two variables with a known log Z, all of one program: numbers are arrays of a module."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import annealz
from annealz.core.arrays import on_device

__all__ = ["BUMP", "SMALL", "WIDE", "bumps"]

WIDE = annealz.GaussianBase.from_moments(np.zeros(2), np.full(2, 9.0), name="wide")
SMALL: dict[str, Any] = {
    "num_live": 120,
    "num_runs": 3,
    "num_inner_steps": 10,
}  # 40 live points per run


class Bumps(eqx.Module):
    """log of a sum of two Gaussians of unit mass, raised and cut."""

    means: Array
    scales: Array
    log_masses: Array
    height: Array
    edge: Array
    """The density is zero where the first variable is below."""
    is_flat: Array
    """Whether the density is that of the prior instead, with a likelihood of one."""

    def __call__(self, x: Array) -> Array:
        squares = jnp.sum((x - self.means) ** 2, -1) / self.scales**2
        logs = self.log_masses - squares / 2 - 2 * jnp.log(self.scales) - np.log(2 * np.pi)
        value = jnp.where(
            self.is_flat > 0, WIDE.log_density(x), jax.nn.logsumexp(logs) + self.height
        )
        return jnp.where(x[0] < self.edge, -jnp.inf, value)


def bumps(
    means=((0.5, -0.2), (0.0, 0.0)),
    scales=(0.3, 1.0),
    masses=(1.0, 0.0),
    height: float = 0.0,
    edge: float = -np.inf,
    is_flat: bool = False,
) -> annealz.LogDensity:
    """One bump by default, of log Z = 0, in the wide prior."""
    with np.errstate(divide="ignore"):
        values = (means, scales, np.log(masses), height, edge, is_flat)
    return annealz.LogDensity(
        Bumps(*(on_device(value) for value in values)), 2, "bumps", prior=WIDE
    )


BUMP = bumps()
