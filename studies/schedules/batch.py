"""Many schedules of one length annealed side by side: one row of chains a schedule.

The same weights and moves as `annealz.anneal`, over a two-dimensional batch (schedules, chains), so that
a device that is fast only with many chains serves twenty replicates at once.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.numerics import add_compensated
from annealz.core.random import Stream
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath

__all__ = ["anneal_batch"]

_CHUNK = 500  # steps a compiled program takes; the last one is filled up with moves at beta = 1


def anneal_batch(
    path: AbstractPath,
    kernel: AbstractKernel,
    betas: np.ndarray,
    *,
    num_chains: int,
    seed: int,
    purpose: str,
) -> np.ndarray:
    """Log weights (schedules, chains) of the schedules `betas` (schedules, steps + 1)."""
    rows, num_steps = betas.shape[0], betas.shape[1] - 1
    stream = Stream(seed, purpose)
    chains = jnp.arange(rows * num_chains).reshape(rows, num_chains)
    x = path.pack(jax.vmap(lambda c: path.sample(stream.at(0, c)))(chains))
    log_weights = compensation = jnp.zeros((rows, num_chains), jnp.float32)
    filled = np.pad(betas, [(0, 0), (0, -num_steps % _CHUNK)], constant_values=1.0)
    steps = jnp.asarray(filled.T, jnp.float32)  # (steps + 1, schedules)
    for start in range(0, num_steps, _CHUNK):
        window = steps[start : start + _CHUNK + 1]
        x, log_weights, compensation = _advance(
            path, kernel, stream, chains, x, log_weights, compensation, window, jnp.int32(start)
        )
    return np.asarray(log_weights, np.float64) + np.asarray(compensation, np.float64)


@eqx.filter_jit
def _advance(path, kernel, stream, chains, x, log_weights, compensation, window, start):
    ratio = jax.vmap(path.log_ratio)
    move = jax.vmap(partial(_move, path, kernel, stream), in_axes=(None, 0, 0, 0))

    def step(carry, now):
        x, total, rest = carry
        k, beta0, beta1 = now
        x = path.unpack(x)
        total, rest = add_compensated(total, rest, ratio(x, beta0, beta1))
        return (path.pack(move(k, chains, x, beta1)), total, rest), None

    steps = start + jnp.arange(1, window.shape[0])
    return jax.lax.scan(step, (x, log_weights, compensation), (steps, window[:-1], window[1:]))[0]


def _move(path, kernel, stream, k, chains, x, beta):
    return kernel.step(stream.at(k, chains), x, path, beta)
