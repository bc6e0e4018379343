"""Contestant "plain JAX": annealed importance sampling as a user would write it in an afternoon.

The textbook step: log p*_beta at both temperatures, subtracted; `jax.random` (threefry) with keys
split from the carry; `jax.random.bernoulli` of sigmoids; one `lax.scan` over the schedule, compiled
as a whole. Nothing is recorded.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from annealz.models.rbm import RBM
from contestants import Program

__all__ = ["plain_jax"]


def log_density(weights, hidden_bias, visible_bias, v, beta):
    return v @ visible_bias + jax.nn.softplus(beta * (v @ weights.T + hidden_bias)).sum(-1)


@jax.jit(static_argnames="num_chains")
def ais(weights, hidden_bias, visible_bias, betas, key, num_chains):
    """log w of every chain."""
    model = weights, hidden_bias, visible_bias

    def step(carry, pair):
        v, log_weights, key = carry
        beta0, beta1 = pair
        log_weights += log_density(*model, v, beta1) - log_density(*model, v, beta0)
        key, key_h, key_v = jax.random.split(key, 3)
        h_mean = jax.nn.sigmoid(beta1 * (v @ weights.T + hidden_bias))
        h = jax.random.bernoulli(key_h, h_mean).astype(jnp.float32)
        v_mean = jax.nn.sigmoid(visible_bias + beta1 * (h @ weights))
        v = jax.random.bernoulli(key_v, v_mean).astype(jnp.float32)
        return (v, log_weights, key), None

    key, key_start = jax.random.split(key)
    shape = (num_chains, visible_bias.shape[0])
    v = jax.random.bernoulli(key_start, jax.nn.sigmoid(visible_bias), shape).astype(jnp.float32)
    start = (v, jnp.zeros(num_chains), key)
    (_, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
    return log_weights


def plain_jax(model: RBM, num_chains: int) -> Program:
    """The textbook program on one model."""
    arrays = model.weights, model.hidden_bias, model.visible_bias
    visible_bias = np.asarray(model.visible_bias, np.float64)
    log_z0 = model.num_hidden * np.log(2) + np.logaddexp(0, visible_bias).sum()
    return Program("plain JAX", functools.partial(ais, *arrays), log_z0, num_chains)
