"""k-hat against arviz-stats, which has the same."""

import numpy as np
import pytest

from annealz.estimators.pareto import pareto_shape, tail_size


def _laws(count: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "normal": generator.normal(0, 2, count),
        "narrow": 300 + generator.normal(0, 1e-6, count),
        "pareto": -0.8 * np.log(generator.random(count)),
        "ties": np.round(generator.normal(0, 2, count)),
        "dead chains": np.where(generator.random(count) < 0.2, -1e5, generator.normal(0, 1, count)),
    }


@pytest.mark.parametrize("count", [25, 225, 226, 1000])
def test_as_arviz_fits_it(count):
    array_stats = pytest.importorskip("arviz_stats.base.array").array_stats
    for name, log_weights in _laws(count, count).items():
        try:
            with np.errstate(all="ignore"):
                wanted = float(array_stats.psislw(log_weights.max() - log_weights)[1])
        except ValueError:  # all of the tail is equal
            wanted = -np.inf
        assert pareto_shape(log_weights) == pytest.approx(wanted, abs=1e-9), name


def test_tails_that_cannot_be_fitted():
    assert np.isnan(pareto_shape(np.arange(20.0)))  # a tail of four
    assert pareto_shape(np.repeat([0.0, 1.0], [10, 90])) == -np.inf
    assert (tail_size(225), tail_size(400)) == (45, 60)
