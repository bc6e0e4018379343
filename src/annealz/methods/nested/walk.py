"""Slice moves along random lines, under a likelihood constraint: how a nested sampler finds new points.

A density is taken as prior times likelihood:

    log p*(x) = log pi(x) + log L(x),    pi normalised,    log Z = log of the mean of L over pi

The target of a walk is the prior where L(x) > L0. One slice (Neal 2003, Figures 3 and 5), along
v = 2 C z / |z| with z normal and C C^T the covariance of the live points:

    level      log pi(x) + log u
    bracket    of length |v| around x, extended by |v| on each side while its end is in the slice
    point      uniform in the bracket, which shrinks towards x until the point is in the slice

All walks make one evaluation at a time, side by side. Each goes on to its next slice when its own is over,
so that none waits for the longest slice of the others: a batch costs 1.1 evaluations where 1 is needed, and
2 or more if all slices of a batch begin together. What is counted is what is made.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from annealz.bases.abstract import AbstractBase
from annealz.core.random import Bits
from annealz.models.log_density import LogDensity

_MOST_EXTENSIONS = 9  # of a bracket, on both sides together
_MOST_SHRINKS = 60  # each takes off a quarter on average: 60 reach the resolution of float32
_LEFT, _RIGHT, _INSIDE = 0, 1, 2
_DIRECTIONS, _UNIFORMS, _POINTS = (
    0,
    1,
    3,
)  # draws of a walk's bits; one more for each round of points


class Target(eqx.Module):
    """log pi and log L of rows of positions; the likelihood is the density divided by the prior."""

    model: LogDensity
    prior: AbstractBase

    def __call__(
        self, x: Float[Array, "rows dim"], offset: Float[Array, ""]
    ) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        """log pi(x) + log Z_pi and log L(x) - log Z_pi - offset, Z_pi the normaliser of the prior.

        L is 0 where the prior has no mass.
        """
        log_prior = self.prior.log_density(x).astype(jnp.float32)
        joint = self.model.log_density(x, offset).astype(jnp.float32)
        return log_prior, jnp.where(jnp.isneginf(log_prior), -jnp.inf, joint - log_prior)


class Points(NamedTuple):
    """Positions, with log pi and log L of each."""

    x: Float[Array, "rows dim"]
    log_prior: Float[Array, " rows"]
    log_likelihood: Float[Array, " rows"]


class Walked(NamedTuple):
    """What the walks cost."""

    rounds: Integer[Array, ""]
    """Of evaluations, one per row."""
    num_failed: Integer[Array, ""]
    """Slices that found no point, where the walk did not move."""
    num_nan: Integer[Array, ""]
    """Evaluations that gave NaN, which count as outside."""


class _Slice(NamedTuple):
    """The slice that each row is at."""

    direction: Float[Array, "rows dim"]
    level: Float[Array, " rows"]
    left: Float[Array, " rows"]
    right: Float[Array, " rows"]
    room_left: Integer[Array, " rows"]
    room_right: Integer[Array, " rows"]
    phase: Integer[Array, " rows"]
    num_shrinks: Integer[Array, " rows"]


def walk(
    bits: Bits,
    start: Points,
    contour: Float[Array, ""],
    factor: Float[Array, "dim dim"],
    target: Target,
    offset: Float[Array, ""],
    num_steps: int,
) -> tuple[Points, Walked]:
    """`num_steps` slices from each row of `start`, which must lie above the contour."""
    num_rows, dim = start.x.shape
    normals = bits.normals(num_steps * dim, _DIRECTIONS).reshape(num_rows, num_steps, dim)
    lengths = jnp.linalg.norm(normals, axis=-1, keepdims=True)
    directions = 2 * jnp.matmul(normals / lengths, factor.T, precision=jax.lax.Precision.HIGHEST)
    uniforms = bits.uniforms(num_steps * 3, _UNIFORMS).reshape(num_rows, num_steps, 3)
    rows = jnp.arange(num_rows)

    def begun(taken, log_prior) -> _Slice:
        """The next slice of every row."""
        pick = jnp.minimum(taken, num_steps - 1)
        height, place, share = uniforms[rows, pick].T
        room = jnp.floor(share * (_MOST_EXTENSIONS + 1)).astype(jnp.int32)
        room_left = jnp.minimum(room, _MOST_EXTENSIONS)
        return _Slice(
            direction=directions[rows, pick],
            level=log_prior + jnp.log(height),
            left=-place,
            right=1 - place,
            room_left=room_left,
            room_right=_MOST_EXTENSIONS - room_left,
            phase=jnp.where(room_left > 0, _LEFT, _RIGHT),
            num_shrinks=jnp.zeros(num_rows, jnp.int32),
        )

    def goes_on(carry):
        taken, _, _, _ = carry
        return jnp.any(taken < num_steps)

    def evaluate(carry):
        taken, points, now, cost = carry
        is_active = taken < num_steps
        u = bits.uniforms(1, _POINTS + cost.rounds)[:, 0]
        inner = now.left + u * (now.right - now.left)
        t = jnp.where(
            now.phase == _LEFT, now.left, jnp.where(now.phase == _RIGHT, now.right, inner)
        )
        x = points.x + t[:, None] * now.direction
        log_prior, log_likelihood = target(x, offset)
        is_in = is_active & (log_prior >= now.level) & (log_likelihood > contour)
        is_nan = is_active & (jnp.isnan(log_prior) | jnp.isnan(log_likelihood))

        is_taken = is_in & (now.phase == _INSIDE)
        is_refused = is_active & ~is_in & (now.phase == _INSIDE)
        after = _narrowed(_extended(now, is_in), t, is_refused)
        is_failed = is_refused & (after.num_shrinks >= _MOST_SHRINKS)
        points = Points(
            jnp.where(is_taken[:, None], x, points.x),
            jnp.where(is_taken, log_prior, points.log_prior),
            jnp.where(is_taken, log_likelihood, points.log_likelihood),
        )
        is_over = is_taken | is_failed
        taken = taken + is_over
        fresh = begun(taken, points.log_prior)
        after = _Slice(*(_where(is_over, new, old) for new, old in zip(fresh, after, strict=True)))
        cost = Walked(
            cost.rounds + 1, cost.num_failed + is_failed.sum(), cost.num_nan + is_nan.sum()
        )
        return taken, points, after, cost

    zero = jnp.zeros((), jnp.int32)
    taken = jnp.zeros(num_rows, jnp.int32)
    first = (taken, start, begun(taken, start.log_prior), Walked(zero, zero, zero))
    _, points, _, cost = jax.lax.while_loop(goes_on, evaluate, first)
    return points, cost


def _extended(now: _Slice, is_in) -> _Slice:
    """The bracket longer where its end is in the slice; on to the next phase where it is not."""
    at_left, at_right = now.phase == _LEFT, now.phase == _RIGHT
    room_left = now.room_left - (at_left & is_in)
    room_right = now.room_right - (at_right & is_in)
    ends_left = at_left & ~(is_in & (room_left > 0))
    ends_right = at_right & ~(is_in & (room_right > 0))
    after_left = jnp.where(now.room_right > 0, _RIGHT, _INSIDE)
    phase = jnp.where(ends_left, after_left, jnp.where(ends_right, _INSIDE, now.phase))
    return now._replace(
        left=now.left - (at_left & is_in),
        right=now.right + (at_right & is_in),
        room_left=room_left,
        room_right=room_right,
        phase=phase,
    )


def _narrowed(now: _Slice, t, is_refused) -> _Slice:
    """The bracket cut at a point that was refused."""
    return now._replace(
        left=jnp.where(is_refused & (t < 0), t, now.left),
        right=jnp.where(is_refused & (t >= 0), t, now.right),
        num_shrinks=now.num_shrinks + is_refused,
    )


def _where(condition, new, old):
    return jnp.where(condition if new.ndim == 1 else condition[:, None], new, old)
