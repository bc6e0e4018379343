"""Distributions without a quantile function in JAX, by the logarithm of their variable.

    gamma       x = e^y           log p(y) = a y - e^y - log Gamma(a)
    invgamma    x = e^-y          y as above
    beta        x = 1/(1 + e^-y)  log p(y) = a log x + b log(1 - x) - log B(a, b)     y = log g_a - log g_b
    t           x                 log p(x) of SciPy's

The standard forms of SciPy's families; draws of y are exact, from log gamma variables.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array


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
