"""Draws from p_B that are only nearly exact, for models too large to enumerate.

    x_j ~ sum_i w_i delta(x_i) / sum_i w_i       last states of a forward run, resampled by weight
    x_j <- T_1 x_j, many times                   sweeps at beta = 1, every draw on its own

Both steps have p_B as their limit, in the number of chains and in the number of sweeps, and neither
is exact: a mode that the run has missed stays missed, and draws of one ancestor stay alike where sweeps
do not leave its mode. What starts from them (a reverse run, and the upper side of log Z with it) is
approximate and must be labelled so. Exact draws of enumerable models: `annealz.models.exact_samples`.

The chain that a draw comes from depends on the weights of the run and on the seed alone.
"""

from typing import NamedTuple

import numpy as np

from annealz.core.arrays import indices, on_device
from annealz.core.pace import Pace
from annealz.core.random import Stream, derive_seed
from annealz.core.weights import resample
from annealz.engine.blocks import cut, split_chains
from annealz.engine.cluster.current import compute_each
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.run_at_beta import CAPACITY, run_at_beta

__all__ = ["Draws", "approximate_draws", "draw_with_ancestors"]


class Draws(NamedTuple):
    """Draws, and where they come from."""

    states: np.ndarray
    """(draws, …)."""
    ancestors: np.ndarray
    """(draws,): which chain of the run each comes from."""


def approximate_draws(
    path: AbstractPath,
    kernel: AbstractKernel,
    run: Run,
    num_draws: int,
    *,
    num_sweeps: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """States (draws, units) that are nearly those of p_B.

    Parameters
    ----------
    run : a forward run along `path`; its last states are where the draws come from
    num_sweeps : at beta = 1 after resampling; no fewer than the chains need to forget, where known
    seed : of resampling and sweeps; their streams are not those of the run

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> kernel = annealz.BlockGibbs()
    >>> run = annealz.anneal(path, kernel, annealz.linear(100), num_chains=100)
    >>> draws = annealz.approximate_draws(path, kernel, run, 50)
    >>> draws.shape, sorted(set(draws.ravel().tolist()))
    ((50, 6), [0.0, 1.0])
    """
    return draw_with_ancestors(
        path, kernel, run, num_draws, num_sweeps=num_sweeps, seed=seed
    ).states


def draw_with_ancestors(
    path: AbstractPath,
    kernel: AbstractKernel,
    run: Run,
    num_draws: int,
    *,
    num_sweeps: int = 100,
    seed: int = 0,
) -> Draws:
    """What `approximate_draws` returns, with the chain that each draw comes from."""
    for name, value, least in (("num_draws", num_draws, 1), ("num_sweeps", num_sweeps, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}.")
    path = kernel.extend(path)
    generator = np.random.default_rng(derive_seed(seed, "draws", "resampling"))
    chosen = resample(run.log_weights, generator, num_draws)
    starts, width = split_chains(num_draws)
    blocks = cut(run.states[chosen], starts, width)
    rows = [(seed, first, x, num_sweeps) for first, x in zip(starts, blocks, strict=True)]
    swept = compute_each(_swept, (path, kernel), rows)
    return Draws(np.concatenate(swept)[:num_draws], chosen)


def _swept(path, kernel, seed: int, first: int, x: np.ndarray, num_sweeps: int) -> np.ndarray:
    """These states, the first of which has this number, after sweeps at beta = 1."""
    stream, chains = Stream(seed, "draws"), indices(len(x)) + np.int32(first)
    states = on_device(x)
    pace, done = Pace(), 0
    while done < num_sweeps:
        count = pace.take(min(CAPACITY, num_sweeps - done))
        with pace:
            states, _ = run_at_beta(path, kernel, stream, chains, states, 1.0, done, count)
        done += count
    return np.asarray(states)
