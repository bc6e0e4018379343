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
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from annealz.core.compiled import Compiled
from annealz.core.random import Stream
from annealz.engine.gpu import choose_fused
from annealz.engine.observers import Slope
from annealz.engine.resampling import ancestors
from annealz.workflows.pilots.run_at_beta import CAPACITY, fused_at_beta, sweeps_at_beta

__all__ = ["MOST_KNOTS", "MOST_LEGS", "MOST_SWEEPS", "Leg", "Population", "Seen", "visit"]

MOST_KNOTS = 34  # of a way
MOST_SWEEPS = 8192  # of a launch
MOST_LEGS = 64
_RESAMPLE_BELOW = 0.5  # of the chains


class Leg(NamedTuple):
    """From the knot where the population stood to the one where it runs, and for how many sweeps."""

    start: int
    knot: int
    count: int


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
    given = np.zeros((3, MOST_LEGS), np.int32)
    given[:, : len(legs)] = np.array(legs, np.int32).T
    places = np.zeros(MOST_KNOTS, np.float32)
    places[: len(betas)] = betas
    fused = choose_fused(path, kernel, {"slope": Slope()}, None, len(chains))
    way = given, np.int32(len(legs)), places, uniforms.astype(np.float32), np.int32(done)
    take, who = (_plain, (path, kernel)) if fused is None else (_fused, (path, fused))
    options = {"work": work} if fused is None else {}
    population, *seen = take(*who, stream, chains, population, *way, **options)
    jumps, resampled, slopes = jax.device_get(seen)
    ends = np.cumsum([leg.count for leg in legs])
    return population, [
        Seen(leg, jumps[i], bool(resampled[i]), slopes[end - leg.count : end])
        for i, (leg, end) in enumerate(zip(legs, ends, strict=True))
    ]


@jax.jit
def _at_first(x, num_resamplings):
    states = jnp.zeros((MOST_KNOTS, *x.shape), x.dtype).at[0].set(x)
    return Population(states, jnp.zeros(x.shape[0], jnp.float32), num_resamplings)


@Compiled
def _plain(path, kernel, stream, chains, population, legs, num_legs, betas, uniforms, done):
    def sweep(x, beta, done, count, slopes, row):
        return sweeps_at_beta(path, kernel, stream, chains, x, beta, done, count, slopes, row)

    return _visited(path, sweep, population, legs, num_legs, betas, uniforms, done)


@eqx.filter_jit
def _fused(path, fused, stream, chains, population, legs, num_legs, betas, uniforms, done):
    def sweep(x, beta, done, count, slopes, row):
        x, here = fused_at_beta(fused, stream, chains, x, beta, done, count)
        return x, jax.lax.dynamic_update_slice(slopes, here, (row, 0))

    return _visited(path, sweep, population, legs, num_legs, betas, uniforms, done)


def _visited(path, sweep, population: Population, legs, num_legs, betas, uniforms, done):
    num_chains = population.log_weights.shape[0]

    def take(i, held):
        population, done, row, jumps, resampled, slopes = held
        start, knot, count = legs[0, i], legs[1, i], legs[2, i]
        x = population.states[start]
        jump = jnp.where(start == knot, 0, path.log_ratio(x, betas[start], betas[knot]))
        log_weights = population.log_weights + jump
        weights = jnp.exp(log_weights - log_weights.max())
        is_due = weights.sum() ** 2 < _RESAMPLE_BELOW * num_chains * (weights**2).sum()
        used = population.num_resamplings
        point = jax.lax.dynamic_slice(uniforms, (used,), (1,))[None]
        x = jax.lax.cond(is_due, lambda x: x[ancestors(weights[None], point)[0]], lambda x: x, x)
        x, slopes = sweep(x, betas[knot], done, count, slopes, row)
        population = Population(
            jax.lax.dynamic_update_index_in_dim(population.states, x, knot, 0),
            jnp.where(is_due, 0, log_weights),
            used + is_due,
        )
        jumps, resampled = jumps.at[i].set(jump), resampled.at[i].set(is_due)
        return population, done + count, row + count, jumps, resampled, slopes

    empty = (
        jnp.zeros((MOST_LEGS, num_chains), jnp.float32),
        jnp.zeros(MOST_LEGS, bool),
        jnp.zeros((MOST_SWEEPS + CAPACITY, num_chains), jnp.float32),  # the last leg is filled up
    )
    held = jax.lax.fori_loop(0, num_legs, take, (population, done, jnp.int32(0), *empty))
    return held[0], *held[3:]
