"""Estimators are functions of weights alone: no simulation here."""

import numpy as np
import pytest

from annealz.core.weights import (
    bootstrap_interval,
    delta_interval,
    delta_std_err,
    draw_independent,
    effective_sample_size,
    foretold_sample_size,
    log_mean,
)


def test_small_set_by_hand():
    log_weights = np.log([1.0, 2.0, 3.0])
    assert log_mean(log_weights) == pytest.approx(np.log(2.0), abs=1e-14)
    assert effective_sample_size(log_weights) == pytest.approx(36 / 14, abs=1e-12)
    normalised = np.array([1.0, 2.0, 3.0]) * 3 / 6
    assert effective_sample_size(log_weights) == pytest.approx(3 / (1 + normalised.var()))
    assert delta_std_err(log_weights) == pytest.approx(np.sqrt(14 / 36 - 1 / 3))


@pytest.mark.parametrize("shift", [-1e4, 700.0, 1e5])
def test_a_constant_factor_moves_the_mean_and_nothing_else(shift: float):
    log_weights = np.random.default_rng(0).normal(size=50)
    moved = log_weights + shift
    assert log_mean(moved) - shift == pytest.approx(log_mean(log_weights), abs=1e-9)
    assert effective_sample_size(moved) == pytest.approx(effective_sample_size(log_weights))
    assert delta_std_err(moved) == pytest.approx(delta_std_err(log_weights))
    for interval in (delta_interval, bootstrap_interval):
        assert np.subtract(interval(moved), shift) == pytest.approx(interval(log_weights), abs=1e-9)


def test_equal_weights_have_no_error_and_one_chain_has_no_known_one():
    assert delta_std_err(np.full(10, 3.0)) == 0
    assert bootstrap_interval(np.full(10, 3.0)) == pytest.approx((3.0, 3.0))
    assert delta_std_err(np.zeros(1)) == np.inf
    assert bootstrap_interval(np.zeros(1)) == (-np.inf, np.inf)
    assert bootstrap_interval(np.array([0.0, 1.0, 2.0])) == (-np.inf, np.inf)
    low, high = bootstrap_interval(np.array([0.0] * 9 + [3.0]))
    assert -5 < low < high < 50


def _coverage(interval, sigma: float, num_chains: int, repeats: int) -> tuple[int, int]:
    """How often the interval holds the truth 0 of log-normal weights, and a number of trials."""
    generator = np.random.default_rng(7)
    draws = generator.normal(-(sigma**2) / 2, sigma, (repeats, num_chains))
    return sum(low < 0 < high for low, high in map(interval, draws)), repeats


def test_intervals_cover_light_tails():
    """At level 0.95, 400 intervals: a binomial count below 360 or above 396 has p < 1e-5."""
    for interval in (delta_interval, bootstrap_interval):
        hits, _ = _coverage(interval, 0.7, 500, 400)
        assert 360 <= hits <= 396


def test_bootstrap_reaches_where_the_delta_method_does_not():
    """Heavy tails: the normal interval misses the truth far more often than the bootstrap's."""
    delta, repeats = _coverage(delta_interval, 2.5, 200, 300)
    bootstrap, _ = _coverage(bootstrap_interval, 2.5, 200, 300)
    assert bootstrap > delta + 0.05 * repeats


def test_bootstrap_is_reproducible_and_nested():
    log_weights = np.random.default_rng(1).normal(0, 1.5, 300)
    assert bootstrap_interval(log_weights) == bootstrap_interval(log_weights)
    inner, outer = bootstrap_interval(log_weights, 0.5), bootstrap_interval(log_weights, 0.99)
    assert outer[0] < inner[0] < log_mean(log_weights) < inner[1] < outer[1]


@pytest.mark.parametrize("variance", [0.5, 2.0])
def test_foretold_sample_size_of_log_normal_weights(variance: float):
    """N e^-variance, whatever the factor; less misled than the ESS where the largest are missing."""
    log_weights = np.random.default_rng(2).normal(3e4, variance**0.5, 20_000)
    expected = 20_000 * np.exp(-variance)
    assert foretold_sample_size(log_weights) == pytest.approx(expected, rel=0.1)
    cut = np.sort(log_weights)[:-20]
    foretold = foretold_sample_size(cut) / foretold_sample_size(log_weights)
    assert foretold < effective_sample_size(cut) / effective_sample_size(log_weights)
    assert foretold_sample_size(np.full(7, 2.0)) == 7


def test_upper_side_takes_the_larger_error():
    log_weights = np.random.default_rng(1).normal(0, 1, 300)
    low, high = bootstrap_interval(log_weights)
    std_err, centre = delta_std_err(log_weights), log_mean(log_weights)
    assert bootstrap_interval(log_weights, upper_std_err=std_err / 2) == (low, high)
    wide = bootstrap_interval(log_weights, upper_std_err=2 * std_err)
    assert wide == pytest.approx((low, centre + 2 * (high - centre)))


def test_independent_draws_follow_the_weights(seed: int):
    """Counts of 60,000 draws within 5 standard deviations; a state without weight is never drawn."""
    weights = np.array([0.0, 3.0, 0.5, 0.0, 6.5, 0.0])
    drawn = draw_independent(weights, np.random.default_rng(seed), 60_000)
    shares = weights / weights.sum()
    counts = np.bincount(drawn, minlength=weights.size)
    assert (counts[weights == 0] == 0).all()
    bound = 5 * np.sqrt(60_000 * shares * (1 - shares))
    assert (np.abs(counts - 60_000 * shares) <= bound).all()
    again = draw_independent(8 * weights, np.random.default_rng(seed), 60_000)
    assert np.array_equal(drawn, again)
