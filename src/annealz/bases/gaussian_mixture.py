"""A mixture of Gaussians, or of Student's t, as a base: several modes, and tails of any weight.

In the coordinates of its frame, x = m + S z (`gaussian.py`), with component k of centre c_k and root L_k,
y_k = L_k^-1 (z - c_k):

    Gaussians      p(z) = sum_k pi_k |L_k|^-1 (2 pi)^(-dim/2) exp(-|y_k|^2 / 2)
    Student's t    p(z) = sum_k pi_k |L_k|^-1 C (1 + |y_k|^2 / nu)^(-(nu + dim)/2)
                   C = Gamma((nu + dim)/2) / (Gamma(nu/2) (nu pi)^(dim/2))

Both are normalised in z, so that log Z_A = log |S|. A draw takes a component, a normal vector and, of
Student's t, the root of nu over a sum of nu squared normals.

Programs are compiled for shapes, and seeds of one density find mixtures of different ones. So several
components are filled up with others of no weight, and the tail is an array:

    nu, (nu + dim) / 2, log C     computed once, on the host
"""

import dataclasses
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float
from scipy.special import gammaln

from annealz.bases.gaussian import AbstractFrameBase, root_of
from annealz.core.arrays import on_device
from annealz.core.random import Bits

_COMPONENT, _RADIUS = 1, 2  # draws beside the normal vector
_FILLED = 8  # components, where there are several but fewer
_FILLED_DOF = 8  # normals of the radius, where fewer are asked for


