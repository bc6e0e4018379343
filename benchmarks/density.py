"""Hamiltonian annealing of a Gaussian in 50 dimensions: annealz, plain JAX, BlackJAX, bare arithmetic.

    log p*(x) = -1/2 sum_i ((x_i - 1) / s_i)^2,    s_i from 1/2 to 3/2,    base N(0, 1), linear schedule

A step of annealz is the increment of the weights and one leapfrog step with a momentum that is partly
refreshed and turns round where the step is refused, one gradient per step (HAIS). The plain program is
written as a user would: `jax.grad`, `jax.random`, one `lax.scan`. BlackJAX's is tempered SMC with as many
particles and as many evaluations of each: resampled at every temperature, then moved by HMC of ten leapfrog
steps, with ten times fewer random numbers; annealz runs with ten leapfrog steps a move as well. The bare
arithmetic is one value and gradient, the normals, a uniform and the updates of a leapfrog step.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from annealz.kernels.hmc import HAIS
from annealz.models.log_density import LogDensity
from contestants import Annealing, Bare, Program

__all__ = ["DIM", "EXACT", "NAME", "contestants"]

NAME = "density, 50 dimensions, HAIS"
DIM, STEP = 50, 0.3
KEPT = np.exp(-STEP)  # of the momentum
LEAPFROGS = 10  # of a move of HMC
LONGER = f"annealz, {LEAPFROGS} leapfrogs"
EACH = (
    LEAPFROGS + 2
)  # evaluations of a particle per temperature: its move, where it starts, the weight
SCALES = np.linspace(0.5, 1.5, DIM).astype(np.float32)
EXACT = float(np.log(np.float64(SCALES) * np.sqrt(2 * np.pi)).sum())
LOG_Z0 = DIM * np.log(2 * np.pi) / 2


def contestants(num_chains: int) -> list:
    """annealz first, the bare arithmetic last."""
    model = LogDensity(log_target, dim=DIM)
    path = model.path(model.choose_base("standard"))
    return [
        Annealing(path, HAIS(step_size=STEP), num_chains),
        Annealing(path, HAIS(LEAPFROGS, step_size=STEP), num_chains, LONGER, LEAPFROGS),
        Program("plain JAX", hais, LOG_Z0, num_chains),
        Program("BlackJAX SMC", smc, LOG_Z0, num_chains),
        Bare(bare, num_chains),
    ]


def log_base(x):
    return -0.5 * jnp.sum(x**2)


def log_target(x):
    return -0.5 * jnp.sum(((x - 1) / SCALES) ** 2)


def log_rise(x):
    return log_target(x) - log_base(x)


@jax.jit(static_argnames="num_chains")
def hais(betas, key, num_chains):
    """log w of every chain."""

    def log_density(x, beta):
        return log_base(x) + beta * log_rise(x)

    slope = jax.vmap(log_rise)
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
        p = KEPT * p + np.sqrt(1 - KEPT**2) * jax.random.normal(key_p, p.shape)
        return (x, p, log_weights, key), None

    key, key_x, key_p = jax.random.split(key, 3)
    x, p = (jax.random.normal(one, (num_chains, DIM)) for one in (key_x, key_p))
    start = (x, p, jnp.zeros(num_chains), key)
    (_, _, log_weights, _), _ = jax.lax.scan(step, start, (betas[:-1], betas[1:]))
    return log_weights


@jax.jit(static_argnames="num_chains")
def smc(betas, key, num_chains):
    """log Z / Z_A, over as many temperatures as the steps pay for."""
    import blackjax
    import blackjax.smc.resampling
    import blackjax.smc.tempered as tempered

    move = functools.partial(
        blackjax.hmc.build_kernel(),
        step_size=STEP,
        inverse_mass_matrix=jnp.ones(DIM),
        num_integration_steps=LEAPFROGS,
    )
    kernel = tempered.build_kernel(
        log_base, log_rise, move, blackjax.hmc.init, blackjax.smc.resampling.systematic
    )
    num_temperatures = (len(betas) - 1) // EACH

    def step(carry, beta):
        state, key = carry
        key, here = jax.random.split(key)
        state, info = kernel(here, state, 1, beta, {})
        return (state, key), info.log_likelihood_increment

    key, here = jax.random.split(key)
    state = tempered.init(jax.random.normal(here, (num_chains, DIM)))
    temperatures = jnp.linspace(0, 1, num_temperatures + 1)[1:]
    return jax.lax.scan(step, (state, key), temperatures)[1].sum()


@jax.jit(static_argnames=("num_chains", "num_steps"))
def bare(stream, num_chains, num_steps):
    """x and p after all steps at beta = 1."""
    chains = jnp.arange(num_chains)
    field = jax.vmap(jax.value_and_grad(log_target))

    def step(k, held):
        x, p, value, gradient = held
        bits = stream.at(k, chains)
        half = p + STEP / 2 * gradient
        there = x + STEP * half
        new_value, new_gradient = field(there)
        turned = half + STEP / 2 * new_gradient
        gain = new_value - value + 0.5 * (jnp.sum(p**2, -1) - jnp.sum(turned**2, -1))
        is_taken = jnp.log(bits.uniforms(1, 1)[:, 0]) < gain
        some = is_taken[:, None]
        p = KEPT * jnp.where(some, turned, -p) + np.sqrt(1 - KEPT**2) * bits.normals(DIM, 0)
        value = jnp.where(is_taken, new_value, value)
        return jnp.where(some, there, x), p, value, jnp.where(some, new_gradient, gradient)

    x, p = (stream.at(0, chains).normals(DIM, draw) for draw in (0, 1))
    return jax.lax.fori_loop(1, num_steps + 1, step, (x, p, *field(x)))[:2]
