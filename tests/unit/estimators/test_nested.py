"""log Z from births and deaths: exact counts, perfect nested sampling, ties, merged runs."""

import numpy as np
import pytest

from annealz.diagnostics.nested import count_live, nested_sum
from annealz.testing import assert_within_mc_error

SLOPE = 30.0  # log L = -SLOPE X: the integral over X is known
EXACT = float(np.log(-np.expm1(-SLOPE) / SLOPE))


def perfect_run(generator: np.random.Generator, num_live: int, num_delete: int, num_steps: int):
    """Births and deaths of a sampler whose new points are exact: uniform in the volume that is left."""
    live, born = generator.random(num_live), np.full(num_live, np.nan)
    births, deaths = [], []
    for _ in range(num_steps):
        gone = np.argsort(-live)[:num_delete]
        births.append(born[gone])
        deaths.append(-SLOPE * live[gone])
        contour = live[gone].min()
        live[gone], born[gone] = contour * generator.random(num_delete), -SLOPE * contour
    return np.concatenate([*births, born]), np.concatenate([*deaths, -SLOPE * live])


def test_live_points_are_counted_as_blackjax_counts_them(seed):
    from blackjax.ns.base import NSInfo, StateWithLogLikelihood
    from blackjax.ns.utils import compute_num_live

    births, deaths = perfect_run(np.random.default_rng(seed), 20, 4, 15)
    deaths[np.isnan(births)] = np.round(deaths[np.isnan(births)])  # some ties
    order = np.argsort(deaths, kind="stable")
    births, deaths = births[order].astype(np.float32), deaths[order].astype(np.float32)
    theirs = compute_num_live(NSInfo(StateWithLogLikelihood(None, None, deaths, births), None))  # pyright: ignore
    np.testing.assert_array_equal(count_live(births, deaths), theirs)


@pytest.mark.parametrize("num_delete", [1, 10, 25])
def test_perfect_sampling_is_unbiased_and_its_error_is_honest(seed, num_delete: int):
    """The mean over runs by z-test; the spread of the runs is the error that each states."""
    generator, num_runs = np.random.default_rng(seed), 60
    steps = 500 // num_delete
    runs = [perfect_run(generator, 50, num_delete, steps) for _ in range(num_runs)]
    found = [nested_sum(*run, seed=i, num_simulations=100) for i, run in enumerate(runs)]
    z = np.array([(one.log_z - EXACT) / one.std_err for one in found])
    assert_within_mc_error(z.mean(), 0.0, 1 / np.sqrt(num_runs))
    assert_within_mc_error((z**2).mean(), 1.0, np.sqrt(2 / num_runs))


def test_a_batch_that_dies_at_once_leaves_fewer_live_points(seed):
    """Broken variant: shrinking as if all were live at every death is many errors off."""
    births, deaths = perfect_run(np.random.default_rng(seed), 100, 50, 20)
    whole = np.full(deaths.size - 100, np.nan)
    right = nested_sum(births, deaths)
    assert_within_mc_error(right.log_z, EXACT, right.std_err)
    order = np.argsort(deaths)
    x = np.exp(-np.arange(1, whole.size + 1) / 100)  # n = 100 throughout
    wrong = np.log((np.exp(deaths[order][: whole.size]) * -np.diff(x, prepend=1.0)).sum())
    assert wrong - EXACT > 4.9 * right.std_err


def test_runs_are_merged_by_their_points(seed):
    generator = np.random.default_rng(seed)
    runs = [perfect_run(generator, 50, 10, 50) for _ in range(4)]
    each = [nested_sum(*run) for run in runs]
    both = nested_sum(*(np.concatenate(parts) for parts in zip(*runs, strict=True)))
    assert_within_mc_error(both.log_z, EXACT, both.std_err)
    assert both.std_err == pytest.approx(np.mean([one.std_err for one in each]) / 2, rel=0.2)


def test_points_of_zero_likelihood_die_first_and_weigh_nothing():
    """A third of the prior has a likelihood of one, the rest of zero."""
    deaths = np.where(np.arange(3000) % 3, -np.inf, 0.0)
    found = nested_sum(np.full(3000, np.nan), deaths)
    assert_within_mc_error(found.log_z, -np.log(3), found.std_err)
    assert found.std_err == pytest.approx(np.sqrt(2 / 3000), rel=0.2)  # of a binomial share
    assert (np.exp(found.log_weights[deaths < 0]) == 0).all()
    assert np.exp(found.log_weights).sum() == pytest.approx(1)
    assert found.information == pytest.approx(np.log(3), abs=0.1)
