"""Runs at fixed beta: what a pilot learns the terrain from."""

import jax
import jax.numpy as jnp

from annealz.core.compiled import Compiled

__all__ = ["run_at_beta"]


@Compiled
def run_at_beta(path, kernel, stream, chains, x, beta, done, count: int):
    """`count` sweeps at one beta: the states, and the slopes (sweeps, chains) after each.

    `done` is the number of sweeps that the stream has been used for.
    """

    def sweep(x, k):
        x = kernel.step(stream.at(done + k, chains), x, path, beta)
        return x, path.slope(x, beta)

    return jax.lax.scan(sweep, x, jnp.arange(1, count + 1))