class GaussianMixtureBase(AbstractFrameBase):
    """Gaussians, or Student's t of `dof` degrees of freedom, side by side.

    Examples
    --------
    >>> import annealz
    >>> moments = {"means": [[0.0], [20.0]], "covariances": [[[1.0]], [[4.0]]]}
    >>> base = annealz.GaussianMixtureBase.from_moments([0.5, 0.5], **moments)
    >>> base.num_components, base.dof
    (2, 0)
    """

    mean: Float[Array, " dim"]
    scale: Float[Array, "dim dim"]
    log_weights: Float[Array, " filled"]
    """-inf of what fills up."""
    centres: Float[Array, "filled dim"]
    inverses: Float[Array, "filled dim dim"]
    """L_k^-1, lower triangular."""
    tail: Float[Array, "3"]
    """nu, (nu + dim) / 2 and log C of Student's t; 0, 0 and log C of Gaussians."""
    offset: Float[Array, ""] | None  # see `with_offset`
    num_squares: int = eqx.field(static=True)
    """Normals that are drawn for the radius."""
    is_round: bool = eqx.field(static=True)
    """Whether it is one component in its own frame, so that there is nothing to multiply with."""
    name: str = eqx.field(static=True, default="mixture")

    @classmethod
    def from_moments(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        dof: int = 0,
        name: str = "mixture",
    ) -> Self:
        """From weights (components,), means (components, dim) and covariances (components, dim, dim).

        Of Student's t the matrices are scales: the covariance is dof / (dof - 2) times as large. The
        frame is the mean and covariance of the whole mixture.
        """
        shares = np.asarray(weights, np.float64)
        means, covariances = np.asarray(means, np.float64), np.asarray(covariances, np.float64)
        if (
            means.ndim != 2
            or covariances.shape != (*means.shape, means.shape[1])
            or shares.shape != means.shape[:1]
        ):
            raise ValueError(
                "a mixture base takes weights (components,), means (components, dim) and covariances "
                f"(components, dim, dim), got shapes {shares.shape}, {means.shape} and "
                f"{covariances.shape}."
            )
        if not (np.isfinite(shares).all() and (shares > 0).all()):
            raise ValueError("weights of a mixture base must be positive numbers.")
        if isinstance(dof, bool) or dof != int(dof) or not 0 <= dof <= 64:
            raise ValueError(
                f"dof of a mixture base must be a whole number up to 64, or 0 for Gaussians, got {dof}."
            )
        if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
            raise ValueError("means and covariances of a mixture base must be finite.")
        shares = shares / shares.sum()
        mean = shares @ means
        spread = means - mean
        root = root_of(
            np.einsum("k,kij->ij", shares, covariances) + (shares[:, None] * spread).T @ spread
        )
        centres = np.linalg.solve(root, spread.T).T
        inverses = np.stack([np.linalg.solve(root_of(one), root) for one in covariances])
        count, dim = means.shape
        if count == 1:  # the frame is that of the component, without rounding
            centres, inverses = np.zeros_like(centres), np.eye(dim)[None]
        more = 0 if count == 1 else max(_FILLED, 2 ** (count - 1).bit_length()) - count
        constant = -dim / 2 * np.log(2 * np.pi)
        if dof:
            constant = gammaln((dof + dim) / 2) - gammaln(dof / 2) - dim / 2 * np.log(dof * np.pi)
        return cls(
            on_device(mean),
            on_device(root),
            on_device(np.pad(np.log(shares), (0, more), constant_values=-np.inf)),
            on_device(np.pad(centres, ((0, more), (0, 0)))),
            on_device(np.concatenate([inverses, *[np.eye(dim)[None]] * more])),
            on_device([dof, (dof + dim) / 2 if dof else 0.0, constant]),
            None,
            max(_FILLED_DOF, int(dof)),
            count == 1,
            name,
        )

    def with_weights(self, weights: np.ndarray) -> Self:
        """Return the mixture of the same components with these weights (components,)."""
        logs = np.pad(
            np.log(weights), (0, len(self.centres) - len(weights)), constant_values=-np.inf
        )
        return dataclasses.replace(self, log_weights=on_device(logs))

    @property
    def num_components(self) -> int:
        return int(np.isfinite(self.log_weights).sum())

    @property
    def dof(self) -> int:
        """nu of Student's t; 0 of Gaussians."""
        return int(self.tail[0])

    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        first, dof = 4 * draw, self.tail[0]
        normals = bits.normals(self.dim, first)
        squares = bits.normals(self.num_squares, first + _RADIUS) ** 2
        squares = jnp.where(jnp.arange(self.num_squares) < dof, squares, 0).sum(-1, keepdims=True)
        normals = normals * jnp.where(dof > 0, jnp.sqrt(dof / squares), 1)
        if self.is_round:
            return normals
        if self.centres.shape[0] == 1:
            return self.centres[0] + _solved(self.inverses[0], normals)
        edges = jnp.cumsum(jnp.exp(self.log_weights))
        uniform = bits.uniforms(1, first + _COMPONENT)[:, 0] * edges[-1]
        component = jnp.searchsorted(edges, uniform)  # (chains,): the first whose edge is not below
        all_z = jax.vmap(lambda inverse, c: c + _solved(inverse, normals))(
            self.inverses, self.centres
        )  # (filled, chains, dim)
        return jnp.take_along_axis(all_z, component[None, :, None], axis=0)[0]

    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        parts = self.log_parts(z)
        return parts[..., 0] if parts.shape[-1] == 1 else logsumexp(parts, axis=-1)

    @eqx.filter_jit
    def log_parts(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch filled"]:
        """log of pi_k p_k(z), of every component."""
        away = jnp.asarray(z, jnp.float32)[..., None, :]  # (*batch, filled, dim)
        if not self.is_round:
            away = away - self.centres
            exact = jax.lax.Precision.HIGHEST
            away = jnp.einsum("kij,...kj->...ki", self.inverses, away, precision=exact)
        squares = (away**2).sum(-1)  # (*batch, filled)
        logs = self.log_weights + jnp.log(jnp.diagonal(self.inverses, axis1=1, axis2=2)).sum(-1)
        dof, power, constant = self.tail
        heavy = power * jnp.log1p(squares / jnp.maximum(dof, 1))
        return logs - jnp.where(dof > 0, heavy, squares / 2) + constant


def _solved(inverse, rows):
    """L y for every row y, given L^-1."""
    return jax.scipy.linalg.solve_triangular(inverse, rows.T, lower=True).T
