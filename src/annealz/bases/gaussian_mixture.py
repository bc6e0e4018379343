"""A mixture of Gaussians, or of Student's t, as a base: several modes, and tails of any weight.

In the coordinates of its frame, x = m + S z (`gaussian.py`), with component k of centre c_k and root L_k,
y_k = L_k^-1 (z - c_k):

    Gaussians      p(z) = sum_k pi_k |L_k|^-1 (2 pi)^(-dim/2) exp(-|y_k|^2 / 2)
    Student's t    p(z) = sum_k pi_k |L_k|^-1 C (1 + |y_k|^2 / nu)^(-(nu + dim)/2)
                   C = Gamma((nu + dim)/2) / (Gamma(nu/2) (nu pi)^(dim/2))

Both are normalised in z, so that log Z_A = log |S|. A draw takes a component, a normal vector and, of
Student's t, the root of nu over a sum of nu squared normals.

Programs are compiled for shapes, and seeds of one density find bases of different ones. So they are given
another form, filled up with components of no weight, in which nu is an array:

    log C, nu, (nu + dim) / 2     computed once, on the host
"""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
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
    log_weights: Float[Array, " components"]
    centres: Float[Array, "components dim"]
    inverses: Float[Array, "components dim dim"]
    """L_k^-1, lower triangular."""
    dof: int = eqx.field(static=True, default=0)
    """Of Student's t; 0 for Gaussians."""
    name: str = eqx.field(static=True, default="mixture")
    offset: Float[Array, ""] | None = None  # see `with_offset`

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
        if len(shares) == 1:  # the frame is that of the component, without rounding
            centres, inverses = np.zeros_like(centres), np.eye(means.shape[1])[None]
        return cls(
            on_device(mean),
            on_device(root),
            on_device(np.log(shares)),
            on_device(centres),
            on_device(inverses),
            int(dof),
            name,
        )

    @property
    def num_components(self) -> int:
        return self.centres.shape[0]

    def unnamed(self) -> "FilledMixture":
        """The form that programs take, the same for bases of like sizes."""
        return FilledMixture.of(self)

    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return self.unnamed().sample_unit(bits, draw)

    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return self.unnamed().log_density_unit(z)


class FilledMixture(AbstractFrameBase):
    """A mixture as programs take it: its number of components is one of few, and its tail an array."""

    mean: Float[Array, " dim"]
    scale: Float[Array, "dim dim"]
    log_weights: Float[Array, " filled"]
    centres: Float[Array, "filled dim"]
    inverses: Float[Array, "filled dim dim"]
    tail: Float[Array, "3"]
    """nu, (nu + dim) / 2 and log C of Student's t; 0, 0 and log C of Gaussians."""
    offset: Float[Array, ""] | None
    num_squares: int = eqx.field(static=True)
    """Normals that are drawn for the radius."""
    is_round: bool = eqx.field(static=True, default=False)
    """Whether it is one component in its own frame, so that there is nothing to multiply with."""
    name: str = eqx.field(static=True, default="")

    @classmethod
    def of(cls, base: GaussianMixtureBase) -> Self:
        """The same density."""
        count, dim, dof = base.num_components, base.dim, base.dof
        more = 0 if count == 1 else max(_FILLED, 2 ** (count - 1).bit_length()) - count
        constant = -dim / 2 * np.log(2 * np.pi)
        if dof:
            constant = gammaln((dof + dim) / 2) - gammaln(dof / 2) - dim / 2 * np.log(dof * np.pi)
        return cls(
            base.mean,
            base.scale,
            _joined(base.log_weights, np.full(more, -np.inf)),
            _joined(base.centres, np.zeros((more, dim))),
            _joined(base.inverses, np.broadcast_to(np.eye(dim), (more, dim, dim))),
            on_device([dof, (dof + dim) / 2 if dof else 0.0, constant]),
            base.offset,
            max(_FILLED_DOF, dof),
            count == 1 and _is_round(base.centres, base.inverses),
        )

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


def _joined(values: Array, filling: np.ndarray) -> Array:
    """Both, one after the other; on the host where nothing is traced."""
    if not len(filling):
        return values
    if isinstance(values, Tracer):
        return jnp.concatenate([values, jnp.asarray(filling, values.dtype)])
    return on_device(np.concatenate([np.asarray(values), filling]))


def _is_round(centres: Array, inverses: Array) -> bool:
    """Whether the component is the frame; not where that is not known yet."""
    if isinstance(centres, Tracer) or isinstance(inverses, Tracer):
        return False
    is_centred = not np.asarray(centres).any()
    return is_centred and np.array_equal(np.asarray(inverses)[0], np.eye(inverses.shape[1]))


def _solved(inverse, rows):
    """L y for every row y, given L^-1."""
    return jax.scipy.linalg.solve_triangular(inverse, rows.T, lower=True).T
