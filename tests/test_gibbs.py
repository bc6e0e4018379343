"""Block Gibbs leaves p_beta invariant: by enumeration, and by chi-square from exact samples.

The transition matrix of a kernel is enumerated by running the kernel itself on coins whose
outcomes are prescribed, in float64. The mutants here serve test_anneal.py as well.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from annealz.bases import BernoulliBase
from annealz.kernels import AbstractKernel, BlockGibbs
from annealz.models.rbm import RBM
from annealz.names import MARGINALS
from annealz.paths import GeometricPath
from annealz.random import Stream
from annealz.testing import binary_states, log_joint, random_rbm

BETAS = (0.0, 0.35, 0.8, 1.0)
ALPHA = 1e-6
NUM_SAMPLES = 2**18

marginals = pytest.mark.parametrize("marginal", MARGINALS)


def exact_in_float32(model: RBM) -> RBM:
    """The same with parameters of few bits: their differences and sums are exact in float32."""
    return RBM(*(np.round(np.float64(a) * 256) / 256 for a in parameters(model)))


def parameters(model: RBM) -> tuple[jax.Array, ...]:
    return model.weights, model.hidden_bias, model.visible_bias


MODEL = exact_in_float32(random_rbm(3, 4, scale=1.3, seed=5))
BASE = BernoulliBase.from_logits([0.5, -1.25, 1.75, -0.5])
PATHS = {marginal: GeometricPath(BASE, MODEL, marginal) for marginal in MARGINALS}


# --- mutants ---------------------------------------------------------------------------------


class StaleGibbs(AbstractKernel):
    """Mutant: moves with the previous beta of the schedule."""

    betas: jax.Array
    shift: int = -1

    def step(self, bits, x, path, beta):
        here = jnp.argmin(jnp.abs(self.betas - beta))
        other = self.betas[jnp.clip(here + self.shift, 0, self.betas.size - 1)]
        return BlockGibbs().step(bits, x, path, other)


class BiasedGibbs(AbstractKernel):
    """Mutant: the coin of the latent layer favours heads."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(x, beta) + 0.4, draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=1)


class SharedGibbs(AbstractKernel):
    """Mutant: both layers are drawn with the same random words."""

    def step(self, bits, x, path, beta):
        latent = bits.bernoulli(path.latent_logits(x, beta), draw=0)
        return bits.bernoulli(path.state_logits(latent, beta), draw=0)


def kernel_name(kernel: AbstractKernel) -> str:
    return type(kernel).__name__


# --- enumeration -----------------------------------------------------------------------------


class ScriptedBits:
    """Coins with prescribed outcomes, one row a script; what comes out is their probability."""

    def __init__(self, outcomes: dict[int, np.ndarray]):
        self.outcomes = outcomes
        self.num_chains = len(next(iter(outcomes.values())))
        self.log_probability = np.zeros(self.num_chains)
        self.used: set[int] = set()

    def bernoulli(self, logits, draw: int) -> np.ndarray:
        assert draw not in self.used
        self.used.add(draw)
        outcome = self.outcomes[draw]
        surprise = np.logaddexp(0, np.where(outcome == 1, -1, 1) * np.float64(logits))
        self.log_probability = self.log_probability - surprise.sum(-1)
        return outcome


def scripts(*sizes: int) -> list[np.ndarray]:
    """Every combination of states of layers of these sizes, the first layer slowest."""
    states = [binary_states(size) for size in sizes]
    index = np.array(list(itertools.product(*(range(len(s)) for s in states))))
    return [s[index[:, i]] for i, s in enumerate(states)]


def state_index(states) -> np.ndarray:
    states = np.asarray(states)
    return (states @ 2 ** np.arange(states.shape[-1])).astype(int)


def in_float64(tree):
    """The same pytree in float64; call it with x64 enabled."""
    return jax.tree.map(lambda a: jnp.asarray(np.float64(a)), tree)


def transition_matrix(kernel: AbstractKernel, path: GeometricPath, beta: float) -> np.ndarray:
    """T[x, y] = p(y | x) of one step, by running the kernel over all scripts, in float64."""
    num_latent, num_units = path.to_state.shape
    x, latent, y = scripts(num_units, num_latent, num_units)
    bits = ScriptedBits({0: latent, 1: y})
    with jax.enable_x64(True):
        np.testing.assert_array_equal(kernel.step(bits, x, in_float64(path), beta), y)
    probabilities = np.exp(bits.log_probability)
    return probabilities.reshape(2**num_units, 2**num_latent, 2**num_units).sum(1)


def law_at(marginal: str, beta: float) -> np.ndarray:
    """p_beta of every state, from the joint, float64."""
    base = binary_states(4) @ np.float64(BASE.logits)
    joint = (1 - beta) * base + beta * log_joint(MODEL)
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
