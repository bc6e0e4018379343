"""Contestant "annealz": the engine, end to end, with its default observers and record thinning.

A timing is the wall clock of one whole call of `anneal`: start states, all chunks with their
returns to the host, records, and the `Run` that comes back. Only compilation is left out, by a
warm-up call. By default a run of up to 1000 steps records every step, a longer one fewer: the
race times the more expensive case.
"""

import time

import numpy as np

from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.paths.bases.bernoulli import BernoulliBase
from annealz.paths.geometric import GeometricPath
from annealz.schedules.linear import linear
from problem import Timing, standard_error

__all__ = ["Engine", "path_of"]


def path_of(model: RBM) -> GeometricPath:
    """From the model's visible bias to the model."""
    return GeometricPath(BernoulliBase.from_logits(model.visible_bias), model)


class Engine:
    """annealz on one model."""

    name = "annealz"

    def __init__(self, model: RBM, num_chains: int):
        self._path, self._num_chains = path_of(model), num_chains

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        schedule = linear(num_steps)
        began = time.perf_counter()
        run = anneal(self._path, BlockGibbs(), schedule, num_chains=self._num_chains, seed=seed)
        seconds = time.perf_counter() - began
        log_z = run.log_z0 + np.logaddexp.reduce(run.log_weights) - np.log(run.num_chains)
        return Timing(seconds, float(log_z), standard_error(run.log_weights))
