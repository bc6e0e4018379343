"""`nested_log_z`: the posterior, what is refused, limits, functions without gradients."""

import dataclasses
import json

import numpy as np
import pytest

import annealz
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.diagnostics.findings import Kind
from annealz.engine.context import Context
from annealz.engine.progress import Progress
from annealz.methods.method import find_method
from annealz.methods.nested.request import NestedRequest
from annealz.testing import assert_within_mc_error, random_rbm
from support.bumps import SMALL, WIDE, bumps

BARE = annealz.LogDensity(lambda x: -(x**2).sum(), 2, "bare")


@pytest.fixture(scope="module")
def estimate() -> annealz.NestedEstimate:
    return annealz.estimate_log_z(bumps(), method="nested", **SMALL, exact_log_z=0.0)


def test_the_posterior_of_a_gaussian(estimate):
    mean, std_err = estimate.expectation("x")
    assert_within_mc_error(mean, [0.5, -0.2], std_err)
    np.testing.assert_allclose(estimate.posterior.std_dev("x"), 0.3, rtol=0.15)
    assert np.exp(estimate.log_weights).sum() == pytest.approx(1)
    assert estimate.draws.shape == (estimate.log_weights.size, 2)
    assert 100 < estimate.ess < estimate.log_weights.size


def test_the_information_is_that_of_the_posterior_on_the_prior(estimate):
    """Kullback and Leibler's divergence of N(m, s^2) from N(0, 3^2), two variables."""
    exact = 2 * (np.log(3 / 0.3) - 0.5) + (2 * 0.3**2 + 0.5**2 + 0.2**2) / (2 * 9)
    assert estimate.information == pytest.approx(exact, abs=5 * estimate.std_err)


def test_a_seed_gives_the_same_bits_and_another_one_others(estimate):
    again = annealz.estimate_log_z(bumps(), method="nested", **SMALL)
    assert again.log_z == estimate.log_z
    np.testing.assert_array_equal(again.draws, estimate.draws)
    assert annealz.estimate_log_z(bumps(), method="nested", **SMALL, seed=1).log_z != estimate.log_z


def test_runs_share_no_bits(estimate):
    first, second, _ = estimate.runs
    assert not np.isin(first.x[:, 0], second.x[:, 0]).any()


def test_the_prior_may_be_given_and_need_not_be_normalised(seed):
    wide = annealz.GaussianBase.from_moments(np.zeros(2), np.full(2, 4.0))
    given = annealz.estimate_log_z(bumps(), method="nested", base=wide, seed=seed, **SMALL)
    assert_within_mc_error(given.log_z, 0.0, given.std_err)
    assert given.base == "gaussian"


def test_the_record_is_json(estimate):
    record = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert record["evaluations"] == {
        "pilot": 8,  # to check the model
        "main": sum(r["evaluations"] for r in record["runs"]),
    }
    assert record["method"] == "nested"
    assert len(record["runs"]) == 3


def test_progress_is_reported_run_by_run():
    seen: list[Progress] = []
    annealz.estimate_log_z(bumps(), method="nested", **SMALL, on_progress=seen.append)
    assert [now.stage for now in seen][:2] == ["base", "nested"]
    runs = [now for now in seen if now.stage == "nested"]
    assert len(runs) == len(seen) - 1
    assert sorted({(now.part, now.num_parts) for now in runs}) == [(1, 3), (2, 3), (3, 3)]
    assert all(now.step <= now.num_steps for now in runs)


def test_a_limit_that_is_too_low_is_unreliable_and_kept():
    cut = annealz.estimate_log_z(bumps(), method="nested", **SMALL, max_evaluations=30_000)
    assert Kind.OUT_OF_EVALUATIONS in cut.findings
    assert cut.status is annealz.Status.UNRELIABLE
    assert cut.evaluations["main"] <= 30_000


def test_a_density_without_mass_in_bounds_is_never_ok():
    found = annealz.estimate_log_z(bumps(scales=(1e9, 1.0)), method="nested", **SMALL)
    assert Kind.STILL_RISING in found.findings


def test_a_known_value_that_is_missed_is_a_finding(estimate):
    plan = dataclasses.replace(estimate.plan, exact_log_z=5.0)
    assert Kind.CONTRADICTS_EXACT in dataclasses.replace(estimate, plan=plan).findings
    assert not estimate.findings


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (BARE, {}, "nested sampling needs a normalised prior, and bare has none"),
        (random_rbm(4, 6), {}, "takes a density over real variables .LogDensity., got rbm-4x6"),
        (lambda x: x, {}, "a function: give annealz.LogDensity"),
        (bumps(), {"num_live": 60}, "num_live must be at least 80, got 60"),
        (bumps(), {"num_live": 400.5}, "num_live must be a whole number, got 400.5"),
        (bumps(), {"num_runs": 0}, "num_runs must be at least 1, got 0"),
        (bumps(), {"num_delete": 80}, "num_delete must be at most half of the 125 live points"),
        (bumps(), {"num_inner_steps": 0}, "num_inner_steps must be at least 1, got 0"),
        (bumps(), {"tolerance": 0.0}, "tolerance must lie between 0 and 1, got 0.0"),
        (bumps(), {"max_evaluations": 10}, "max_evaluations must be at least 500, got 10"),
        (bumps(), {"seed": -1}, "seed must be an integer"),
        (bumps(), {"base": 3}, "base must be a base or the name of one, got int"),
        (bumps(), {"base": "nowhere"}, "unknown base 'nowhere'"),
        (bumps(), {"base": annealz.GaussianBase.standard(3)}, "3"),
    ],
)
def test_bad_input_is_one_sentence(model, options, words: str):
    with pytest.raises(ValueError, match=words) as error:
        annealz.estimate_log_z(model, method="nested", **options)
    assert "\n" not in str(error.value)


def test_many_variables_have_more_live_points_by_default():
    sizes = {}
    for dim, num_live in ((10, None), (100, None), (10, 1000)):
        model = annealz.LogDensity(
            lambda x: -(x**2).sum(), dim, prior=annealz.GaussianBase.standard(dim)
        )
        request = NestedRequest(model=model, num_live=num_live)
        sizes[dim, num_live] = find_method("nested").plan(request, Context()).num_live
    assert sizes == {(10, None): 500, (100, None): 1600, (10, 1000): 1000}


def test_draws_of_the_first_run_begin_with_those_of_the_prior(estimate):
    x = WIDE.sample(Stream(0, "nested 1").at(0, indices(40)))
    first = estimate.runs[0]
    drawn = first.x[np.isnan(first.births)]
    assert {*map(tuple, np.asarray(x))} == {*map(tuple, drawn)}
