"""Block Gibbs leaves p_beta invariant: by enumeration, and by chi-square from exact samples.

The transition matrix of a kernel is enumerated by running the kernel itself on coins whose
outcomes are prescribed, in float64. The mutants here serve test_anneal.py as well.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from annealz.core.names import MARGINALS
from annealz.core.random import Stream
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.testing import binary_states, log_joint
from support.enumeration import state_index, transition_matrix
from support.kernels import BiasedGibbs, SharedGibbs, StaleGibbs, kernel_name
from support.systems import TINY, TINY_BASE, marginals

BETAS = (0.0, 0.35, 0.8, 1.0)
ALPHA = 1e-6
NUM_SAMPLES = 2**18


PATHS = {marginal: GeometricPath(TINY_BASE, TINY, marginal) for marginal in MARGINALS}


# --- mutants ---------------------------------------------------------------------------------


# --- enumeration -----------------------------------------------------------------------------


def law_at(marginal: str, beta: float) -> np.ndarray:
    """p_beta of every state, from the joint, float64."""
    base = binary_states(4) @ np.float64(TINY_BASE.logits)
    joint = (1 - beta) * base + beta * log_joint(TINY)
    return np.exp(logsumexp(joint, axis=0 if marginal == "visible" else 1) - logsumexp(joint))


@marginals
@pytest.mark.parametrize("beta", BETAS)
def test_the_law_is_invariant_exactly(marginal: str, beta: float):
    """p T = p, rows sum to one, and the chain on states is reversible."""
    matrix, law = transition_matrix(BlockGibbs(), PATHS[marginal], beta), law_at(marginal, beta)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(law @ matrix, law, atol=1e-12)
    flow = law[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


@marginals
@pytest.mark.parametrize("beta", BETAS[1:])
@pytest.mark.parametrize("mutant", [StaleGibbs(jnp.array(BETAS)), BiasedGibbs()], ids=kernel_name)
def test_mutants_have_another_law(marginal: str, beta: float, mutant: AbstractKernel):
    """Mutants: stale beta, biased coin."""
    matrix, law = transition_matrix(mutant, PATHS[marginal], beta), law_at(marginal, beta)
    assert np.abs(law @ matrix - law).max() > 1e-3


def test_the_last_move_matters_at_beta_0():
    """At beta = 0 the layers are independent: one step forgets the state."""
    for path in PATHS.values():
        matrix = transition_matrix(BlockGibbs(), path, 0.0)
        np.testing.assert_allclose(matrix, np.broadcast_to(matrix[0], matrix.shape), atol=1e-12)


# --- samples ---------------------------------------------------------------------------------

_step = jax.jit(lambda kernel, bits, x, path, beta: kernel.step(bits, x, path, beta))


def moved_p_value(kernel: AbstractKernel, marginal: str, beta: float, seed: int) -> float:
    """Chi-square of the states after one step from exact samples: no mixing time enters."""
    law = law_at(marginal, beta)
    num_units = law.size.bit_length() - 1
    drawn = np.random.default_rng(seed).choice(law.size, NUM_SAMPLES, p=law / law.sum())
    x = jnp.asarray(binary_states(num_units)[drawn], jnp.float32)
    bits = Stream(seed, "invariance").at(3, jnp.arange(NUM_SAMPLES))
    moved = _step(kernel, bits, x, PATHS[marginal], jnp.float32(beta))
    counts = np.bincount(state_index(moved), minlength=law.size)
    return float(stats.chisquare(counts, law / law.sum() * NUM_SAMPLES).pvalue)


@marginals
@pytest.mark.parametrize("beta", BETAS)
def test_samples_stay_exact(marginal: str, beta: float, seed: int):
    assert moved_p_value(BlockGibbs(), marginal, beta, seed) > ALPHA


@marginals
@pytest.mark.parametrize("beta", BETAS[1:])
@pytest.mark.parametrize(
    "mutant", [StaleGibbs(jnp.array(BETAS)), BiasedGibbs(), SharedGibbs()], ids=kernel_name
)
def test_samples_of_mutants_do_not(marginal: str, beta: float, mutant: AbstractKernel, seed: int):
    """Mutants: stale beta, biased coin, shared random words."""
    assert moved_p_value(mutant, marginal, beta, seed) < ALPHA


def test_a_step_is_a_function_of_its_bits(seed: int):
    """The same bits give the same move, whatever the other chains in the block."""
    path = PATHS["visible"]
    x = path.sample(Stream(seed, "a").at(0, jnp.arange(64)))
    whole = _step(BlockGibbs(), Stream(seed, "a").at(1, jnp.arange(64)), x, path, 0.7)
    some = 10 + jnp.arange(5)
    part = _step(BlockGibbs(), Stream(seed, "a").at(1, some), x[some], path, 0.7)
    np.testing.assert_array_equal(part, whole[some])
    other = _step(BlockGibbs(), Stream(seed, "a").at(2, jnp.arange(64)), x, path, 0.7)
    assert not np.array_equal(other, whole)
