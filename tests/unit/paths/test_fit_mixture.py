"""Mixtures fitted to draws: how many components, where, of which weight."""

import numpy as np
import pytest
from scipy.special import expit

from annealz.bases.fit_mixture import _COMMON, fit_mixture
from annealz.bases.mixture import MixtureBase
from annealz.core.units import BernoulliUnits, GaussianUnits, SoftmaxUnits
from annealz.testing import assert_within_mc_error

UNITS = BernoulliUnits()
SIZE = 600


def equal(draws: np.ndarray) -> np.ndarray:
    return np.full(len(draws), 1 / len(draws))


def two_clusters(seed: int, share: float = 0.3, size: int = SIZE, units: int = 12) -> np.ndarray:
    """Mostly zeros with this share, else mostly ones; the first unit is the other way round."""
    generator = np.random.default_rng(seed)
    is_first = np.arange(size) < round(share * size)
    means = np.where(is_first[:, None], 0.1, 0.9) * np.ones(units)
    means[:, 0] = 1 - means[:, 0]
    return (generator.random((size, units)) < means).astype(np.float32)


def by_weight(base: MixtureBase) -> tuple[np.ndarray, np.ndarray]:
    """Weights and means but for the common component, which comes first."""
    order = 1 + np.argsort(base.weights[1:])
    return base.weights[order], base.means[order]


def test_two_clusters_are_two_components_and_the_common_one(seed: int):
    draws = two_clusters(seed)
    base = fit_mixture(UNITS, draws, equal(draws), seed=seed, name="fitted")
    assert (base.num_components, base.num_units, base.name) == (3, 12, "fitted")
    assert base.weights[0] == pytest.approx(_COMMON, abs=1e-6)
    shares, means = by_weight(base)
    np.testing.assert_allclose(
        shares, (1 - _COMMON) * np.array([0.3, 0.7]), atol=0.01
    )  # of 600 draws, and 1 more each
    rest = np.array([0.1, 0.9])[:, None]
    truth = np.where(np.arange(12) == 0, 1 - rest, rest)
    pulled = 32 / (32 + SIZE * 0.3)  # towards the common mean, at most
    assert np.abs(means - truth).max() < 0.5 * pulled + 5 * np.sqrt(0.09 / (0.3 * SIZE))
    np.testing.assert_allclose(base.means[0], (draws.sum(0) + 1) / (SIZE + 2), atol=1e-5)


def test_a_mixture_describes_two_clusters_better_than_a_product(seed: int):
    draws, fresh = two_clusters(seed), two_clusters(seed + 1)
    base = fit_mixture(UNITS, draws, equal(draws), seed=seed)
    product = MixtureBase.from_means(((draws.sum(0) + 1) / (SIZE + 2))[None])
    gain = np.float64(base.log_density(fresh)) - np.float64(product.log_density(fresh))
    assert gain.mean() > 2


def test_one_cluster_is_one_component(seed: int):
    generator = np.random.default_rng(seed)
    means = np.linspace(0.05, 0.9, 12)
    draws = (generator.random((SIZE, 12)) < means).astype(np.float32)
    base = fit_mixture(UNITS, draws, equal(draws), seed=seed)
    assert base.num_components == 1
    assert base.weights.tolist() == [1.0]
    smoothed = (draws.sum(0) + 1) / (SIZE + 2)
    error = np.sqrt(means * (1 - means) / SIZE)
    assert_within_mc_error(base.means[0], means, error + np.abs(smoothed - draws.mean(0)))


