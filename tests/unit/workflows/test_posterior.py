"""The posterior of a conjugate model: means, errors that cover, copies, ArviZ, folders."""

import arviz_base
import arviz_stats
import numpy as np
import pytest
from scipy import stats

import annealz
from annealz.methods.posterior import Posterior
from annealz.testing import assert_within_mc_error
from support.conjugate import OPTIONS, conjugate, log_evidence, means, posterior_moments

NUM_SEEDS = 20


@pytest.fixture(scope="module")
def estimates():
    model = conjugate()
    return [annealz.estimate_log_z(model, seed=s, **OPTIONS) for s in range(NUM_SEEDS)]


def test_means_are_right_and_their_errors_cover(estimates):
    exact = means()
    for name, truth in exact.items():
        found = [estimate.expectation(name) for estimate in estimates]
        z = np.array([(one.value - truth) / one.std_err for one in found])
        assert_within_mc_error(z.mean(), 0, 1 / np.sqrt(NUM_SEEDS))
        low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], NUM_SEEDS)
        assert low < (z**2).sum() < high, f"{name}: errors do not cover"


def test_without_weights_the_means_would_be_wrong(estimates):
    """The broken variant: last states averaged as they are."""
    values = np.concatenate([one.posterior.values["shift"] for one in estimates])
    off = abs(values.mean() - means()["shift"]) / (values.std() / np.sqrt(values.size))
    assert off > stats.norm.isf(5e-7)


def test_a_function_of_the_parameters_and_their_spread(estimates):
    estimate, (mean, spread) = estimates[0], posterior_moments()
    log_scale = estimate.expectation(lambda values: np.log(values["scale"]))
    assert_within_mc_error(log_scale.value, mean[1], log_scale.std_err)
    both = estimate.expectation(lambda values: np.stack([*values.values()], 1))
    assert both.value.shape == both.std_err.shape == (2,)
    assert both.value[0] == pytest.approx(estimate.expectation("shift").value)
    effective = estimate.posterior.ess
    assert_within_mc_error(
        estimate.posterior.std_dev("shift"), spread[0], spread[0] / np.sqrt(2 * effective)
    )
    table = estimate.posterior.table()
    assert [row[0] for row in table.rows] == ["shift", "scale"]
    assert table.headings == ("parameter", "mean", "std. err.", "std. dev.")
    assert estimate.posterior.to_dict()["shift"]["mean"] == pytest.approx(both.value[0])


def test_copies_within_islands_do_not_narrow_the_error():
    generator = np.random.default_rng(1)
    values, log_weights = generator.normal(size=40), generator.normal(size=40)
    alone = Posterior(("x",), {"x": values}, log_weights).expectation("x")
    twice = Posterior(
        ("x",), {"x": np.repeat(values, 2)}, np.repeat(log_weights, 2), island_size=2
    ).expectation("x")
    assert twice == pytest.approx(alone)
    assert Posterior(("x",), {"x": values[:1]}, log_weights[:1]).expectation("x").std_err == np.inf


def test_draws_of_no_weight_may_be_infinite():
    values, log_weights = np.array([1.0, np.inf, 3.0]), np.array([0.0, -np.inf, 0.0])
    found = Posterior(("x",), {"x": values}, log_weights).expectation("x")
    assert found.value == 2.0
    assert np.isfinite(found.std_err)


def test_resampled_draws_have_the_weighted_mean_and_arviz_sees_the_copies():
    generator = np.random.default_rng(2)
    values, log_weights = generator.normal(size=2000), generator.normal(size=2000)
    posterior = Posterior(("x",), {"x": values}, log_weights)
    drawn = posterior.resampled(seed=3)["x"]
    mean = posterior.expectation("x")
    parts = np.modf(posterior.num_draws * posterior.weights)[0]  # of a copy, drawn or not
    noise = np.sqrt((parts * (1 - parts) * (values - mean.value) ** 2).sum()) / posterior.num_draws
    assert_within_mc_error(drawn.mean(), mean.value, noise)
    assert noise < mean.std_err
    seen = arviz_stats.ess(drawn[None], method="mean")
    assert 0.6 * posterior.ess < seen < 1.5 * posterior.ess  # of 2000 draws, worth some 740
    assert posterior.resampled(50)["x"].shape == (50,)


def test_arviz_summarises_the_tree(estimates):
    estimate = estimates[0]
    tree = estimate.to_xarray()
    assert arviz_base.convert_to_datatree(tree) is tree
    summary = arviz_stats.summary(tree, round_to="none")
    for name in ("shift", "scale"):
        mean = estimate.expectation(name)
        assert abs(float(summary.loc[name, "mean"]) - mean.value) < 2 * mean.std_err
    weighted = tree["posterior_weighted"]
    weights = np.exp(weighted["log_weight"] - weighted["log_weight"].max())
    mean = float((weights * weighted["scale"]).sum() / weights.sum())
    assert mean == pytest.approx(estimate.expectation("scale").value, rel=1e-5)
    assert tree["posterior"].attrs["status"] == estimate.posterior.status.value


def test_a_folder_needs_the_model_again(estimates, tmp_path):
    model = conjugate()
    annealz.estimate_log_z(model, seed=0, out=tmp_path / "run", **OPTIONS)
    read = annealz.resume(tmp_path / "run")
    assert read.posterior is None
    with pytest.raises(ValueError, match=r"resume\(out, model=model\)"):
        read.expectation("shift")
    again = annealz.resume(tmp_path / "run", model=model)
    assert again.expectation("scale") == estimates[0].expectation("scale")
    with pytest.raises(ValueError, match="another model"):
        annealz.resume(tmp_path / "run", model=conjugate(3.0))


def test_an_unreliable_estimate_has_an_unreliable_posterior(estimates):
    few = annealz.estimate_log_z(conjugate(), **{**OPTIONS, "num_chains": 10})
    assert few.posterior.status is annealz.Status.UNRELIABLE
    assert "unreliable" in repr(few.posterior)
    assert "unreliable" in few.posterior._repr_html_()
    assert estimates[0].posterior.status is estimates[0].status


def test_islands_and_log_z_come_from_the_same_weights(estimates):
    resampled = annealz.estimate_log_z(conjugate(), **OPTIONS, resample=0.9)
    posterior = resampled.posterior
    assert posterior.island_size == resampled.run.island_size
    found = posterior.expectation("shift")
    assert_within_mc_error(found.value, means()["shift"], found.std_err)
    assert_within_mc_error(resampled.log_z, log_evidence(), resampled.std_err)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("slope", "choose one of shift, scale"),
        (3, "name of a parameter or a function"),
        (lambda values: values["shift"].mean(), "one value per draw"),
    ],
)
def test_what_has_no_expectation_is_refused(estimates, what, words):
    with pytest.raises(ValueError, match=words):
        estimates[0].expectation(what)


def test_no_draws_are_refused(estimates):
    with pytest.raises(ValueError, match="num_draws must be at least 1"):
        estimates[0].posterior.resampled(0)
