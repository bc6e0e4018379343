"""Runs at fixed beta: what a pilot learns the terrain from.

A launch takes up to `CAPACITY` sweeps, whose number is a traced value: one program serves all lengths. On
a GPU the engine's fused steps serve here too: with all betas equal no weight changes, and what they record
is the slope before each sweep instead of after it.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.engine.advance import repeat
from annealz.engine.gpu import choose_fused
from annealz.engine.gpu.chunk import Chains, Span
from annealz.engine.observers import Slope

CAPACITY = 512  # sweeps of a launch


def run_at_beta(
    path: Any,
    kernel: Any,
    stream: Stream,
    chains: jax.Array,
    x: Any,
    beta: float,
    done: int,
    count: int,
    *,
    work: float = math.inf,
) -> tuple[jax.Array, np.ndarray]:
    """`count` sweeps at one beta: the states, and a slope (sweeps, chains) of every sweep.

    `done` is the number of sweeps that the stream has been used for; `work` about how many numbers will be
    computed in all.
    """
    fused = choose_fused(path, kernel, {"slope": Slope()}, None, len(x))
    parts = []
    for first in range(0, count, CAPACITY):
        length = min(CAPACITY, count - first)
        at = np.float32(beta), np.int32(done + first), np.int32(length)
        if fused is not None:
            x, slopes = _fused(fused, stream, chains, x, *at)
        else:
            x, slopes = _plain(path, kernel, stream, chains, x, *at, work=work, at_once=x.size)
        parts.append(np.asarray(slopes)[:length])
    return x, np.concatenate(parts)


@Compiled
def _plain(path, kernel, stream, chains, x, beta, done, count):
    slopes = jnp.zeros((CAPACITY, x.shape[0]), jnp.float32)
    return sweeps_at_beta(path, kernel, stream, chains, x, beta, done, count, slopes, 0)


def sweeps_at_beta(path, kernel, stream, chains, x, beta, done, count, slopes, row):
    """The states after `count` sweeps, and the slopes with theirs in them from this row on; traced."""

    def sweep(k, held):
        x, slopes = held
        x = kernel.step(stream.at(done + k + 1, chains), x, path, beta)
        return x, slopes.at[row + k].set(path.slope(x, beta))

    return repeat(sweep, 0, count, (x, slopes))


@Compiled.without_search
def _fused(fused, stream, chains, x, beta, done, count):
    return fused_at_beta(fused, stream, chains, x, beta, done, count)


def fused_at_beta(fused, stream, chains, x, beta, done, count):
    """The same by fused steps, of at most `CAPACITY` sweeps: the states, and slopes filled up; traced."""
    zeros = jnp.zeros(x.shape[0], jnp.float32)
    span = Span(done, done + count, jnp.int32(1), done + count, CAPACITY)
    betas = jnp.full(CAPACITY + 1, beta)
    held, (_, _, slopes) = fused(stream, Chains(chains, x, zeros, zeros), betas, span)
    return held.x, slopes
