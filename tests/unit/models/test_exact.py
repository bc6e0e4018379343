"""Enumeration of one layer against an independent brute force over the joint, in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from annealz.models import exact
from annealz.models.exact import (
    exact_log_z,
    exact_marginals,
    exact_samples,
    log_probabilities,
)
from annealz.models.rbm import RBM
from annealz.testing import binary_states, independent_spins, log_joint, random_rbm

SHAPES = [(3, 7), (7, 3), (1, 1), (5, 5), (1, 12), (12, 1), (12, 12)]
ALPHA = 1e-6


def uniform_rbm(num_hidden: int, num_visible: int, seed: int) -> RBM:
    """Weights and biases up to ±3."""
    generator = np.random.default_rng(seed)
    shapes = ((num_hidden, num_visible), num_hidden, num_visible)
    return RBM(*(generator.uniform(-3, 3, shape) for shape in shapes))


@given(
    num_hidden=st.integers(1, 12), num_visible=st.integers(1, 12), seed=st.integers(0, 2**32 - 1)
)
@settings(max_examples=25)
def test_log_z_is_the_sum_over_the_joint(num_hidden: int, num_visible: int, seed: int):
    model = uniform_rbm(num_hidden, num_visible, seed)
    assert exact_log_z(model) == pytest.approx(logsumexp(log_joint(model)), rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_log_z_to_float64_rounding(shape: tuple[int, int]):
    """Both orientations: hidden fewer than visible, and visible fewer than hidden."""
    model = uniform_rbm(*shape, seed=3)
    truth = logsumexp(log_joint(model))
    assert exact_log_z(model) == pytest.approx(truth, rel=1e-12)
    transposed = RBM(model.weights.T, model.visible_bias, model.hidden_bias)
    assert exact_log_z(transposed) == pytest.approx(truth, rel=1e-12)


def test_log_z_refuses_exchanged_biases():
    """Mutant: on a square model the layers cannot be told apart by shape, only by value."""
    model = uniform_rbm(5, 5, seed=4)
    wrong = RBM(model.weights, model.visible_bias, model.hidden_bias)
    assert abs(exact_log_z(wrong) - logsumexp(log_joint(model))) > 0.1


@pytest.mark.parametrize("num_tiles_log2", [0, 2, 6])
def test_log_z_whatever_the_tile(num_tiles_log2: int, monkeypatch: pytest.MonkeyPatch):
    """Tiles that share high bits: a wrong high-bit vector would only show with several tiles."""
    model = uniform_rbm(6, 9, seed=5)
    monkeypatch.setattr(exact, "_TILE", 9 * 2 ** (6 - num_tiles_log2))
    assert exact._Layers(model).num_tiles == 2**num_tiles_log2
    joint = log_joint(model)
    assert exact_log_z(model) == pytest.approx(logsumexp(joint), rel=1e-12)
    hidden = logsumexp(joint, 1) - logsumexp(joint)
    np.testing.assert_allclose(log_probabilities(model), hidden, atol=1e-12)
    visible_means, hidden_means = exact_marginals(model)
    assert visible_means.shape == (9,)
    np.testing.assert_allclose(hidden_means, np.exp(hidden) @ binary_states(6), rtol=1e-12)


@pytest.mark.parametrize("num_other", [999, 1000, 1001, 2500])
@pytest.mark.parametrize("small_is_hidden", [True, False])
def test_many_units_in_the_other_layer(num_other: int, small_is_hidden: bool):
    """Over 1000 factors of up to 2 would overflow one product: log Z is closed form at W = 0."""
    small, other = np.array([0.3, -1.0]), np.linspace(-1e-3, 1e-3, num_other)
    model, log_z = independent_spins(*((small, other) if small_is_hidden else (other, small)))
    assert exact_log_z(model) == pytest.approx(log_z, rel=1e-12)
    coupled = random_rbm(3, num_other, scale=0.3, seed=6)
    fields = binary_states(3) @ np.float64(coupled.weights) + np.float64(coupled.visible_bias)
    truth = logsumexp(
        binary_states(3) @ np.float64(coupled.hidden_bias) + np.logaddexp(0, fields).sum(1)
    )
    if not small_is_hidden:
        coupled = RBM(coupled.weights.T, coupled.visible_bias, coupled.hidden_bias)
    assert exact_log_z(coupled) == pytest.approx(truth, rel=1e-12)


def test_large_fields_do_not_overflow():
    model = RBM(np.full((2, 3), 1e4), np.full(2, -5e3), np.full(3, 2e3))
    assert exact_log_z(model) == pytest.approx(logsumexp(log_joint(model)), rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_marginals(shape: tuple[int, int]):
    model = uniform_rbm(*shape, seed=7)
    joint = np.exp(log_joint(model) - logsumexp(log_joint(model)))
    visible_means, hidden_means = exact_marginals(model)
    np.testing.assert_allclose(visible_means, joint.sum(0) @ binary_states(shape[1]), rtol=1e-10)
    np.testing.assert_allclose(hidden_means, joint.sum(1) @ binary_states(shape[0]), rtol=1e-10)


def joint_p_value(model: RBM, visible: np.ndarray, hidden: np.ndarray) -> float:
    """Chi-square of joint samples; states of small expectation are taken together."""
    joint = log_joint(model)
    expected = np.exp(joint - logsumexp(joint)).ravel() * len(visible)
    bits = 2 ** np.arange(visible.shape[1]), 2 ** np.arange(hidden.shape[1])
    state = (hidden @ bits[1]) * 2 ** visible.shape[1] + visible @ bits[0]
    counts = np.bincount(state.astype(int), minlength=expected.size)
    rare = expected < 10
    cells = [np.append(a[~rare], a[rare].sum()) for a in (counts, expected)]
    keep = cells[1] > 0
    return float(stats.chisquare(cells[0][keep], cells[1][keep]).pvalue)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)], ids=str)
def test_samples_follow_the_joint(shape: tuple[int, int], seed: int):
    model = random_rbm(*shape, seed=8)
    visible, hidden = exact_samples(model, 200_000, seed)
    assert visible.shape == (200_000, shape[1])
    assert hidden.dtype == visible.dtype == np.float32
    assert joint_p_value(model, visible, hidden) > ALPHA


def test_samples_test_refuses_unconditional_draws(seed: int):
    """Mutants: the other layer drawn without its condition, and a biased coin."""
    model = random_rbm(3, 4, seed=8)
    visible, hidden = exact_samples(model, 200_000, seed)
    assert joint_p_value(model, visible, np.roll(hidden, 1, axis=0)) < ALPHA
    biased = np.maximum(hidden, np.random.default_rng(seed).random(hidden.shape) < 0.02)
    assert joint_p_value(model, visible, biased) < ALPHA


def test_samples_are_reproducible_from_their_seed():
    model = random_rbm(3, 4)
    first, again, other = (exact_samples(model, 50, s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    with pytest.raises(ValueError, match="num_samples"):
        exact_samples(model, 0)


def test_progress_goes_to_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exact, "_TILE", 64)
    for function in (exact_log_z, exact_marginals):
        seen: list[float] = []
        function(random_rbm(10, 11), progress=seen.append)
        assert seen[-1] == 1
        assert seen == sorted(seen)
        assert len(seen) > 2


@pytest.mark.parametrize("function", [exact_log_z, exact_marginals, log_probabilities])
def test_too_many_units_are_refused_with_their_cost(function):
    """2^26 states would take a machine's memory: the message says how many they are."""
    with pytest.raises(ValueError, match=r"at most 25 units.*26 hidden and 30 visible.*6\.7e\+07"):
        function(random_rbm(26, 30))
    with pytest.raises(ValueError, match="40 hidden and 26 visible"):
        exact_samples(random_rbm(40, 26), 1)
