"""The geometric path, both marginals, against enumeration of p_A^(1-beta) p_B^beta on the joint."""

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logsumexp

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.arrays import indices
from annealz.core.names import MARGINALS
from annealz.core.random import Stream
from annealz.models.exact import exact_log_z
from annealz.paths.abstract import AbstractPath
from annealz.paths.geometric import GeometricPath
from annealz.testing import binary_states, independent_spins, log_joint, random_rbm
from support.values import log_density, log_ratio, sample, slope

MODEL = random_rbm(3, 5, scale=1.5, seed=1)
BASE = BernoulliBase.from_logits([0.4, -1.3, 2.0, -0.2, 0.9])
BETAS = [0.0, 1e-6, 0.1, 0.5, 0.93, 1.0]
PATHS = {marginal: GeometricPath(BASE, MODEL, marginal) for marginal in MARGINALS}
STATES = {"visible": np.float32(binary_states(5)), "hidden": np.float32(binary_states(3))}
ALPHA = 1e-6

marginals = pytest.mark.parametrize("marginal", MARGINALS)


def joint_at(beta: float) -> np.ndarray:
    """log p*_beta(h, v) of every joint state, float64 (2^hidden, 2^visible)."""
    base = STATES["visible"] @ np.float64(BASE.logits)
    return (1 - beta) * base + beta * log_joint(MODEL)


def log_density_at(marginal: str, beta: float) -> np.ndarray:
    return logsumexp(joint_at(beta), axis=0 if marginal == "visible" else 1)


# --- densities -------------------------------------------------------------------------------


@marginals
@pytest.mark.parametrize("beta", BETAS)
def test_density_sums_the_joint(marginal: str, beta: float):
    density = log_density(PATHS[marginal], STATES[marginal], beta)
    np.testing.assert_allclose(density, log_density_at(marginal, beta), atol=2e-5)


@marginals
def test_the_ends_are_base_and_model(marginal: str):
    states, path = STATES[marginal], PATHS[marginal]
    model_density = MODEL.log_density if marginal == "visible" else MODEL.log_density_hidden
    found = log_density(path, states, 1.0)
    np.testing.assert_allclose(found, eqx.filter_jit(model_density)(states), atol=2e-5)
    if marginal == "visible":
        base = states @ np.float64(BASE.logits) + 3 * np.log(2)  # each hidden unit is worth log 2
    else:
        base = np.full(len(states), BASE.log_z)
    np.testing.assert_allclose(log_density(path, states, 0.0), base, atol=2e-5)


@marginals
def test_log_z0_is_the_normaliser_at_the_start(marginal: str):
    assert PATHS[marginal].log_z0 == pytest.approx(logsumexp(joint_at(0.0)), rel=1e-12)
    assert PATHS[marginal].log_z0 == pytest.approx(BASE.log_z + 3 * np.log(2), rel=1e-12)


@marginals
def test_the_normaliser_at_the_end_is_the_models(marginal: str):
    density = log_density(PATHS[marginal], STATES[marginal], 1.0)
    assert logsumexp(density) == pytest.approx(exact_log_z(MODEL), abs=1e-5)


def test_density_refuses_a_wrong_sign_of_the_base():
    """Mutant: between the ends, the base must enter with its own sign."""
    wrong = GeometricPath(BernoulliBase.from_logits(-BASE.logits), MODEL)
    error = np.abs(log_density(wrong, STATES["visible"], 0.5) - log_density_at("visible", 0.5))
    assert error.max() > 0.1


@marginals
@pytest.mark.parametrize("beta", BETAS)
def test_conditionals_are_those_of_the_joint(marginal: str, beta: float):
    joint = np.exp(joint_at(beta))
    if marginal == "hidden":
        joint = joint.T  # (latent states, states)
    other = "hidden" if marginal == "visible" else "visible"
    states, latent = STATES[marginal], STATES[other]
    of_latent = (latent.T @ joint / joint.sum(0)).T
    of_states = joint @ states / joint.sum(1, keepdims=True)
    path = PATHS[marginal]
    found = np.float64(_latent_logits(path, states, np.float32(beta)))
    np.testing.assert_allclose(expit(found), of_latent, atol=1e-6)
    found = np.float64(_state_logits(path, latent, np.float32(beta)))
    np.testing.assert_allclose(expit(found), of_states, atol=1e-6)


# --- increments ------------------------------------------------------------------------------

_ratio = jax.jit(lambda path, x, beta0, beta1: path.log_ratio(x, beta0, beta1))
_latent_logits = jax.jit(lambda path, x, beta: path.latent_logits(x, beta))
_state_logits = jax.jit(lambda path, latent, beta: path.state_logits(latent, beta))
_derivative = jax.jit(AbstractPath.slope)


def ratio_error(marginal: str, beta0: float, beta1: float, ratio=_ratio) -> float:
    """Largest error of the increment over all states, as a slope: divided by the step."""
    low, high = np.float32(beta0), np.float32(beta1)
    value = np.float64(ratio(PATHS[marginal], STATES[marginal], low, high))
    truth = log_density_at(marginal, float(high)) - log_density_at(marginal, float(low))
    return float(np.abs(value - truth).max() / abs(float(high) - float(low)))


