"""The moment-averaged path between two Gaussians, in closed form (Grosse, Maddison & Salakhutdinov 2013).

Mean and second moment move linearly, so that p_beta is the Gaussian of

    mu_beta    = (1 - beta) mu_A + beta mu_B
    Sigma_beta = (1 - beta) Sigma_A + beta Sigma_B + beta (1 - beta) (mu_B - mu_A)(mu_B - mu_A)^T

which is wide where the ends are far apart, and overlaps with both. Unnormalised, with log Z of both ends:

    log p*_beta(x) = log N(x; mu_beta, Sigma_beta) + (1 - beta) log Z_A + beta log Z_B

log Z_A is that of the base, log Z_B any number: it is what an estimate must find. A log ratio is a sum
of terms that are all of the size of the step: with y = x - mu_0, P = Sigma^-1 and D = Sigma_1 - Sigma_0,

    y_1.P_1 y_1 - y.P_0 y = -(P_1 y).D (P_0 y) - 2 (mu_1 - mu_0).P_1 y + (mu_1 - mu_0).P_1 (mu_1 - mu_0)
    log det Sigma_1 / det Sigma_0 = sum_i log1p(e_i),    e the eigenvalues of L^-1 D L^-T,  Sigma_0 = L L^T

Decompositions are computed again at every beta: this path is for a few dimensions, where its draws
(`annealz.testing.PerfectKernel`) are exact.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.gaussian import GaussianBase
from annealz.core.products import matmul
from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath

__all__ = ["GaussianMomentPath"]


class GaussianMomentPath(AbstractPath):
    """From a Gaussian base to a Gaussian of any mean and covariance.

    Parameters
    ----------
    base : where it starts
    mean, covariance : of the target
    log_z : the target's normaliser

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import PerfectKernel
    >>> base = annealz.GaussianBase.standard(2)
    >>> path = annealz.GaussianMomentPath(base, [3.0, -1.0], [[2.0, 0.5], [0.5, 1.0]], log_z=5.0)
    >>> run = annealz.anneal(path, PerfectKernel(), annealz.linear(50), num_chains=200)
    >>> end = annealz.log_z_along(run, [1.0])
    >>> bool(abs(end.log_z[0] - 5.0) < 5 * end.std_err[0])
    True
    """

    base: Any
    mean: Float[Array, " units"]
    covariance: Float[Array, "units units"]
    start: Float[Array, "units units"]
    log_z: Float[Array, ""]
    log_z_change: Float[Array, ""]

    def __init__(
        self, base: GaussianBase, mean: ArrayLike, covariance: ArrayLike, log_z: float = 0.0
    ):
        mean, covariance = np.asarray(mean, np.float32), np.asarray(covariance, np.float32)
        if mean.shape != (base.dim,) or covariance.shape != (base.dim,) * 2:
            raise ValueError(
                f"mean and covariance must be of dimension {base.dim} as the base is, got shapes "
                f"{mean.shape} and {covariance.shape}."
            )
        is_symmetric = np.allclose(covariance, covariance.T)
        if not is_symmetric or np.linalg.eigvalsh(np.float64(covariance)).min() <= 0:
            raise ValueError(
                "covariance must be symmetric and positive definite, got another matrix."
            )
        self.base, self.log_z = base, jnp.float32(log_z)
        self.log_z_change = jnp.float32(log_z - base.log_z)
        scale = base.scale
        self.start = jnp.diag(scale**2) if scale.ndim == 1 else matmul(scale, scale.T)
        self.mean, self.covariance = jnp.asarray(mean), jnp.asarray(covariance)

    @property
    def log_z0(self) -> float:
        return self.base.log_z

    def moments(self, beta) -> tuple[Float[Array, " units"], Float[Array, "units units"]]:
        """mu_beta and Sigma_beta."""
        apart = self.mean - self.base.mean
        within = self.start + beta * (self.covariance - self.start)
        return self.base.mean + beta * apart, within + beta * (1 - beta) * jnp.outer(apart, apart)

    def sample(self, bits: Bits):
        return self.draw(bits, jnp.float32(0))

    def draw(self, bits: Bits, beta) -> Float[Array, "chains units"]:
        """Exact draws from p_beta."""
        mean, covariance = self.moments(beta)
        return mean + matmul(bits.normals(self.mean.shape[0], 0), jnp.linalg.cholesky(covariance).T)

    def log_density(self, x, beta):
        mean, covariance = self.moments(beta)
        root = jnp.linalg.cholesky(covariance)
        scaled = jax.scipy.linalg.solve_triangular(root, (x - mean).T, lower=True)
        constant = jnp.log(jnp.diagonal(root)).sum() + x.shape[-1] * np.log(2 * np.pi) / 2
        log_z = self.log_z - (1 - beta) * self.log_z_change
        return -0.5 * (scaled**2).sum(0) - constant + log_z

    def log_ratio(self, x, beta0, beta1):
        (mean0, low), (_, high) = self.moments(beta0), self.moments(beta1)
        apart = self.mean - self.base.mean
        bend = (1 - beta0 - beta1) * jnp.outer(apart, apart)
        change = self.covariance - self.start + bend
        step, move = (beta1 - beta0) * change, (beta1 - beta0) * apart
        y = (x - mean0).T  # (units, chains)
        high_y, low_y = (jnp.linalg.solve(matrix, y) for matrix in (high, low))
        high_move = jnp.linalg.solve(high, move)
        squares = (
            -(high_y * matmul(step, low_y)).sum(0) - 2 * matmul(move, high_y) + move @ high_move
        )
        root = jnp.linalg.cholesky(low)
        inner = jax.scipy.linalg.solve_triangular(root, step, lower=True)
        inner = jax.scipy.linalg.solve_triangular(root, inner.T, lower=True)
        volumes = jnp.log1p(jnp.linalg.eigvalsh((inner + inner.T) / 2)).sum()
        return -0.5 * (squares + volumes) + (beta1 - beta0) * self.log_z_change
