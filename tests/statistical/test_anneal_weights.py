"""The weights of the engine: E[w] = Z_B / Z_A exactly and by z-test.

Exact identities come first: on a few states the expected weight is a product of matrices. Then
the engine's own weights are tied to it by a z-test. Every mutant must break both.
"""

import itertools
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.engine import blocks
from annealz.engine.anneal import anneal
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from annealz.testing import (
    assert_within_mc_error,
    binary_states,
    independent_spins,
)
from support.enumeration import (
    first_law,
    in_float64,
    transition_matrix,
)
from support.kernels import BiasedGibbs, StaleGibbs
from support.systems import LOG_RATIO_OF_Z, SCHEDULE, SMALL, SMALL_BASE, marginals, true_code
from support.values import log_ratio

BETAS = np.float32(SCHEDULE.betas)


# --- the z-test itself ------------------------------------------------------------------------


def test_the_z_test_knows_four_errors_from_six():
    assert_within_mc_error(1.4, 1.0, 0.1)
    assert_within_mc_error([1.4, 0.7], 1.0, [0.1, 0.1])
    for estimate in (1.6, 0.4, np.nan, [1.0, 1.6]):
        with pytest.raises(AssertionError, match=r"z = .*seed \d+"):
            assert_within_mc_error(estimate, 1.0, 0.1)
    for std_err in (0.0, np.nan, np.inf, -1.0):
        with pytest.raises(AssertionError, match="positive and finite"):
            assert_within_mc_error(1.0, 1.0, std_err)
    assert_within_mc_error(1.6, 1.0, 0.1, num_replicates=8)  # Student's tails are wide
    with pytest.raises(AssertionError):
        assert_within_mc_error(1.6, 1.0, 0.1, num_replicates=800)


# --- mutants ----------------------------------------------------------------------------------


class EagerPath(GeometricPath):
    """Half of the mutant that moves before it reweights: the first state has already moved."""

    first_beta: jax.Array

    def __init__(self, base, model, marginal, first_beta):
        super().__init__(base, model, marginal)
        self.first_beta = first_beta

    def sample(self, bits):
        x = super().sample(bits)
        latent = bits.bernoulli(self.latent_logits(x, self.first_beta), draw=2)
        return bits.bernoulli(self.state_logits(latent, self.first_beta), draw=3)


