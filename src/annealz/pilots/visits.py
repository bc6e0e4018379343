"""A population that visits the knots of a survey: many runs at fixed beta in one launch.

A leg of the way takes the states last seen at one knot, a_i, to another, b_i, and runs there:

    log w += log p*_{b}(x) - log p*_{a}(x)          nothing where a = b: the run at a knot goes on
    resample, if fewer than half of the chains are effective (systematic, one uniform), and log w = 0
    x ~ T_b(. | x), n_i times                       a slope of every sweep

Legs, their betas and their lengths are traced values: one program serves all surveys of a kind of path and
a number of chains. Random bits are those of the sweep's number, so that neither the number of launches nor
where they end changes a bit.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.engine.gpu import choose_fused
from annealz.engine.observers import Slope
from annealz.engine.resampling import ancestors
from annealz.pilots.run_at_beta import CAPACITY, fused_at_beta, sweeps_at_beta

MOST_KNOTS = 34  # of a way
MOST_SWEEPS = 8192  # of a launch
MOST_LEGS = 64
_RESAMPLE_BELOW = 0.5  # of the chains


class Leg(NamedTuple):
    """From the knot where the population stood to the one where it runs, and for how many sweeps."""

    start: int
    knot: int
    num_sweeps: int


class Population(eqx.Module):
    """Chains, as they were last seen at every knot, and their weights since they were last resampled."""

    states: Array  # (knots, chains, ...)
    log_weights: Float[Array, " chains"]
    num_resamplings: Int[Array, ""]

    @classmethod
    def at_first(cls, x: Array, num_resamplings: int = 0) -> "Population":
        """These states at the first knot, after so many resamplings elsewhere."""
        return _at_first(x, np.int32(num_resamplings))


class Seen(NamedTuple):
    """What one leg showed."""

    leg: Leg
    jump: np.ndarray  # (chains,), what the leg added to log w
    is_resampled: bool
    slopes: np.ndarray  # (sweeps, chains)


def visit(
    path: Any,
    kernel: Any,
    stream: Stream,
    chains: jax.Array,
    population: Population,
    betas: np.ndarray,
    legs: list[Leg],
    uniforms: np.ndarray,
    done: int,
    *,
    work: float = math.inf,
) -> tuple[Population, list[Seen]]:
    """The population after these legs, in one launch, and what each of them showed.

    A leg takes at most `CAPACITY` sweeps, and all together at most `MOST_SWEEPS`. `uniforms` are those of
    all resamplings; `done` is the number of sweeps that the stream has been used for.
    """
    whole, real = np.zeros((MOST_LEGS, 3), np.int32), np.zeros((MOST_LEGS, 2), np.float32)
    whole[: len(legs)] = np.array(legs)
    real[: len(legs)] = [(betas[leg.start], betas[leg.knot]) for leg in legs]
    way = whole, real, np.int32(len(legs)), uniforms.astype(np.float32), np.int32(done)
    fused = choose_fused(path, kernel, {"slope": Slope()}, None, len(chains))
    program, moves = (_plain, kernel) if fused is None else (_fused, fused)
    load = {"work": work, "at_once": population.states.size // MOST_KNOTS}
    population, *seen = program(path, moves, stream, chains, population, *way, **load)
    jumps, resampled, slopes = jax.device_get(seen)
    ends = np.cumsum([leg.num_sweeps for leg in legs])
    return population, [
        Seen(leg, jumps[i], bool(resampled[i]), slopes[end - leg.num_sweeps : end])
        for i, (leg, end) in enumerate(zip(legs, ends, strict=True))
    ]


@jax.jit
def _at_first(x, num_resamplings):
    states = jnp.zeros((MOST_KNOTS, *x.shape), x.dtype).at[0].set(x)
    return Population(states, jnp.zeros(x.shape[0], jnp.float32), num_resamplings)


@Compiled
def _plain(path, kernel, stream, chains, population, *way):
    def sweep(x, beta, done, count, slopes, row):
        return sweeps_at_beta(path, kernel, stream, chains, x, beta, done, count, slopes, row)

    return _visited(path, sweep, population, *way)


@Compiled.without_search
def _fused(path, fused, stream, chains, population, *way):
    def sweep(x, beta, done, count, slopes, row):
        x, here = fused_at_beta(fused, stream, chains, x, beta, done, count)
        return x, jax.lax.dynamic_update_slice(slopes, here, (row, 0))

    return _visited(path, sweep, population, *way)


def _visited(path, sweep, population: Population, whole, real, num_legs, uniforms, first):
    num_chains = population.log_weights.shape[0]
    at = partial(jax.lax.dynamic_index_in_dim, keepdims=False)
    put = jax.lax.dynamic_update_index_in_dim

    def take(i, held):
        population, row, jumps, resampled, slopes = held
        (start, knot, count), (beta0, beta1) = at(whole, i), at(real, i)
        x = at(population.states, start)
        jump = jnp.where(start == knot, 0, path.log_ratio(x, beta0, beta1))
        log_weights = population.log_weights + jump
        weights = jnp.exp(log_weights - log_weights.max())
        is_due = weights.sum() ** 2 < _RESAMPLE_BELOW * num_chains * (weights**2).sum()
        used = population.num_resamplings
        point = at(uniforms, used).reshape(1, 1)
        x = jax.lax.cond(is_due, lambda x: x[ancestors(weights[None], point)[0]], lambda x: x, x)
        x, slopes = sweep(x, beta1, first + row, count, slopes, row)
        population = Population(
            put(population.states, x, knot, 0),
            jnp.where(is_due, 0, log_weights),
            used + is_due,
        )
        jumps, resampled = put(jumps, jump, i, 0), put(resampled, is_due, i, 0)
        return population, row + count, jumps, resampled, slopes

    empty = (
        jnp.zeros((MOST_LEGS, num_chains), jnp.float32),
        jnp.zeros(MOST_LEGS, bool),
        jnp.zeros((MOST_SWEEPS + CAPACITY, num_chains), jnp.float32),  # the last leg is filled up
    )
    population, _, *seen = jax.lax.fori_loop(0, num_legs, take, (population, jnp.int32(0), *empty))
    return population, *seen