@marginals
@pytest.mark.parametrize("step", [1e-6, 1e-5, 1e-3, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("start", [0.0, 0.3, 0.9])
def test_increments_at_tiny_and_huge_steps(marginal: str, step: float, start: float):
    """The error stays a few roundings of the step itself, however small the step."""
    assert ratio_error(marginal, start, min(start + step, 1.0)) < 2e-5
    assert ratio_error(marginal, min(start + step, 1.0), start) < 2e-5


@given(
    marginal=st.sampled_from(MARGINALS),
    betas=st.tuples(st.floats(0, 1, width=32), st.floats(0, 1, width=32)).filter(
        lambda pair: abs(pair[0] - pair[1]) > 1e-6
    ),
)
def test_increments_between_any_betas(marginal: str, betas: tuple[float, float]):
    assert ratio_error(marginal, *betas) < 2e-5


@marginals
def test_a_difference_of_densities_would_lose_the_digits(marginal: str):
    """Mutant: what log_ratio must never be."""

    def plain(path, x, beta0, beta1):
        return path.log_density(x, beta1) - path.log_density(x, beta0)

    assert ratio_error(marginal, 0.9, 0.9 + 1e-5, jax.jit(plain)) > 1e-3


@marginals
def test_increments_of_a_trained_size(marginal: str, seed: int):
    """50 x 784 units with fields of tens: the float64 difference is met to 1e-6 of its terms."""
    model = random_rbm(50, 784, scale=0.3, seed=2)
    base = BernoulliBase.from_means(np.linspace(0.01, 0.9, 784))
    path = GeometricPath(base, model, marginal)
    x = np.random.default_rng(seed).random((16, path.state_bias.shape[0])) < 0.3
    latent_bias, drive = np.float64(path.latent_bias), np.float64(path.to_latent.matrix)
    product = x @ drive
    fields = product[:, :-1] + np.float64(path.latent_bias_change)
    for beta0, beta1 in ((0.5, 0.50001), (0.0, 1.0), (0.99, 1.0)):
        low, high = (float(np.float32(beta)) for beta in (beta0, beta1))
        truth = (high - low) * product[:, -1] + (
            np.logaddexp(0, latent_bias + high * fields)
            - np.logaddexp(0, latent_bias + low * fields)
        ).sum(1)
        value = _ratio(path, np.float32(x), np.float32(low), np.float32(high))
        scale = (high - low) * (np.abs(fields).sum(1) + x @ np.abs(drive[:, -1]))
        assert (np.abs(value - truth) < 1e-6 * scale).all()


# --- slope -----------------------------------------------------------------------------------


@marginals
@pytest.mark.parametrize("beta", BETAS)
def test_slope_is_the_derivative(marginal: str, beta: float):
    """Against forward-mode differentiation, and finite differences in float64."""
    path, states = PATHS[marginal], STATES[marginal]
    found = slope(path, states, beta)
    derivative = _derivative(path, states, np.float32(beta))
    np.testing.assert_allclose(found, derivative, atol=2e-5)
    step = 1e-5
    above, below = (log_density_at(marginal, beta + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(found, (above - below) / (2 * step), atol=3e-5)


@marginals
def test_slope_refuses_a_stale_beta(marginal: str):
    """Mutant: the slope at another beta is another number."""
    path, states = PATHS[marginal], STATES[marginal]
    stale = slope(path, states, 0.4) - _derivative(path, states, np.float32(0.5))
    assert np.abs(stale).max() > 1e-2


# --- samples, small cases, refusals ------------------------------------------------------------


def start_p_value(marginal: str, samples: np.ndarray) -> float:
    log_law = log_density_at(marginal, 0.0)
    expected = np.exp(log_law - logsumexp(log_law)) * len(samples)
    index = (samples @ 2 ** np.arange(samples.shape[1])).astype(int)
    return float(stats.chisquare(np.bincount(index, minlength=expected.size), expected).pvalue)


@marginals
def test_samples_follow_the_start(marginal: str, seed: int):
    samples = np.asarray(sample(PATHS[marginal], Stream(seed, "test").at(0, indices(100_000))))
    assert start_p_value(marginal, samples) > ALPHA
    biased = np.maximum(samples, np.random.default_rng(seed).random(samples.shape) < 0.02)
    assert start_p_value(marginal, biased) < ALPHA  # mutant


@marginals
def test_a_path_to_its_own_base_has_no_slope(marginal: str):
    """The same independent spins at both ends: nothing to anneal."""
    model, log_z = independent_spins([0.0, 0.0], [0.5, -1.0, 2.0])
    path = GeometricPath(BernoulliBase.from_logits(model.visible_bias), model, marginal)
    states = np.float32(binary_states(path.state_bias.shape[0]))
    np.testing.assert_array_equal(slope(path, states, 0.7), 0)
    np.testing.assert_array_equal(log_ratio(path, states, 0.2, 0.7), 0)
    assert path.log_z0 == pytest.approx(log_z, rel=1e-12)


def test_other_marginals_are_refused():
    with pytest.raises(ValueError, match="marginal must be one of visible, hidden, got 'joint'"):
        GeometricPath(BASE, MODEL, "joint")


@marginals
@pytest.mark.parametrize("num_units", [1, 4])
def test_a_base_of_another_size_is_refused(marginal: str, num_units: int):
    """A base of one unit would broadcast: with the hidden marginal, into a wrong log Z."""
    with pytest.raises(ValueError, match="units"):
        GeometricPath(BernoulliBase.uniform(num_units), MODEL, marginal)
