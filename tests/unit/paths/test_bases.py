"""The tractable start: exact log Z, exact samples, logits from means, data or the model."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logsumexp

from annealz.bases.bernoulli import BernoulliBase, smoothed_means
from annealz.core.names import BASES
from annealz.core.random import Stream
from annealz.models.rbm import RBM
from annealz.testing import assert_within_mc_error, binary_states, random_rbm

LOGITS = np.array([-2.0, -0.3, 0.0, 1.1, 3.0])
ALPHA = 1e-6


# --- log Z and samples -----------------------------------------------------------------------


def test_log_z_is_the_sum_over_all_states():
    base = BernoulliBase.from_logits(LOGITS)
    logits = np.float64(base.logits)
    assert base.log_z == pytest.approx(logsumexp(binary_states(5) @ logits), rel=1e-14)
    assert BernoulliBase.uniform(7).log_z == pytest.approx(7 * np.log(2), rel=1e-15)


@pytest.mark.parametrize("size", [200.0, 1e5])
def test_log_z_of_saturated_units(size: float):
    assert BernoulliBase.from_logits([size, -size]).log_z == pytest.approx(size)


def draw(base: BernoulliBase, seed: int, draw: int = 0) -> np.ndarray:
    bits = Stream(seed, "bases").at(0, jnp.arange(100_000))
    return np.asarray(base.sample(bits, draw), np.float64)


def state_p_value(samples: np.ndarray) -> float:
    """Chi-square over all 2^5 states, so that dependent units would show as well."""
    states = samples @ 2 ** np.arange(5)
    counts = np.bincount(states.astype(int), minlength=32)
    probabilities = np.exp(binary_states(5) @ LOGITS - np.logaddexp(0, LOGITS).sum())
    return float(stats.chisquare(counts, probabilities * len(samples)).pvalue)


def test_samples_follow_the_base(seed: int):
    samples = draw(BernoulliBase.from_logits(LOGITS), seed)
    assert samples.shape == (100_000, 5)
    assert state_p_value(samples) > ALPHA
    means = expit(LOGITS)
    std_err = np.sqrt(means * (1 - means) / len(samples))
    assert_within_mc_error(samples.mean(0), means, std_err)


def test_samples_test_refuses_other_bases(seed: int):
    """Mutants: the wrong sign, a biased coin, and units that share their bits."""
    assert state_p_value(draw(BernoulliBase.from_logits(-LOGITS), seed)) < ALPHA
    assert state_p_value(draw(BernoulliBase.from_logits(LOGITS + 0.1), seed)) < ALPHA
    uniforms = np.random.default_rng(seed).random((100_000, 1))
    assert state_p_value((uniforms < expit(LOGITS)).astype(float)) < ALPHA


def test_draws_differ(seed: int):
    base = BernoulliBase.uniform(5)
    assert not np.array_equal(draw(base, seed), draw(base, seed, draw=1))


# --- where the logits come from --------------------------------------------------------------


def test_means_become_logits():
    means = [0.01, 0.5, 0.97]
    np.testing.assert_allclose(expit(BernoulliBase.from_means(means).logits), means, rtol=1e-6)


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1, 1.5, np.nan])
def test_means_at_the_ends_are_refused_with_their_place(wrong: float):
    with pytest.raises(ValueError, match=r"strictly between 0 and 1.*at unit 2 \(1 of 4\).*smooth"):
        BernoulliBase.from_means([0.5, 0.5, wrong, 0.5])


@pytest.mark.parametrize("shape", [(2, 3), (0,), ()])
def test_means_of_another_shape_are_refused(shape: tuple):
    with pytest.raises(ValueError, match="base means must be a vector"):
        BernoulliBase.from_means(np.full(shape, 0.5))


@pytest.mark.parametrize("logits", [[[1.0]], [np.nan], [np.inf, 0], 1.0])
def test_wrong_logits_are_refused(logits):
    with pytest.raises(ValueError, match="base logits must be a finite vector"):
        BernoulliBase.from_logits(logits)


def test_smoothing_is_laplaces_rule():
    data = np.array([[0, 1, 1], [0, 1, 0], [0, 1, 0.5]])
    np.testing.assert_allclose(smoothed_means(data), [1 / 5, 4 / 5, 2.5 / 5])
    np.testing.assert_allclose(smoothed_means(data, 0.5), [0.5 / 4, 3.5 / 4, 2 / 4])
    base = BernoulliBase.from_data(data)
    np.testing.assert_allclose(expit(base.logits), [1 / 5, 4 / 5, 2.5 / 5], rtol=1e-6)
    assert base.name == "base-rate"


@given(st.integers(1, 10_000), st.sampled_from((0.0, 1.0)))
def test_smoothed_means_are_inside(rows: int, value: float):
    """A unit that is never (or always) on still gets a finite logit."""
    base = BernoulliBase.from_data(np.full((rows, 2), value))
    assert np.isfinite(base.logits).all()


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (np.ones(3), {}, r"\(rows, units\) matrix, got shape \(3,\)"),
        (np.ones((0, 3)), {}, r"got shape \(0, 3\)"),
        (np.full((2, 3), 255), {}, r"data must lie in \[0, 1\]"),
        (np.full((2, 3), np.nan), {}, r"data must lie in \[0, 1\]"),
        (np.ones((2, 3)), {"pseudo_counts": 0}, "pseudo_counts must be positive"),
        (np.ones((2, 3)), {"pseudo_counts": np.nan}, "pseudo_counts must be positive"),
    ],
)
def test_wrong_data_are_refused(data, options: dict, words: str):
    with pytest.raises(ValueError, match=words):
        smoothed_means(data, **options)


# --- by name ---------------------------------------------------------------------------------


@pytest.fixture
def model() -> RBM:
    plain = random_rbm(3, 5, seed=2)
    return RBM(plain.weights, plain.hidden_bias, plain.visible_bias, np.linspace(0.1, 0.9, 5))


@pytest.fixture
def bare() -> RBM:
    return random_rbm(3, 5, seed=2)


def test_names_give_their_base(model: RBM, bare: RBM):
    np.testing.assert_array_equal(model.choose_base("uniform").logits, np.zeros(5))
    np.testing.assert_array_equal(model.choose_base("visible-bias").logits, model.visible_bias)
    rate = expit(model.choose_base("base-rate").logits)
    np.testing.assert_allclose(rate, model.visible_means, rtol=1e-5)
    for name in set(BASES) - {"auto", "fitted"}:
        assert model.choose_base(name).name == name
    with pytest.raises(ValueError, match="found by pilots"):
        model.choose_base("fitted")


def test_auto_is_the_base_rate_where_it_is_known(model: RBM, bare: RBM):
    assert model.choose_base().name == "base-rate"
    assert bare.choose_base().name == "visible-bias"
    assert bare.choose_base(data=np.eye(5)).name == "base-rate"


def test_data_go_before_stored_means(model: RBM):
    from_rows = model.choose_base(data=np.eye(5))
    np.testing.assert_allclose(expit(from_rows.logits), np.full(5, 2 / 7), rtol=1e-6)
    stored = RBM(model.weights, model.hidden_bias, model.visible_bias, [0.0, 1.0, 0.5, 0.5, 0.5])
    assert 0 < expit(stored.choose_base().logits).min() < 1e-2  # smoothed, as means given as data
    from_means = model.choose_base("base-rate", data=np.full(5, 0.2))
    np.testing.assert_allclose(expit(from_means.logits), np.full(5, 0.2), rtol=1e-6)


def test_a_base_passes_through(model: RBM):
    base = BernoulliBase.uniform(5)
    assert model.choose_base(base) is base
    with pytest.raises(ValueError, match="a base is given"):
        model.choose_base(base, data=np.full(5, 0.5))


def test_refusals_by_name(model: RBM, bare: RBM):
    with pytest.raises(ValueError, match="base must be one of auto, base-rate, .* got 'normal'"):
        model.choose_base("normal")
    with pytest.raises(ValueError, match="needs the training data.*visible-bias or uniform"):
        bare.choose_base("base-rate")
    with pytest.raises(
        ValueError, match="data serve the base-rate base only, and the base is uniform"
    ):
        model.choose_base("uniform", data=np.eye(5))
    with pytest.raises(ValueError, match=r"5 visible units.*\(rows, 5\) or \(5,\), got \(3, 4\)"):
        model.choose_base(data=np.ones((3, 4)))
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        model.choose_base(data=np.full(5, 1.2))
    smoothed = model.choose_base(data=np.ones(5))
    np.testing.assert_allclose(expit(smoothed.logits), 1001 / 1002, rtol=1e-5)
