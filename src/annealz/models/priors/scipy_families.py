"""Families of SciPy in JAX: by the quantile function, or by the logarithm of the variable.

    x = F^-1(Phi(z)),  z standard normal        1 - Phi(z) = Phi(-z)

exact in both tails: neither is computed from the difference of two numbers near 1. Families without a
quantile function in JAX have coordinates y of their own; draws of them are exact, from log gamma variables:

    gamma       x = e^y           log p(y) = a y - e^y - log Gamma(a)
    invgamma    x = e^-y          y as above
    beta        x = 1/(1 + e^-y)  log p(y) = a log x + b log(1 - x) - log B(a, b)     y = log g_a - log g_b
    t           x                 log p(x) of SciPy's

These are the standard forms, location 0 and scale 1. The shapes are SciPy's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, ndtr, ndtri
from jaxtyping import Array


def _cauchy(z):
    return jnp.sign(z) / jnp.tan(jnp.pi * ndtr(-jnp.abs(z)))


def _laplace(z):
    tail = -log_ndtr(-jnp.abs(z)) - jnp.log(2.0)
    return jnp.sign(z) * tail


def _truncnorm(z, a, b):
    """Compute from the side on which the truncated law has its smaller probabilities."""
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


class Law(NamedTuple):
    """x of y, y of x (NumPy), log p(y) and draws of y, element by element; the shapes come last."""

    value: Callable[..., Array]
    coordinate: Callable[[np.ndarray], np.ndarray]
    density: Callable[..., Array]
    draw: Callable[..., Array]


def _gamma_density(y, a):
    return a * y - jnp.exp(y) - gammaln(a)


def _gamma_draw(key, shape, a):
    return jax.random.loggamma(key, jnp.broadcast_to(jnp.float32(a), shape))


def _beta_density(y, a, b):
    log_beta = gammaln(a) + gammaln(b) - gammaln(a + b)
    return a * jax.nn.log_sigmoid(y) + b * jax.nn.log_sigmoid(-y) - log_beta


def _beta_draw(key, shape, a, b):
    first, second = jax.random.split(key)
    return _gamma_draw(first, shape, a) - _gamma_draw(second, shape, b)


def _t_density(x, df):
    return (
        gammaln((df + 1) / 2)
        - gammaln(df / 2)
        - 0.5 * jnp.log(df * jnp.pi)
        - (df + 1) / 2 * jnp.log1p(x**2 / df)
    )


def _t_draw(key, shape, df):
    return jax.random.t(key, jnp.broadcast_to(jnp.float32(df), shape))


_GAMMA = Law(lambda y, a: jnp.exp(y), np.log, _gamma_density, _gamma_draw)

DENSITIES = {
    "gamma": _GAMMA,
    "chi2": Law(
        lambda y, df: 2 * jnp.exp(y),
        lambda x: np.log(x / 2),
        lambda y, df: _gamma_density(y, df / 2),
        lambda key, shape, df: _gamma_draw(key, shape, df / 2),
    ),
    "invgamma": Law(lambda y, a: jnp.exp(-y), lambda x: -np.log(x), _gamma_density, _gamma_draw),
    "beta": Law(
        lambda y, a, b: jax.nn.sigmoid(y),
        lambda x: np.log(x) - np.log1p(-x),
        _beta_density,
        _beta_draw,
    ),
    "t": Law(lambda y, df: y, lambda x: x, _t_density, _t_draw),
}
