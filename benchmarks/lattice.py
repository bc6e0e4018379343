"""Annealing of the Ising model on a periodic lattice of 32 x 32 spins: annealz, and a plain JAX program.

    log p*_beta(s) = beta K sum_{neighbours} s s',    K = 0.3, from fair coins, linear schedule

A step is the increment of the weights and one sweep over both colours of the checkerboard. annealz sums one
colour out of the weights; the plain program does not, as a user would write it, and its weights vary more.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from annealz.engine.anneal import anneal
from annealz.models.exact_ising import square_ising_log_z
from annealz.models.ising_lattice import SquareIsing
from annealz.schedules.linear import linear
from problem import Timing, standard_error

__all__ = ["EXACT", "SIDE", "LatticeEngine", "PlainLattice"]

SIDE, COUPLING = 32, 0.3
EXACT = square_ising_log_z(SIDE, COUPLING)


class LatticeEngine:
    """annealz with the model's own path and kernel."""

    name = "annealz"

    def __init__(self, num_chains: int):
        model = SquareIsing(SIDE, coupling=COUPLING)
        self._path = model.path(model.choose_base("uniform"))
        self._kernel, self._num_chains = model.kernel(), num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        schedule = linear(num_steps)
        began = time.perf_counter()
        run = anneal(self._path, self._kernel, schedule, num_chains=self._num_chains, seed=seed)
        seconds = time.perf_counter() - began
        return _timing(seconds, run.log_z0, run.log_weights)


@jax.jit(static_argnames="num_chains")
def ais(betas, key, num_chains):
    """log w of every chain."""
    is_even = (jnp.arange(SIDE)[:, None] + jnp.arange(SIDE)) % 2 == 0

    def fields(s):
        return sum(jnp.roll(s, shift, axis) for shift in (1, -1) for axis in (-1, -2))

    def step(carry, pair):
        s, log_weights, key = carry
        beta0, beta = pair
        log_weights += (beta - beta0) * COUPLING * (s * fields(s)).sum((-2, -1)) / 2
        key, *colours = jax.random.split(key, 3)
        for one, is_moved in zip(colours, (is_even, ~is_even), strict=True):
            up = jax.random.bernoulli(one, jax.nn.sigmoid(2 * beta * COUPLING * fields(s)))
            s = jnp.where(is_moved, 2 * up.astype(jnp.float32) - 1, s)
        return (s, log_weights, key), None

    key, key_start = jax.random.split(key)
    s = 2 * jax.random.bernoulli(key_start, 0.5, (num_chains, SIDE, SIDE)).astype(jnp.float32) - 1
    start = (s, jnp.zeros(num_chains), key)
    (_, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
    return log_weights


class PlainLattice:
    """The textbook program."""

    name = "plain JAX"

    def __init__(self, num_chains: int):
        self._num_chains = num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        betas, key = jnp.linspace(0, 1, num_steps + 1), jax.random.key(seed)
        began = time.perf_counter()
        log_weights = np.asarray(ais(betas, key, self._num_chains), np.float64)
        return _timing(time.perf_counter() - began, SIDE * SIDE * np.log(2), log_weights)


def _timing(seconds: float, log_z0: float, log_weights: np.ndarray) -> Timing:
    log_z = log_z0 + np.logaddexp.reduce(log_weights) - np.log(log_weights.size)
    return Timing(seconds, float(log_z), standard_error(log_weights))
