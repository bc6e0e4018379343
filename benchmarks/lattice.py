"""The Ising model on a periodic lattice of 32 x 32 spins: annealz, plain JAX, and the bare arithmetic.

    log p*_beta(s) = beta K sum_{neighbours} s s',    K = 0.3, from fair coins, linear schedule

A step is the increment of the weights and one sweep over both colours of the checkerboard. annealz sums one
colour out of the weights; the plain program does not, as a user would write it, and its weights vary more.
The bare arithmetic of a sweep is, for every spin, the sum over its neighbours, an exponential, and a random
word.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from annealz.models.ising_lattice import SquareIsing, square_ising_log_z
from contestants import Annealing, Bare, Program

__all__ = ["EXACT", "NAME", "SIDE", "contestants"]

NAME = "Ising, 32 x 32 spins"
SIDE, COUPLING = 32, 0.3
EXACT = square_ising_log_z(SIDE, COUPLING)


def contestants(num_chains: int) -> list:
    """annealz first, the bare arithmetic last."""
    model = SquareIsing(SIDE, coupling=COUPLING)
    path = model.path(model.choose_base("uniform"))
    return [
        Annealing(path, model.kernel(), num_chains),
        Program("plain JAX", ais, SIDE * SIDE * np.log(2), num_chains),
        Bare(functools.partial(bare, path), num_chains),
    ]


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


@jax.jit(static_argnames=("num_chains", "num_steps"))
def bare(path, stream, num_chains, num_steps):
    """The even spins after all sweeps at beta = 1."""
    chains = jnp.arange(num_chains)
    to_latent = dataclasses.replace(path.to_latent, drive=None)
    latent, state = (
        start + change
        for start, change in (
            (path.latent_bias, path.latent_bias_change),
            (path.state_bias, path.state_bias_change),
        )
    )

    def sweep(k, v):
        bits = stream.at(k, chains)
        h = bits.bernoulli(latent + to_latent(v), 0)
        return bits.bernoulli(state + path.to_state(h), 1)

    v = jnp.zeros((num_chains, SIDE * SIDE // 2))
    return jax.lax.fori_loop(1, num_steps + 1, sweep, v)
