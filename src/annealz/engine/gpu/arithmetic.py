"""The arithmetic of a step, in forms that take few instructions on a GPU.

Draws are those of `annealz.core.random`: with f = 2^31 u and e = exp(-logit),

    u (1 + e) <= 1     as     f + f e <= 2^31

and e = 2^(-logit log2(e)), for which a GPU has one instruction. The difference of softplus is that of
`annealz.core.numerics`, log1p(x) with x = n / d, where t is the step, turned towards the sign of -low,

    d = 1 + exp(-|low|),     n = exp(-|low|) expm1(t) = exp(t - |low|) - exp(-|low|)

The first form of n is taken where |t| < 1/2, with expm1 as a series of eight terms. And

    log1p(x) = log(d + n) - log(d) = 2 artanh(s),     s = n / (2 d + n)

the last as a series of five terms where |s| < 1/9. Where all steps are known to be small, seven and three
terms do, and nothing else is computed. What comes back is within 4e-7 of the exact value,
relative to it or to the step, or infinite where the step is beyond float32.
"""

import math

import jax
import jax.numpy as jnp

from annealz.core.random import unit_words

__all__ = [
    "LOG2_E",
    "NARROW",
    "is_below",
    "is_one",
    "scaled_uniforms",
    "softplus_difference",
]

LOG2_E = math.log2(math.e)
NARROW = 0.25
_LOG_2 = math.log(2)
_EXPM1 = [1 / math.factorial(n) for n in range(8, 0, -1)]
_ARTANH = [2 / n for n in range(9, 0, -2)]


def is_one(row0, row1, units, power):
    """Whether a unit is one, where `power` is -logit log2(e); rows and units broadcast to it."""
    return is_below(scaled_uniforms(row0, row1, units), power)


def scaled_uniforms(row0, row1, units):
    """2^31 u of these units in rows of these keys, as they broadcast."""
    return (unit_words(row0, row1, units) >> 1).astype(jnp.int32).astype(jnp.float32)


def is_below(scaled, power):
    """Whether units of these 2^31 u are one."""
    return scaled + scaled * jnp.exp2(power) <= jnp.float32(2.0**31)


def softplus_difference(low, step, is_narrow):
    """softplus(low + step) - softplus(low); `is_narrow` says that no |step| is beyond 1/4."""

    def narrow(low, turned):
        tail = jnp.exp2(-LOG2_E * jnp.abs(low))
        part = tail * (turned * _polynomial(_EXPM1[1:], turned))
        s = part * (1 / (2 * (1 + tail) + part))
        return s * _polynomial(_ARTANH[2:], s * s)

    def wide(low, turned):
        tail = jnp.exp2(-LOG2_E * jnp.abs(low))
        whole = 1 + tail
        series = tail * (turned * _polynomial(_EXPM1, turned))
        plain = jnp.exp2(LOG2_E * (turned - jnp.abs(low))) - tail
        part = jnp.where(jnp.abs(turned) < 0.5, series, plain)
        s = part * (1 / (2 * whole + part))
        series = s * _polynomial(_ARTANH, s * s)
        plain = _LOG_2 * (jnp.log2(whole + part) - jnp.log2(whole))
        return jnp.where(jnp.abs(s) < 1 / 9, series, plain)

    is_above = low > 0
    turned = jnp.where(is_above, -step, step)
    return jnp.where(is_above, step, 0.0) + jax.lax.cond(is_narrow, narrow, wide, low, turned)


def _polynomial(coefficients, x):
    """Horner's rule, the highest power first."""
    total = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + jnp.float32(coefficient)
    return total
