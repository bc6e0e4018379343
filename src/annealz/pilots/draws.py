"""Draws from p_B that are only nearly exact, for models too large to enumerate.

    x_j ~ sum_i w_i delta(x_i) / sum_i w_i       last states of a forward run, resampled by weight
    x_j <- T_1 x_j, many times                   sweeps at beta = 1, every draw on its own

Both steps have p_B as their limit, in the number of chains and in the number of sweeps, and neither
is exact: a mode that the run has missed stays missed, and draws of one ancestor stay alike where sweeps
do not leave its mode. What starts from them (a reverse run, and the upper side of log Z with it) is
approximate and must be labelled so. Exact draws of enumerable models: `annealz.models.exact_samples`.

The chain that a draw comes from depends on the weights of the run and on the seed alone.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream, derive_seed
from annealz.core.weights import resample
from annealz.engine.blocks import gather, split_chains, states_like
from annealz.engine.checkpoint import Saver
from annealz.engine.loop import BlockProgram, take_steps
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.run_at_beta import CAPACITY, run_at_beta


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
    return draw_with_ancestors(path, kernel, run, num_draws, num_sweeps, seed)[0]


def draw_with_ancestors(
    path: AbstractPath,
    kernel: AbstractKernel,
    run: Run,
    num_draws: int,
    num_sweeps: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `approximate_draws` does, and which chain each draw comes from, (draws,)."""
    for name, value, least in (("num_draws", num_draws, 1), ("num_sweeps", num_sweeps, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}.")
    program = _Sweeps(kernel.extend(path), kernel, num_draws, num_sweeps, seed)
    generator = np.random.default_rng(derive_seed(seed, "draws", "resampling"))
    chosen = resample(run.log_weights, generator, num_draws)
    swept = take_steps(program, Saver(None, 0), draws=run.states[chosen]).blocks
    return gather(swept, num_draws), chosen


@dataclasses.dataclass(frozen=True)
class _Sweeps(BlockProgram):
    """Sweeps of every draw at beta = 1."""

    path: AbstractPath
    kernel: AbstractKernel
    num_draws: int
    num_steps: int
    seed: int

    @property
    def blocks(self) -> tuple[list[int], int]:
        return split_chains(self.num_draws)

    @property
    def given(self) -> tuple:
        return self.path, self.kernel, Stream(self.seed, "draws")

    def first(self, given: tuple, i: int, draws: np.ndarray) -> jax.Array:
        return on_device(draws)

    @property
    def like(self) -> jax.ShapeDtypeStruct:
        return states_like(self.path, self.blocks[1])

    def limit(self, step: int) -> int:
        return min(CAPACITY, self.num_steps - step)

    def advance(self, given: tuple, i: int, block: jax.Array, step: int, stop: int, *_: Any):
        path, kernel, stream = given
        chains = indices(len(block)) + np.int32(self.blocks[0][i])
        done = run_at_beta(path, kernel, stream, chains, block, 1.0, step, stop - step)
        return done[0], None

    def merge(self, step: int, stop: int, *_: Any):
        return [], Progress(stop, self.num_steps, np.nan, np.nan, "draws")
