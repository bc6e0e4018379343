"""The arithmetic of `engine/gpu/arithmetic.cu` in JAX, by the same formulas: draws, softplus."""

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
