"""Hamiltonian annealing of a Gaussian in 50 dimensions: annealz, and the same as a plain JAX program.

    log p*(x) = -1/2 sum_i ((x_i - 1) / s_i)^2,    s_i from 1/2 to 3/2,    base N(0, 1), linear schedule

A step is the increment of the weights and one leapfrog step with a momentum that is partly refreshed and
turns round where the step is refused, one gradient per step (HAIS). The plain program is written as a user
would: `jax.grad`, `jax.random`, one `lax.scan`.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from annealz.engine.anneal import anneal
from annealz.kernels.hais import HAIS
from annealz.models.log_density import LogDensity
from annealz.schedules.linear import linear
from problem import Timing, standard_error

__all__ = ["DIM", "EXACT", "DensityEngine", "PlainDensity"]

DIM, STEP = 50, 0.3
SCALES = np.linspace(0.5, 1.5, DIM).astype(np.float32)
EXACT = float(np.log(np.float64(SCALES) * np.sqrt(2 * np.pi)).sum())


def log_target(x):
    return -0.5 * jnp.sum(((x - 1) / SCALES) ** 2)


class DensityEngine:
    """annealz with its own kernel at a fixed step size."""

    name = "annealz"

    def __init__(self, num_chains: int):
        model = LogDensity(log_target, dim=DIM)
        self._path, self._num_chains = model.path(model.choose_base("standard")), num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        schedule = linear(num_steps)
        began = time.perf_counter()
        run = anneal(
            self._path, HAIS(step_size=STEP), schedule, num_chains=self._num_chains, seed=seed
        )
        seconds = time.perf_counter() - began
        return _timing(seconds, run.log_z0, run.log_weights)


@jax.jit(static_argnames="num_chains")
def hais(betas, key, num_chains):
    """log w of every chain."""
    kept = np.exp(-STEP)

    def log_density(x, beta):
        return (1 - beta) * -0.5 * jnp.sum(x**2) + beta * log_target(x)

    slope = jax.vmap(lambda x: log_target(x) + 0.5 * jnp.sum(x**2))
    value = jax.vmap(log_density, (0, None))
    gradient = jax.vmap(jax.grad(log_density), (0, None))

    def step(carry, pair):
        x, p, log_weights, key = carry
        beta0, beta = pair
        log_weights += (beta - beta0) * slope(x)
        key, key_u, key_p = jax.random.split(key, 3)
        half = p + STEP / 2 * gradient(x, beta)
        there = x + STEP * half
        turned = half + STEP / 2 * gradient(there, beta)
        gain = value(there, beta) - value(x, beta)
        gain += 0.5 * (jnp.sum(p**2, -1) - jnp.sum(turned**2, -1))
        is_taken = (jnp.log(jax.random.uniform(key_u, (num_chains,))) < gain)[:, None]
        x, p = jnp.where(is_taken, there, x), jnp.where(is_taken, turned, -p)
        p = kept * p + np.sqrt(1 - kept**2) * jax.random.normal(key_p, p.shape)
        return (x, p, log_weights, key), None

    key, key_x, key_p = jax.random.split(key, 3)
    x, p = (jax.random.normal(one, (num_chains, DIM)) for one in (key_x, key_p))
    start = (x, p, jnp.zeros(num_chains), key)
    (_, _, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
    return log_weights


class PlainDensity:
    """The textbook program."""

    name = "plain JAX"

    def __init__(self, num_chains: int):
        self._num_chains = num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        betas, key = jnp.linspace(0, 1, num_steps + 1), jax.random.key(seed)
        began = time.perf_counter()
        log_weights = np.asarray(hais(betas, key, self._num_chains), np.float64)
        return _timing(time.perf_counter() - began, DIM * np.log(2 * np.pi) / 2, log_weights)


def _timing(seconds: float, log_z0: float, log_weights: np.ndarray) -> Timing:
    log_z = log_z0 + np.logaddexp.reduce(log_weights) - np.log(log_weights.size)
    return Timing(seconds, float(log_z), standard_error(log_weights))