def test_the_weights_of_draws_count(seed: int):
    """As many draws of either cluster, those of one three times as heavy."""
    draws = two_clusters(seed, 0.5)
    weights = np.where(np.arange(SIZE) < SIZE // 2, 3.0, 1.0)
    shares, means = by_weight(fit_mixture(UNITS, draws, weights, seed=seed))
    np.testing.assert_allclose(shares, [(1 - _COMMON) * 0.25, (1 - _COMMON) * 0.75], atol=0.015)
    assert means[1, 1] < 0.3 < 0.7 < means[0, 1]  # the heavy ones are mostly zeros
    scaled = fit_mixture(UNITS, draws, weights / weights.sum(), seed=seed)
    assert scaled.digest == fit_mixture(UNITS, draws, weights, seed=seed).digest


def test_draws_without_weight_do_not_count(seed: int):
    draws = two_clusters(seed, 0.5)
    weights = np.where(np.arange(SIZE) < SIZE // 2, 1.0, 0.0)
    base = fit_mixture(UNITS, draws, weights, seed=seed)
    assert base.num_components == 1
    assert (base.means[0, 1:] < 0.3).all()


def test_units_of_several_states(seed: int):
    generator = np.random.default_rng(seed)
    is_first = np.arange(SIZE) < SIZE // 3
    draws = np.where(is_first[:, None], 0, 2) * np.ones((SIZE, 8))
    noise = generator.random(draws.shape) < 0.15
    draws = np.where(noise, generator.integers(0, 3, draws.shape), draws).astype(np.float32)
    base = fit_mixture(SoftmaxUnits(3), draws, equal(draws), seed=seed)
    assert (base.num_components, base.num_units) == (3, 8)
    shares, means = by_weight(base)
    np.testing.assert_allclose(shares, [(1 - _COMMON) / 3, (1 - _COMMON) * 2 / 3], atol=0.01)
    np.testing.assert_allclose(means.sum(-1), 1, atol=1e-5)
    assert (means[0].argmax(-1) == 0).all()
    assert (means[1].argmax(-1) == 2).all()


def test_real_units(seed: int):
    generator = np.random.default_rng(seed)
    scale = np.array([0.5, 1.0, 2.0, 1.5])
    centres = np.where(np.arange(SIZE)[:, None] < SIZE // 4, -5 * scale, 3 * scale)
    draws = generator.normal(centres, scale).astype(np.float32)
    base = fit_mixture(GaussianUnits(scale.astype(np.float32)), draws, equal(draws), seed=seed)
    assert base.num_components == 3
    shares, means = by_weight(base)
    np.testing.assert_allclose(shares, [(1 - _COMMON) * 0.25, (1 - _COMMON) * 0.75], atol=0.01)
    assert (means[0] < -2 * scale).all()
    assert (means[1] > 2 * scale).all()
    np.testing.assert_allclose(base.means[0], draws.mean(0), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_few_draws_make_one_wide_component(size: int, seed: int):
    draws = two_clusters(seed, 0.5, size)
    base = fit_mixture(UNITS, draws, equal(draws), seed=seed)
    assert base.num_components == 1
    assert (base.means > 0).all()
    assert (base.means < 1).all()


def test_all_weight_on_one_draw(seed: int):
    """Whichever half of the draws it falls into."""
    draws = two_clusters(seed, 0.5, 6)
    for heavy in range(6):
        base = fit_mixture(UNITS, draws, np.eye(6)[heavy], seed=seed)
        assert base.num_components == 1
        assert np.isfinite(base.logits).all()
        assert ((base.means[0] > 0.5) == (draws[heavy] == 1)).all()


@pytest.mark.parametrize("units", [UNITS, SoftmaxUnits(3), GaussianUnits(np.ones(5, np.float32))])
def test_draws_that_are_all_equal(units):
    draws = np.tile(np.float32([1, 0, 1, 1, 0]), (100, 1))
    base = fit_mixture(units, draws, equal(draws))
    assert base.num_components == 1
    assert np.isfinite(base.logits).all()
    drawn = np.asarray(base.log_density(draws[:1]))
    other = np.asarray(base.log_density(1 - draws[:1]))
    assert drawn > other


def test_the_seed_decides(seed: int):
    generator = np.random.default_rng(seed)
    centres = expit(generator.normal(0, 1.5, (5, 12)))
    draws = (generator.random((SIZE, 12)) < centres[generator.integers(0, 5, SIZE)]) * 1.0
    one, two, other = (fit_mixture(UNITS, draws, equal(draws), seed=s) for s in (seed, seed, 99))
    assert one.digest == two.digest
    assert one.num_components == 1 or one.digest != other.digest
