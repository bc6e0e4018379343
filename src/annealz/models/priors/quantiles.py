"""Quantile functions of distributions as functions of a standard normal z, exact in both tails.

    x = F^-1(Phi(z)),        1 - Phi(z) = Phi(-z)

The standard forms of SciPy's families, location 0 and scale 1, written so that neither tail is computed
from the difference of two numbers near 1. The shapes are SciPy's.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr, ndtri


def _cauchy(z):
    return jnp.sign(z) / jnp.tan(jnp.pi * ndtr(-jnp.abs(z)))


def _laplace(z):
    tail = -log_ndtr(-jnp.abs(z)) - jnp.log(2.0)
    return jnp.sign(z) * tail


def _truncnorm(z, a, b):
    """From the side on which the truncated law has its smaller probabilities."""
    a, b = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    is_right = a > 0
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    u = ndtr(jnp.where(is_right, -z, z))
    x = ndtri(ndtr(low) + u * (ndtr(high) - ndtr(low)))
    return jnp.clip(jnp.where(is_right, -x, x), a, b)


QUANTILES: dict[str, Callable[..., Any]] = {
    "norm": lambda z: z,
    "uniform": lambda z: ndtr(z),
    "expon": lambda z: -log_ndtr(-z),
    "halfnorm": lambda z: -ndtri(ndtr(-z) / 2),
    "lognorm": lambda z, s: jnp.exp(s * z),
    "cauchy": _cauchy,
    "halfcauchy": lambda z: 1 / jnp.tan(jnp.pi / 2 * ndtr(-z)),
    "laplace": _laplace,
    "logistic": lambda z: log_ndtr(z) - log_ndtr(-z),
    "gumbel_r": lambda z: -jnp.log(-log_ndtr(z)),
    "gumbel_l": lambda z: jnp.log(-log_ndtr(-z)),
    "weibull_min": lambda z, c: (-log_ndtr(-z)) ** (1 / c),
    "pareto": lambda z, b: jnp.exp(-log_ndtr(-z) / b),
    "loguniform": lambda z, a, b: jnp.exp(jnp.log(a) + ndtr(z) * (jnp.log(b) - jnp.log(a))),
    "reciprocal": lambda z, a, b: jnp.exp(jnp.log(a) + ndtr(z) * (jnp.log(b) - jnp.log(a))),
    "truncnorm": _truncnorm,
}
