"""Bayes factors and tables of models, against closed forms."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import annealz
from annealz.testing import assert_within_mc_error
from support.conjugate import OPTIONS, conjugate, log_evidence

WIDTHS = (0.5, 2.0, 8.0)


@pytest.fixture(scope="module")
def estimates():
    return {
        f"width {width:g}": annealz.estimate_log_z(conjugate(width), seed=i, **OPTIONS)
        for i, width in enumerate(WIDTHS, 1)
    }


def test_a_bayes_factor_has_the_known_value(estimates):
    wide, narrow = estimates["width 8"], estimates["width 2"]
    factor = annealz.log_bayes_factor(narrow, wide)
    assert factor.value == narrow.log_z - wide.log_z
    assert factor.std_err == pytest.approx(np.hypot(narrow.std_err, wide.std_err))
    assert_within_mc_error(factor.value, log_evidence(2.0) - log_evidence(8.0), factor.std_err)
    assert factor.probability == pytest.approx(expit(factor.value))
    assert factor.names == ("width 2", "width 8")
    back = annealz.log_bayes_factor(wide, narrow)
    assert back.interval() == pytest.approx([-bound for bound in factor.interval()[::-1]])
    assert "width 2 against width 8" in repr(factor)
    assert "log Bayes factor" in factor._repr_html_()


def test_a_table_orders_models_and_gives_their_probabilities(estimates):
    table = annealz.compare_models(estimates)
    exact = {f"width {width:g}": log_evidence(width) for width in WIDTHS}
    assert table.names == tuple(sorted(exact, key=lambda name: -estimates[name].log_z))
    truth = np.array([exact[name] for name in table.names])
    shares = np.exp(truth) / np.exp(truth).sum()
    assert_within_mc_error(table.probabilities, shares, table.probability_std_errs)
    assert_within_mc_error(
        table.differences[1:], (truth - truth[0])[1:], table.difference_std_errs[1:]
    )
    assert table.probabilities.sum() == pytest.approx(1)
    assert [one["model"] for one in table.to_dict()["models"]] == list(table.names)
    frame = table.to_pandas()
    assert frame["model"].tolist() == list(table.names)
    assert frame["probability"].tolist() == table.probabilities.tolist()
    assert table.best in table._repr_html_()
    assert table.bayes_factor(*table.names[:2]).value == -table.differences[1]
    assert annealz.compare_models([*estimates.values()]).names == table.names


def test_errors_of_probabilities_are_those_of_many_draws():
    """The delta method against simulated log evidences."""
    log_z, errors = np.array([0.0, -0.4, -1.5]), np.array([0.05, 0.08, 0.1])
    pairs = {str(i): pair for i, pair in enumerate(zip(log_z, errors, strict=True))}
    table = annealz.compare_models(pairs, prior_weights=[1, 2, 3])
    drawn = np.random.default_rng(4).normal(log_z, errors, (100_000, 3)) + np.log([1, 2, 3])
    shares = np.exp(drawn) / np.exp(drawn).sum(1, keepdims=True)
    np.testing.assert_allclose(table.probability_std_errs, shares.std(0), rtol=0.05)


def test_the_interval_of_a_difference_covers():
    """Of asymmetric intervals, each of which covers on its own."""
    generator, inside = np.random.default_rng(5), 0
    for _ in range(2000):
        a, b = generator.normal(size=2) * [0.1, 0.3]
        low, high = annealz.log_bayes_factor((a, 0.1), (b, 0.3)).interval(0.9)
        inside += low < 0 < high
    assert stats.binomtest(inside, 2000, 0.9).pvalue > 1e-6


def test_one_seed_adds_errors_and_says_so(estimates):
    same = annealz.estimate_log_z(conjugate(8.0), seed=2, **OPTIONS)
    narrow = estimates["width 2"]
    factor = annealz.log_bayes_factor(narrow, same)
    assert factor.std_err == pytest.approx(narrow.std_err + same.std_err)
    assert "share random bits" in factor.messages[0]
    low, high = factor.interval()
    apart = annealz.log_bayes_factor(narrow, estimates["width 8"])
    assert high - low > np.subtract(*apart.interval()[::-1])
    table = annealz.compare_models({"a": narrow, "b": same})
    assert table.difference_std_errs[1] == pytest.approx(factor.std_err)
    with pytest.raises(ValueError, match="of one model with one seed"):
        annealz.log_bayes_factor(narrow, narrow)


def test_models_of_one_name_are_called_by_what_distinguishes_them(estimates):
    first, second = estimates["width 2"], estimates["width 8"]

    def sourced(estimate: annealz.Estimate, source: str | None) -> annealz.Estimate:
        plan = dataclasses.replace(estimate.plan, model="m", source=source)
        return dataclasses.replace(estimate, plan=plan)

    def names(*sources: str | None) -> tuple[str, ...]:
        pair = [sourced(*both) for both in zip((first, second), sources, strict=True)]
        return annealz.log_bayes_factor(*pair).names

    assert names(None, None) == names("here:f", "here:f") == ("a", "b")
    assert names("here:f", "here:g") == ("here:f", "here:g")
    table = annealz.compare_models([sourced(first, "here:f"), sourced(second, "here:g")])
    assert {*table.names} == {"here:f", "here:g"}


def test_an_unreliable_estimate_makes_the_comparison_unreliable(estimates):
    few = annealz.estimate_log_z(conjugate(8.0), seed=9, **{**OPTIONS, "num_chains": 10})
    factor = annealz.log_bayes_factor(estimates["width 2"], few)
    assert factor.status is annealz.Status.UNRELIABLE
    assert "width 8 cannot be trusted: chains are too few" in factor.messages[0]
    assert "open" in factor.in_words or factor.in_words.endswith("if these estimates are right")
    table = annealz.compare_models({"few": few, "many": estimates["width 2"]})
    assert table.status is annealz.Status.UNRELIABLE
    assert [row["status"] for row in table.to_dict()["models"]] == ["ok", "unreliable"]
    assert "try num_chains=100" in table.messages[0]
    assert "try --chains 100" in table.to_dict()["messages"][0]


def test_large_factors_and_open_questions_are_said_in_words():
    assert annealz.log_bayes_factor((100, 0.1), (0, 0.1)).in_words.endswith("10^43.4")
    assert "open" in annealz.log_bayes_factor((0, 1), (0.5, 1)).in_words
    table = annealz.compare_models({"alone": (3.0, 0.1)})
    assert table.probabilities.tolist() == [1.0]
    assert table.probability_std_errs.tolist() == [0.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: annealz.log_bayes_factor("x", (1, 1)), "a must be an estimate, or a pair"),
        (lambda: annealz.log_bayes_factor((1, 1), (1, -1)), "b must be a pair of numbers"),
        (lambda: annealz.log_bayes_factor((1, np.nan), (1, 1)), "a must be a pair of numbers"),
        (lambda: annealz.compare_models({}), "at least one"),
        (lambda: annealz.compare_models({"a": 3}), r"models\['a'\] must be an estimate"),
        (
            lambda: annealz.compare_models({"a": (0, 1)}, prior_weights={"b": 1}),
            "names of the models, a, got 'b'",
        ),
        (lambda: annealz.compare_models({"a": (0, 1)}, prior_weights=[1, 2]), "one number per"),
        (lambda: annealz.compare_models({"a": (0, 1)}, prior_weights=[0]), "not all 0, got"),
        (lambda: annealz.compare_models({"a": (0, 1)}).bayes_factor("a", "b"), "'b' is not in"),
    ],
)
def test_bad_input_gets_one_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
