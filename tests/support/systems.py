"""The systems that tests anneal: few units, so that everything about them can be enumerated."""

import jax
import numpy as np
import pytest

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.names import MARGINALS
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.schedules.schedule import Schedule
from annealz.testing import random_rbm

marginals = pytest.mark.parametrize("marginal", MARGINALS)


def exact_in_float32(model: RBM) -> RBM:
    """The same with parameters of few bits: their differences and sums are exact in float32."""
    return RBM(*(np.round(np.float64(a) * 256) / 256 for a in parameters(model)))


def parameters(model: RBM) -> tuple[jax.Array, ...]:
    return model.weights, model.hidden_bias, model.visible_bias


TINY = exact_in_float32(random_rbm(3, 4, scale=1.3, seed=5))
TINY_BASE = BernoulliBase.from_logits([0.5, -1.25, 1.75, -0.5])


# Few, uneven steps: the weights are far from constant and the kernel is far from mixing.
SMALL = exact_in_float32(random_rbm(4, 5, scale=1.2, seed=11))
SMALL_BASE = BernoulliBase.from_logits([0.75, -1.5, 1.0, -0.25, 2.0])
SCHEDULE = Schedule(np.array([0.0, 0.3125, 0.5, 0.8125, 1.0]))
LOG_RATIO_OF_Z = exact_log_z(SMALL) - (SMALL_BASE.log_z + 4 * np.log(2))


def true_code(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    return GeometricPath(SMALL_BASE, SMALL, marginal), BlockGibbs()


# Two phases of equal mass, all units off and all units on.
J = 1.5
FERROMAGNET = annealz.RBM(np.full((10, 12), J), np.full(10, -6 * J), np.full(12, -5 * J))
EXACT = exact_log_z(FERROMAGNET)