def stale_beta(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    """v_k ~ T of beta_{k-1}."""
    return GeometricPath(SMALL_BASE, SMALL, marginal), StaleGibbs(BETAS)


def move_before_reweight(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    """v_k ~ T of beta_k, and only then the increment to beta_k, at v_k."""
    return EagerPath(SMALL_BASE, SMALL, marginal, BETAS[1]), StaleGibbs(BETAS, shift=1)


def wrong_sign_of_base(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    """The biases change by b + b_A where b - b_A is due."""
    path = GeometricPath(SMALL_BASE, SMALL, marginal)
    wrong = GeometricPath(BernoulliBase.from_logits(-SMALL_BASE.logits), SMALL, marginal)
    starts = (path.base, path.state_bias, path.latent_bias)
    return eqx.tree_at(lambda p: (p.base, p.state_bias, p.latent_bias), wrong, starts), BlockGibbs()


def biased_coin(marginal: str) -> tuple[GeometricPath, AbstractKernel]:
    return GeometricPath(SMALL_BASE, SMALL, marginal), BiasedGibbs()


MUTANTS = [stale_beta, move_before_reweight, wrong_sign_of_base, biased_coin]
mutants = pytest.mark.parametrize("mutant", MUTANTS)


# --- the identity, without noise --------------------------------------------------------------


def expected_weight(path: GeometricPath, kernel: AbstractKernel, betas: np.ndarray) -> float:
    """E[w] of Algorithm 1, in float64: the law of the state, reweighted and moved step by step."""
    with jax.enable_x64(True):
        wide = in_float64(path)
        law = first_law(wide)
        states = binary_states(path.to_state.shape[1])
        for low, high in itertools.pairwise(betas):
            law = law * np.exp(log_ratio(wide, states, low, high))
            law = law @ transition_matrix(kernel, path, high)
    return float(law.sum())


@marginals
def test_expected_weight_is_the_ratio_of_z(marginal: str):
    weight = expected_weight(*true_code(marginal), SCHEDULE.betas)
    assert weight == pytest.approx(np.exp(LOG_RATIO_OF_Z), rel=1e-10)


@marginals
@pytest.mark.parametrize("num_steps", [1, 2, 7])
def test_expected_weight_does_not_depend_on_the_schedule(marginal: str, num_steps: int):
    """Unbiased whatever the mixing: one step is plain importance sampling."""
    for betas in (np.linspace(0, 1, num_steps + 1), np.linspace(0, 1, num_steps + 1) ** 3):
        weight = expected_weight(*true_code(marginal), betas)
        assert weight == pytest.approx(np.exp(LOG_RATIO_OF_Z), rel=1e-10)


@marginals
@mutants
def test_mutants_break_the_identity(marginal: str, mutant: Callable):
    """By far more than the z-test below needs to see them."""
    bias = expected_weight(*mutant(marginal), SCHEDULE.betas) / np.exp(LOG_RATIO_OF_Z) - 1
    assert abs(bias) > 0.02


# --- the engine meets the identity ------------------------------------------------------------

NUM_CHAINS = 2**18


@pytest.fixture
def large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 2**16)


def relative_weight(path, kernel, seed: int) -> tuple[float, float]:
    """Mean of w Z_A / Z_B, which is to be 1, and its standard error over independent chains."""
    run = anneal(path, kernel, SCHEDULE, num_chains=NUM_CHAINS, seed=seed, observers={})
    weights = np.exp(run.log_weights - LOG_RATIO_OF_Z)
    return weights.mean(), weights.std(ddof=1) / np.sqrt(NUM_CHAINS)


@marginals
def test_mean_weight_of_the_engine(marginal: str, seed: int, large_blocks: None):
    for replicate in range(3):
        mean, std_err = relative_weight(*true_code(marginal), seed + replicate)
        assert_within_mc_error(mean, 1.0, std_err)


@marginals
@mutants
def test_mean_weight_refuses_mutants(marginal: str, mutant: Callable, seed: int, large_blocks):
    """Stale beta, move before reweight, wrong sign of the base, biased coin: every seed sees it."""
    for replicate in range(3):
        mean, std_err = relative_weight(*mutant(marginal), seed + replicate)
        with pytest.raises(AssertionError, match="z = "):
            assert_within_mc_error(mean, 1.0, std_err)
        assert abs(mean - 1) > 8 * std_err  # no luck is involved


@marginals
@mutants
def test_mutants_in_the_engine_are_those_enumerated(
    marginal: str, mutant: Callable, seed: int, large_blocks: None
):
    """The engine's order of operations is that of Algorithm 1: even its mutants agree."""
    mean, std_err = relative_weight(*mutant(marginal), seed)
    expected = expected_weight(*mutant(marginal), SCHEDULE.betas) / np.exp(LOG_RATIO_OF_Z)
    assert_within_mc_error(mean, expected, std_err)


def test_independent_spins_are_annealed_without_weights_noise(seed: int):
    """From its own base, a model without weights has log w constant: log Z is exact."""
    model, log_z = independent_spins([0.5, -2.0], [1.0, -1.0, 0.5])
    path = GeometricPath(BernoulliBase.from_logits(model.visible_bias), model)
    run = anneal(path, BlockGibbs(), linear(50), num_chains=8, seed=seed)
    np.testing.assert_allclose(run.log_weights + run.log_z0, log_z, atol=1e-5)
    np.testing.assert_allclose(run.trace.ess, 8, rtol=1e-6)
