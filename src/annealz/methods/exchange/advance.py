"""What runs on the device: a block of ensembles, and many sweeps of it in one compiled program.

An ensemble is R replicas, one at each of beta_0 = 0 < ... < beta_{R-1} = 1. States do not move, their
betas are exchanged: row e R + i is replica i of ensemble e throughout. With x_r the state at beta_r
and

    W_r(x) = log p*_{beta_{r+1}}(x) - log p*_{beta_r}(x)

sweep k = 1, 2, ... makes

    sums += s(W_r(x_r) - C_r), s(C_r - W_r(x_{r+1})), 1 - a_r, W_r(x_r), W_r(x_{r+1})     of every pair
    swap r and r + 1 with probability a_r = min(1, exp(W_r(x_r) - W_r(x_{r+1})))          r - k even
    x <- T_beta(. | x) at the beta that it now has                                        every row

s is the logistic function. The pairs alternate between even and odd ones and are not drawn, which makes the
replicas travel instead of diffusing (Okabe et al. 2001; Syed, Bouchard-Cote, Deligiannidis & Doucet 2022).
A swap follows the measurement and precedes the move, so that one product of a state serves all three.

Rows have betas of their own. Where the path's parameters do not depend on beta (most paths) the sweep is
vectorised over rows and its products stay single large ones. Where they do (`TrajectoryPath`) every row
would need its own matrix; there the rows are collected by beta and the sweep is vectorised over betas.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from annealz.core.numerics import add_compensated
from annealz.core.programs import programs_in
from annealz.core.random import Stream
from annealz.engine.advance import repeat
from annealz.engine.blocks import states_like
from annealz.engine.resampling import (
    RESAMPLING_DRAW as SWAP_DRAW,  # the draw that no kernel may use
)
from annealz.methods.exchange.rounds import NUM_SUMS

_FROM_BASE, _FROM_TARGET = 1, 2  # labels of replicas: the end that they saw last; 0 neither
_WASTE = 4  # times the memory at which rows are collected by beta


class Ensembles(eqx.Module):
    """The state of one block of ensembles."""

    x: Any  # (rows, ...)
    rungs: jax.Array  # (ensembles, num_rungs), the index of the beta of every replica
    replicas: jax.Array  # (ensembles, num_rungs), the replica at every beta
    labels: jax.Array  # (ensembles, num_rungs), of every replica
    trips: jax.Array  # (ensembles,), round trips
    sums: jax.Array  # (ensembles, pairs, 5)
    compensation: jax.Array


@eqx.filter_jit
def start(path, stream: Stream, first_row, num_ensembles: int, num_rungs: int) -> Ensembles:
    """A block of draws from p_0, replica i at beta_i."""
    x = path.sample(stream.at(0, first_row + jnp.arange(num_ensembles * num_rungs)))
    order = jnp.tile(jnp.arange(num_rungs, dtype=jnp.int32), (num_ensembles, 1))
    sums = jnp.zeros((num_ensembles, num_rungs - 1, NUM_SUMS), jnp.float32)
    trips = jnp.zeros(num_ensembles, jnp.int32)
    return Ensembles(path.store(x), order, order, jnp.zeros_like(order), trips, sums, sums)


class Sweeps(NamedTuple):
    """Sweeps start + 1 .. stop of one block, all numbers traced."""

    first_row: Any
    betas: Any
    """Of the ladder."""
    constants: Any
    """C of every pair."""
    start: Any
    stop: Any
    ramp: Any
    """Sweeps over which the ladder opens: at sweep k < ramp it is k / ramp times its betas."""
    fresh: Any
    """(Are sums begun again, are labels and trips begun again)."""


@eqx.filter_jit
def advance(
    path, kernel, stream: Stream, block: Ensembles, sweeps: Sweeps, by_rung: bool = False
) -> Ensembles:
    """The block after these sweeps."""
    size = block.rungs.shape
    rows = sweeps.first_row + jnp.arange(size[0] * size[1])
    spread = _by_rung if by_rung else _by_row
    measure, move = spread(path, kernel, size)

    def sweep(k, block: Ensembles) -> Ensembles:
        here = sweeps.betas * jnp.minimum(1, k / sweeps.ramp).astype(jnp.float32)
        x = path.unpack(block.x)
        up, down = measure(x, block.rungs, block.replicas, here)
        up, down = up[:, :-1], down[:, 1:]  # (ensembles, pairs)
        gain = up - down
        above, below = (
            jax.nn.sigmoid(up - sweeps.constants),
            jax.nn.sigmoid(sweeps.constants - down),
        )
        terms = jnp.stack([above, below, -jnp.expm1(jnp.minimum(gain, 0)), up, down], -1)
        sums, compensation = add_compensated(block.sums, block.compensation, terms)
        uniforms = stream.at(k, rows[:: size[1]]).uniforms(size[1] - 1, SWAP_DRAW)
        rungs, replicas = swap_rungs(block.rungs, block.replicas, gain, uniforms, k)
        labels, trips = _count(block.labels, block.trips, rungs)
        bits = stream.at(k, rows)
        x = path.pack(move(bits, x, rungs, replicas, here))
        return Ensembles(x, rungs, replicas, labels, trips, sums, compensation)

    fresh = sweeps.fresh
    kept, is_same_round = 1 - fresh[0].astype(jnp.float32), 1 - fresh[1].astype(jnp.int32)
    block = Ensembles(
        path.pack(path.restore(block.x)),
        block.rungs,
        block.replicas,
        block.labels * is_same_round,
        block.trips * is_same_round,
        block.sums * kept,
        block.compensation * kept,
    )
    block = repeat(sweep, sweeps.start + 1, sweeps.stop + 1, block)
    return eqx.tree_at(lambda b: b.x, block, path.store(path.unpack(block.x)))


def swap_rungs(rungs, replicas, gain, uniforms, k):
    """`rungs` and `replicas` after the swaps of sweep k, of pairs of this gain W_r(x_r) - W_r(x_{r+1})."""
    pairs = jnp.arange(gain.shape[1])
    is_taken = (gain >= 0) | (uniforms < jnp.exp(gain))  # so that NaN is kept
    is_taken = (is_taken & (pairs % 2 == k % 2)).astype(jnp.int32)
    none = jnp.zeros_like(is_taken[:, :1])
    shift = jnp.concatenate([is_taken, none], 1) - jnp.concatenate([none, is_taken], 1)
    there = jnp.arange(rungs.shape[1]) + shift  # the index that each beta exchanges with
    new_rungs = rungs + jnp.take_along_axis(shift, rungs, 1)
    return new_rungs, jnp.take_along_axis(replicas, there, 1)


def _count(labels, trips, rungs):
    """Labels and round trips after a swap: base, target, base is one trip."""
    at_base, at_target = rungs == 0, rungs == rungs.shape[1] - 1
    trips = trips + (at_base & (labels == _FROM_TARGET)).sum(1, dtype=jnp.int32)
    arrived = jnp.where(at_target & (labels == _FROM_BASE), _FROM_TARGET, labels)
    return jnp.where(at_base, _FROM_BASE, arrived), trips


def _neighbours(betas):
    """The beta below and the beta above each one; the ends have themselves."""
    return jnp.concatenate([betas[:1], betas[:-1]]), jnp.concatenate([betas[1:], betas[-1:]])


def _by_row(path, kernel, size):
    def measure(x, rungs, replicas, betas):
        below, above = _neighbours(betas)

        def one(x, rung):
            beta = betas[rung]
            up = path.log_ratio(x[None], beta, above[rung])
            return up[0], path.log_ratio(x[None], below[rung], beta)[0]

        works = jax.vmap(one)(x, rungs.reshape(-1))
        return tuple(jnp.take_along_axis(work.reshape(size), replicas, 1) for work in works)

    def move(bits, x, rungs, replicas, betas):
        def one(row, x, beta):
            own = eqx.tree_at(lambda b: b.chains, bits, row[None])
            return kernel.step(own, x[None], path, beta)[0]

        return jax.vmap(one)(bits.chains, x, betas[rungs.reshape(-1)])

    return measure, move


def _by_rung(path, kernel, size):
    def collected(replicas):
        """(num_rungs, ensembles), the row at every beta."""
        return (replicas + size[1] * jnp.arange(size[0])[:, None]).T

    def measure(x, rungs, replicas, betas):
        def one(x, below, beta, above):
            return path.log_ratio(x, beta, above), path.log_ratio(x, below, beta)

        below, above = _neighbours(betas)
        works = jax.vmap(one)(x[collected(replicas)], below, betas, above)
        return tuple(work.T for work in works)

    def move(bits, x, rungs, replicas, betas):
        def one(rows, x, beta):
            own = eqx.tree_at(lambda b: b.chains, bits, rows)
            return kernel.step(own, x, path, beta)

        rows = collected(replicas)
        return x.at[rows].set(jax.vmap(one)(bits.chains[rows], x[rows], betas))

    return measure, move


def is_by_rung(path, num_ensembles: int, num_rungs: int) -> bool:
    """Check whether rows are collected by beta: a matrix for every row would take far more memory."""
    size = num_ensembles, num_rungs
    x = states_like(path, num_ensembles * num_rungs)
    order = jax.ShapeDtypeStruct(size, jnp.int32)
    betas = jax.ShapeDtypeStruct((num_rungs,), jnp.float32)

    def largest(spread) -> int:
        measure: Any = eqx.filter_make_jaxpr(lambda path, *rows: spread(path, None, size)[0](*rows))
        return _largest(measure(path, x, order, order, betas)[0].jaxpr)

    return largest(_by_row) > _WASTE * largest(_by_rung)


def _largest(program) -> int:
    """Return the elements of the largest array that a program makes."""
    made = [out for line in program.eqns for out in line.outvars]
    inside = [getattr(part, "jaxpr", part) for line in program.eqns for part in programs_in(line)]
    sizes = (math.prod(getattr(out.aval, "shape", ())) for out in made)
    return max([0, *sizes, *map(_largest, inside)])
