"""Coordinates u in which one variable, t, is about normal, and others keep their scale while it changes.

    t = x_j = t(u_j)                                log dt/du_j = l(u_j)
    x = c(u_j) + N(u_j) (e^a(u_j) * u)              for the others; N unit lower triangular
    log |dx/du| = l(u_j) + sum of a(u_j)

l, c, a and N are linear between knots of u_j, which lie evenly from -4.5 to 4.5. Between two of them, with
s from 0 to 1 and D what l changes by,

    t = t_k + h e^l_k (e^(D s) - 1) / D,            s = log(1 + D (t - t_k) / (h e^l_k)) / D

Beyond the knots c and N are constant, a goes on as a line of t, and t as a logarithm, so that a heavy tail
of u does not leave what a computer can hold:

    t = t_end + e^l_end log(1 + |u_j| - 4.5),       l = l_end - log(1 + |u_j| - 4.5)        upwards

In a centred hierarchy, x_i ~ N(mu, e^2t), u_i are the effects in units of their scale: its non-centred
form.

A base in these coordinates: u has the inner base,

    p_A(x) = p_inner(u(x)) / |dx/du|

Its states are the coordinates z of the inner frame, u = m + S z. Where a path counts both ends as densities
of x with dx = |S| dz, the stretch log |dx/du| belongs to the model's log density.
"""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from annealz.bases.gaussian import AbstractFrameBase
from annealz.core.arrays import on_device
from annealz.core.random import Bits

_END = 4.5
_FLAT = 1e-3  # of D, below which the exponential is a line
_FINEST = 16.0  # spacings of numbers, that a scale must have
_FURTHEST = 60.0  # of log(1 + |u_j|), where it is computed from t


def knots(count: int) -> np.ndarray:
    """Values of u_j at which a warp is given."""
    return np.linspace(-_END, _END, count)


