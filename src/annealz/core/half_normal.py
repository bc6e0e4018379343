"""The normal distribution cut off below zero: N(u, 1) given that it is positive.

With phi and Phi the density and the distribution function of a standard normal,

    f(u) = log int_0^inf exp(u x - x^2 / 2) dx = u^2 / 2 + log(sqrt(2 pi) Phi(u))
    f'(u) = m(u) = u + phi(u) / Phi(u)                            the mean, positive and increasing

For u <= 0 both terms of m cancel: with t = 1 / (1 - u / 4) it is t times a polynomial in t (fitted to
relative 4e-8, and 3e-7 in float32), and f(u) = -log(m(u) - u), in which nothing cancels.

Differences f(u + d) - f(u) keep the digits of a small d as d times a mean of m (Gauss-Legendre, two points,
an error of d^5 / 4320 times the fifth cumulant), and of a large d as

    f(u) = max(u, 0)^2 / 2 + c(u),     c(u) = log(sqrt(2 pi) Phi(u)), or -log(m(u) - u) where u <= 0

Draws invert the distribution function, with 31 bits of uniforms U and V = 1 - U, both exact where small:

    u > 0     x = u - ndtri(U Phi(u)), or from below x = u + ndtri(Phi(-u) + V Phi(u)) where that is smaller
    u <= 0    x is where the hazard int_0^x (m(-y) + y) dy, y from -u, reaches -log U: Newton's method on
              -u x + x^2 / 2 - f(u - x) + f(u), which is convex, from the root for a linear hazard
"""

import math

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float
from scipy.special import erfcx, log_ndtr

from annealz.core.random import Bits

_RATE = 0.25
_COEFFICIENTS = (
    0.249999993,
    0.25000248,
    0.218608879,
    0.159335313,
    0.0381525792,
    0.203159387,
    -0.920009117,
    1.94671419,
    -3.05257727,
    2.29228397,
    -0.302885712,
    -0.452788778,
    0.167888671,
)
_POINTS = 0.5 - math.sqrt(3) / 6, 0.5 + math.sqrt(3) / 6
_SMALL = 0.1  # a step, by |u| where that is over 1, up to which the two points keep more digits
_NEWTON_STEPS = 3


def mean(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """m(u)."""
    return _mean_parts(u)[0]


def log_z(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """f(u)."""
    return 0.5 * jnp.maximum(u, 0) ** 2 + slow_part(u)


def log_z_difference(u: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
    """f(u + step) - f(u), to the last digits of `step`."""
    small = step * 0.5 * (mean(u + _POINTS[0] * step) + mean(u + _POINTS[1] * step))
    end = u + step
    high, low = jnp.maximum(end, 0), jnp.maximum(u, 0)
    gap = jnp.where((end > 0) & (u > 0), step, high - low)
    large = 0.5 * gap * (high + low) + (slow_part(end) - slow_part(u))
    return jnp.where(jnp.abs(step) < _SMALL * jnp.maximum(1, jnp.abs(u)), small, large)


def draw(bits: Bits, u: Float[Array, "chains units"], number: int) -> Float[Array, "chains units"]:
    """x > 0 from N(u, 1), with the bits of this draw."""
    words = (bits.words(u.shape[-1], number) >> 1).astype(jnp.int32)
    upper = (words.astype(jnp.float32) + 0.5) * jnp.float32(2.0**-31)
    lower = ((2**31 - 1 - words).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-31)
    return jnp.where(u > 0, _bulk(jnp.maximum(u, 0), upper, lower), _tail(-u, upper, lower))


def exact_log_z(u: np.ndarray) -> np.ndarray:
    """f(u) in float64 on the host."""
    below = np.log(erfcx(-np.minimum(u, 0) / math.sqrt(2))) + math.log(math.pi / 2) / 2
    positive = np.maximum(u, 0)
    above = positive**2 / 2 + math.log(2 * math.pi) / 2 + log_ndtr(positive)
    return np.where(u > 0, above, below)


def _mean_parts(u):
    """m(u), and m(u) - u where u <= 0, which is the hazard at -u."""
    below = jnp.minimum(u, 0)
    t = 1 / (1 - _RATE * below)
    total = jnp.full_like(t, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        total = total * t + coefficient
    tail = t * total
    above = jnp.maximum(u, 0)
    hazard = jnp.exp(-0.5 * above**2) / (math.sqrt(2 * math.pi) * ndtr(above))
    return jnp.where(u > 0, above + hazard, tail), tail - below


def slow_part(u):
    """c(u)."""
    above = jnp.log(math.sqrt(2 * math.pi) * ndtr(jnp.maximum(u, 0)))
    return jnp.where(u > 0, above, -jnp.log(_mean_parts(u)[1]))


def _bulk(u, upper, lower):
    """Where most of the normal lies above zero."""
    inside = ndtr(u)
    from_above = upper * inside
    from_below = ndtr(-u) + lower * inside
    is_high = from_above < 0.5
    size = ndtri(jnp.where(is_high, from_above, jnp.minimum(from_below, 0.5)))
    return jnp.maximum(jnp.where(is_high, u - size, u + size), 0)


def _tail(start, upper, lower):
    """Where the normal is cut off above its mean, by `start` >= 0: the excess over it."""
    start = jnp.maximum(start, 0)
    wanted = jnp.where(upper < 0.5, -jnp.log(upper), -jnp.log1p(-lower))
    first, hazard = _mean_parts(-start)
    x = 2 * wanted / (hazard + jnp.sqrt(hazard**2 + 2 * hazard * first * wanted))
    for _ in range(_NEWTON_STEPS):
        later, there = _mean_parts(-start - x)
        reached = x * (start + 0.5 * x) + jnp.log1p((x + later - first) / hazard)
        x = jnp.maximum(x - (reached - wanted) / there, 0)
    return x
