"""Systems whose chains forget fast, slowly and never, with their exact autocorrelation times."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.special import log_expit, logsumexp

from annealz.bases.bernoulli import BernoulliBase
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.paths.abstract import AbstractPath
from annealz.paths.geometric import GeometricPath
from annealz.pilots.autocorrelation import Memory, measure_memory
from annealz.testing import GaussianPath, PerfectKernel, binary_states, spins_moments, spins_path
from support.enumeration import in_float64
from support.systems import TINY, TINY_BASE


def two_modes(coupling: float) -> tuple[BernoulliBase, RBM]:
    """Units that are all on or all off: the base prefers on, the model off, so that U tells them apart."""
    weights = coupling + 0.2 * np.random.default_rng(1).normal(size=(4, 6))
    model = RBM(weights, -weights.sum(1) / 2, -weights.sum(0) / 2 - 0.8 / 6)
    return BernoulliBase.from_logits(np.full(6, 0.4)), model


EASY, SLOW, STUCK = (TINY_BASE, TINY), two_modes(1.5), two_modes(3.0)


class Exact(NamedTuple):
    """At one beta, by enumeration in float64."""

    law: np.ndarray
    matrix: np.ndarray
    slopes: np.ndarray
    mean: float
    g: float
    tau: float

    @property
    def lag_one_tau(self) -> float:
        """What tau would be if the correlation fell by the same factor at every lag."""
        centred = self.slopes - self.mean
        rho = (self.law * centred) @ self.matrix @ centred / self.g
        return float((1 + rho) / (1 - rho))


@eqx.filter_jit
def _values(path: GeometricPath, x, latent, beta):
    logits = path.latent_logits(x, beta), path.state_logits(latent, beta)
    return *logits, path.slope(x, beta), path.log_density(x, beta)


def exact(path: GeometricPath, beta: float) -> Exact:
    num_latent, num_units = path.to_state.shape
    x, latent = binary_states(num_units), binary_states(num_latent)
    with jax.enable_x64(True):
        values = _values(in_float64(path), x, latent, np.asarray(beta))
        up, down, slopes, log_law = (np.asarray(a) for a in values)
    matrix = conditional(up, latent) @ conditional(down, x)
    law = np.exp(log_law - logsumexp(log_law))
    mean = law @ slopes
    centred = slopes - mean
    g = law @ centred**2
    summed = np.linalg.solve(np.eye(law.size) - matrix + law, centred)
    tau = (2 * (law * centred) @ summed - g) / g
    return Exact(law, matrix, slopes, float(mean), float(g), float(tau))


def conditional(logits: np.ndarray, states: np.ndarray) -> np.ndarray:
    """p(state | row of logits)."""
    return np.exp(log_expit(logits) @ states.T + log_expit(-logits) @ (1 - states).T)


def lag_one(values: np.ndarray) -> Memory:
    """Mutant: tau = (1 + rho_1) / (1 - rho_1)."""
    memory = measure_memory(values)
    centred = values - values.mean()
    rho = (centred[1:] * centred[:-1]).mean() / centred.var()
    return memory._replace(tau=float((1 + rho) / (1 - rho)), is_bound=False)


SPINS = spins_path([0.0, -0.5, 0.25], [5.0, -6.0, 4.0], [1.5])
PERFECT: dict[str, tuple[AbstractPath, AbstractKernel, Callable]] = {
    "narrower": (GaussianPath(1.0, 0.5), PerfectKernel(), GaussianPath(1.0, 0.5).g),
    "wider": (GaussianPath(-0.75, 4.0), PerfectKernel(), GaussianPath(-0.75, 4.0).g),
    "spins": (SPINS, BlockGibbs(), lambda beta: spins_moments(SPINS, beta)[1]),
}
perfect = pytest.mark.parametrize("system", PERFECT.values(), ids=PERFECT.keys())