class Warp(eqx.Module):
    """A map of u to x."""

    places: Float[Array, " knots"]
    """t at the knots."""
    log_slopes: Float[Array, " knots"]
    centres: Float[Array, "knots dim"]
    log_scales: Float[Array, "knots dim"]
    lowers: Float[Array, "knots dim dim"]
    coordinate: int = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        coordinate: int,
        dim: int,
        log_slopes: np.ndarray,
        centres: np.ndarray,
        roots: np.ndarray,
        others: np.ndarray,
        middle: float = 0.0,
    ) -> Self:
        """From log dt/du_j (knots,), centres (knots, others) and lower roots (knots, others, others).

        `middle` is t at u_j = 0, a knot: their number is odd. Coordinates that are not among `others`
        stay as they are.
        """
        size = len(log_slopes)
        change = np.diff(log_slopes)
        steps = np.where(
            np.abs(change) < _FLAT, 1 + change / 2, np.expm1(change) / (change + 1e-300)
        )
        places = np.cumsum([0, *(2 * _END / (size - 1) * np.exp(log_slopes[:-1]) * steps)])
        places += middle - places[size // 2]
        means, logs = np.zeros((size, dim)), np.zeros((size, dim))
        lowers = np.broadcast_to(np.eye(dim), (size, dim, dim)).copy()
        diagonal = np.diagonal(roots, axis1=1, axis2=2)
        means[:, others], logs[:, others] = centres, np.log(diagonal)
        every = np.ix_(np.arange(size), others, others)
        lowers[every] = roots / diagonal[:, None, :]
        places, slopes, means, logs, lowers = map(
            on_device, (places, log_slopes, means, logs, lowers)
        )
        return cls(places, slopes, means, logs, lowers, coordinate)

    def forward(self, u: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """x of u."""
        low, share, beyond = self._cell(u[..., self.coordinate])
        t = self._t(low, share, beyond)
        centre, log_scale, lower = self._at(low, share, t)
        x = centre + jnp.einsum(
            "...ij,...j->...i", lower, jnp.exp(log_scale) * u, precision=jax.lax.Precision.HIGHEST
        )
        return x.at[..., self.coordinate].set(t)

    def inverse(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """u of x."""
        t = x[..., self.coordinate]
        v = self._inverse_of_t(t)
        low, share, _ = self._cell(v)
        centre, log_scale, lower = self._at(low, share, t)
        away = (x - centre).at[..., self.coordinate].set(v)[..., None]
        solved = jax.scipy.linalg.solve_triangular(lower, away, lower=True, unit_diagonal=True)
        return solved[..., 0] * jnp.exp(-log_scale)

    def log_stretch(self, u: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        """log |dx/du|."""
        low, share, beyond = self._cell(u[..., self.coordinate])
        slope = self._between(self.log_slopes, low, share) - jnp.log1p(jnp.abs(beyond))
        return slope + self._at(low, share, self._t(low, share, beyond))[1].sum(-1)

    def is_resolved(self, u: Float[Array, "*batch dim"]) -> Bool[Array, "*batch"]:
        """Whether numbers of this precision distinguish neighbours: not where a scale is as small as the
        spacing of numbers around x. There others would all lie in their centres, at no cost.
        """
        low, share, beyond = self._cell(u[..., self.coordinate])
        centre, log_scale, _ = self._at(low, share, self._t(low, share, beyond))
        spacing = jnp.finfo(u.dtype).eps * jnp.abs(centre)
        return (jnp.exp(log_scale) > _FINEST * spacing).all(-1)

    @property
    def _spacing(self) -> float:
        return 2 * _END / (self.places.shape[0] - 1)

    def _cell(self, v):
        """The knot below, the share of the way to the next, from 0 to 1, and what is beyond the knots."""
        last = self.places.shape[0] - 1
        place = (v + _END) / self._spacing
        low = jnp.clip(jnp.floor(place), 0, last - 1).astype(jnp.int32)
        share = jnp.where(v > _END, 1.0, jnp.where(v < -_END, 0.0, place - low))
        beyond = jnp.where(v > _END, v - _END, jnp.where(v < -_END, v + _END, 0.0))
        return low, share, beyond  # not clipped, whose gradient at a knot is a half

    def _t(self, low, share, beyond):
        start, change = self.log_slopes[low], self.log_slopes[low + 1] - self.log_slopes[low]
        is_flat = jnp.abs(change) < _FLAT
        safe = jnp.where(is_flat, 1.0, change)
        inside = jnp.where(
            is_flat, share * (1 + change * share / 2), jnp.expm1(safe * share) / safe
        )
        outside = jnp.sign(beyond) * jnp.log1p(jnp.abs(beyond)) * jnp.exp(start + change * share)
        return self.places[low] + self._spacing * jnp.exp(start) * inside + outside

    def _inverse_of_t(self, t):
        last = self.places.shape[0] - 1
        low = jnp.clip(jnp.searchsorted(self.places, t, side="right") - 1, 0, last - 1)
        start, change = self.log_slopes[low], self.log_slopes[low + 1] - self.log_slopes[low]
        away = (t - self.places[low]) / (self._spacing * jnp.exp(start))
        is_flat = jnp.abs(change) < _FLAT
        safe = jnp.where(is_flat, 1.0, change)
        room = jnp.maximum(1 + safe * away, 1e-30)
        share = jnp.where(is_flat, away * (1 - change * away / 2), jnp.log(room) / safe)
        ends = jnp.exp(-self.log_slopes[jnp.array([0, last])])
        under = jnp.minimum(t - self.places[0], 0) * ends[0]
        over = jnp.maximum(t - self.places[-1], 0) * ends[1]
        beyond = jnp.expm1(jnp.minimum(over, _FURTHEST)) - jnp.expm1(
            -jnp.maximum(under, -_FURTHEST)
        )
        return -_END + self._spacing * (low + jnp.clip(share, 0, 1)) + beyond

    def _at(self, low, share, t):
        """c (*batch, dim), a (*batch, dim) and N (*batch, dim, dim)."""
        centres, scales, lowers = (
            self._between(values, low, share)
            for values in (self.centres, self.log_scales, self.lowers)
        )
        under, over = jnp.minimum(t - self.places[0], 0), jnp.maximum(t - self.places[-1], 0)
        first = (self.log_scales[1] - self.log_scales[0]) / (self.places[1] - self.places[0])
        last = (self.log_scales[-1] - self.log_scales[-2]) / (self.places[-1] - self.places[-2])
        return centres, scales + under[..., None] * first + over[..., None] * last, lowers

    def _between(self, values, low, share):
        share = share.reshape(*share.shape, *(1,) * (values.ndim - 1))
        return (1 - share) * values[low] + share * values[low + 1]


class WarpedBase(AbstractFrameBase):
    """A base with a frame, seen through a warp."""

    inner: AbstractFrameBase
    warp: Warp
    name: str = eqx.field(static=True, default="")
    offset: Float[Array, ""] | None = None  # see `with_offset`

    def __init__(self, inner: AbstractFrameBase, warp: Warp):
        self.inner, self.warp = inner, warp
        self.name = inner.name  # pyright: ignore[reportAttributeAccessIssue]
        self.offset = getattr(inner, "offset", None)

    @property
    def mean(self) -> Float[Array, " dim"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the frame of u."""
        return self.inner.mean

    @property
    def scale(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the frame of u."""
        return self.inner.scale

    @property
    def log_z(self) -> float:
        return self.inner.log_z

    def unnamed(self) -> "WarpedBase":
        """The same without names, for programs."""
        return WarpedBase(self.inner.unnamed(), self.warp)

    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return self.inner.sample_unit(bits, draw)

    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return self.inner.log_density_unit(z)

    def log_density(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        u = self.warp.inverse(x)
        return self.inner.log_density(u) - self.warp.log_stretch(u)

    def from_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """x = warp(m + S z)."""
        return self.warp.forward(self.inner.from_unit(z))

    def to_unit(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """z of x."""
        return self.inner.to_unit(self.warp.inverse(x))

    def is_resolved(self, z: Float[Array, "*batch dim"]) -> Bool[Array, "*batch"] | bool:
        return self.inner.is_resolved(z) & self.warp.is_resolved(self.inner.from_unit(z))

    def log_stretch(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"] | float:
        return self.inner.log_stretch(z) + self.warp.log_stretch(self.inner.from_unit(z))
