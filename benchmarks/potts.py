"""Annealing of Potts models: annealz, plain JAX, and the bare arithmetic.

    log p*_beta(x) = beta J sum_{neighbours} [x_i = x_j],    J = 0.5, q = 3, a periodic lattice of 32 x 32
    log p*_beta(x) = beta sum_{i<j} J[i, x_i, j, x_j],       J ~ N(0, 0.02^2), 64 units of q = 21 states

from independent units, on a linear schedule. A step is the increment of the weights and one sweep: over
both colours of the checkerboard, or over the units one by one, as all of them are coupled. The bare
arithmetic of a sweep is, for every unit, the sum of what its neighbours say of its q states, q
exponentials, and a random word.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.units import SoftmaxUnits
from annealz.models.potts import Potts
from annealz.paths.lattice import LatticeProduct
from contestants import Annealing, Bare, Program

__all__ = ["FULL_NAME", "NAME", "contestants", "full_contestants"]

NAME, FULL_NAME = "Potts, 32 x 32 units of 3", "Potts, 64 units of 21, all coupled"
SIDE, STATES, COUPLING = 32, 3, 0.5
UNITS, FULL_STATES = 64, 21


def contestants(num_chains: int) -> list:
    """On a lattice: annealz first, the bare arithmetic last."""
    model = Potts.square(SIDE, STATES, COUPLING)
    log_z0 = SIDE * SIDE * np.log(STATES)
    return [
        Annealing(model.path(model.flat_base()), model.kernel(), num_chains),
        Program("plain JAX", ais, log_z0, num_chains),
        Bare(bare, num_chains),
    ]


def full_contestants(num_chains: int) -> list:
    """All coupled: the same."""
    half = np.triu(np.ones((UNITS, UNITS)), 1)[:, None, :, None]
    shape = (UNITS, FULL_STATES, UNITS, FULL_STATES)
    upper = half * np.random.default_rng(0).normal(0, 0.02, shape)
    couplings = upper + upper.transpose(2, 3, 0, 1)
    model, log_z0 = Potts(couplings), UNITS * np.log(FULL_STATES)
    tables = jnp.asarray(couplings, jnp.float32)
    by_state = jnp.moveaxis(tables, 1, 3)  # (units, neighbours, their states, states)
    return [
        Annealing(model.path(model.flat_base()), model.kernel(), num_chains),
        Program("plain JAX", functools.partial(full_ais, tables), log_z0, num_chains),
        Bare(functools.partial(full_bare, by_state), num_chains),
    ]


@jax.jit(static_argnames="num_chains")
def ais(betas, key, num_chains):
    """log w of every chain, on the lattice."""
    is_even = (jnp.arange(SIDE)[:, None] + jnp.arange(SIDE)) % 2 == 0

    def fields(x):
        hot = jax.nn.one_hot(x, STATES)
        return sum(jnp.roll(hot, shift, axis) for shift in (1, -1) for axis in (-2, -3))

    def step(carry, pair):
        x, log_weights, key = carry
        beta0, beta = pair
        agreeing = (jax.nn.one_hot(x, STATES) * fields(x)).sum((-3, -2, -1)) / 2
        log_weights += (beta - beta0) * COUPLING * agreeing
        key, *colours = jax.random.split(key, 3)
        for one, is_moved in zip(colours, (is_even, ~is_even), strict=True):
            x = jnp.where(is_moved, jax.random.categorical(one, beta * COUPLING * fields(x)), x)
        return (x, log_weights, key), None

    key, key_start = jax.random.split(key)
    x = jax.random.randint(key_start, (num_chains, SIDE, SIDE), 0, STATES)
    start = (x, jnp.zeros(num_chains), key)
    (_, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
    return log_weights


@jax.jit(static_argnames=("num_chains", "num_steps"))
def bare(stream, num_chains, num_steps):
    """The units of the even colour after all sweeps at beta = 1, on the lattice."""
    chains, units = jnp.arange(num_chains), SoftmaxUnits(STATES)
    weight = jnp.float32(COUPLING)
    products = [
        LatticeProduct(weight, weight, None, SIDE, SIDE, is_even) for is_even in (True, False)
    ]

    def sweep(k, x):
        bits = stream.at(k, chains)
        for draw, product in enumerate(products):
            sums = [product((x == state).astype(jnp.float32)) for state in range(STATES)]
            x = units.sample(bits, jnp.stack(sums, -1).reshape(num_chains, -1), draw)
        return x

    return jax.lax.fori_loop(1, num_steps + 1, sweep, jnp.zeros((num_chains, SIDE * SIDE // 2)))


@jax.jit(static_argnames="num_chains")
def full_ais(couplings, betas, key, num_chains):
    """log w of every chain, all coupled."""

    def logits(x, unit):
        return jnp.einsum("cjb,ajb->ca", jax.nn.one_hot(x, FULL_STATES), couplings[unit])

    def energy(x):
        hot = jax.nn.one_hot(x, FULL_STATES)
        return jnp.einsum("cia,iajb,cjb->c", hot, couplings, hot) / 2

    def step(carry, pair):
        x, log_weights, key = carry
        beta0, beta = pair
        log_weights += (beta - beta0) * energy(x)
        key, here = jax.random.split(key)

        def draw(unit, x):
            one = jax.random.fold_in(here, unit)
            return x.at[:, unit].set(jax.random.categorical(one, beta * logits(x, unit)))

        return (jax.lax.fori_loop(0, UNITS, draw, x), log_weights, key), None

    key, key_start = jax.random.split(key)
    x = jax.random.randint(key_start, (num_chains, UNITS), 0, FULL_STATES)
    start = (x, jnp.zeros(num_chains), key)
    (_, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
    return log_weights


@jax.jit(static_argnames=("num_chains", "num_steps"))
def full_bare(tables, stream, num_chains, num_steps):
    """The units after all sweeps at beta = 1, all coupled; tables as of `paths/pairs.py`."""
    chains, units = jnp.arange(num_chains), SoftmaxUnits(FULL_STATES)
    first = FULL_STATES * jnp.arange(UNITS)

    def sweep(k, x):
        bits = stream.at(k, chains)

        def draw(unit, x):
            rows = tables[unit].reshape(-1, FULL_STATES)
            logits = jnp.take(rows, first + x, axis=0, mode="clip").sum(1)
            new = units.sample(bits, logits, unit).astype(jnp.int32)
            return jax.lax.dynamic_update_slice(x, new, (0, unit))

        return jax.lax.fori_loop(0, UNITS, draw, x)

    return jax.lax.fori_loop(1, num_steps + 1, sweep, jnp.zeros((num_chains, UNITS), jnp.int32))
