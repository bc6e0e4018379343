"""The likelihood of data: its two errors apart and together, what it refuses, what it says."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from annealz import RBM, Likelihood, Status, estimate_log_z, exact_log_z, log_likelihood
from annealz.core.random import derive_seed
from annealz.diagnostics.diagnostics import judge
from annealz.engine.run import Runs
from annealz.methods.annealing.estimate import Estimate
from annealz.models import density
from annealz.models.abstract import AbstractModel
from annealz.models.exact import exact_samples
from annealz.testing import binary_states, log_joint, random_rbm
from annealz.training.data import DataSource, binarise
from support.families import MODELS, arrays, grid, joint

MODEL = random_rbm(4, 6, scale=1.2, seed=3)
LEVEL = 0.9
REPLICATES = 1000
EXAMPLES = 250
CHAINS = 80


def rows(count: int, seed: int = 0) -> np.ndarray:
    return exact_samples(MODEL, count, seed)[0]


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return estimate_log_z(
        MODEL, schedule="linear", num_steps=20, num_chains=200, base="uniform", second_opinion=False
    )


@pytest.fixture(scope="module")
def replicates() -> list[Likelihood]:
    """Independent data sets, each with a log Z of its own whose error is about that of the data."""
    whole = estimate_log_z(
        MODEL,
        schedule="linear",
        num_steps=12,
        num_chains=CHAINS * REPLICATES,
        base="uniform",
        second_opinion=False,
    )
    weights = whole.log_weights.reshape(REPLICATES, CHAINS)
    data = rows(EXAMPLES * REPLICATES, seed=1).reshape(REPLICATES, EXAMPLES, -1)
    parts = [
        dataclasses.replace(
            whole, runs=Runs(dataclasses.replace(whole.run, log_weights=w)), judgement=judge(w)
        )
        for w in weights
    ]
    return [log_likelihood(MODEL, d, estimate=part) for d, part in zip(data, parts, strict=True)]


# --- the number -------------------------------------------------------------------------------


def test_mean_and_examples_are_those_of_the_joint(estimate: Estimate):
    """Against brute force: log p*(v) summed over the hidden layer, in float64."""
    found = log_likelihood(MODEL, binary_states(6), estimate=estimate)
    truth = logsumexp(log_joint(MODEL), axis=0) - estimate.log_z
    np.testing.assert_allclose(found.log_likelihoods, truth, atol=1e-5)
    assert found.log_likelihood == pytest.approx(truth.mean(), abs=1e-5)
    assert found.num_examples == 64
    assert found.exact_log_likelihood == pytest.approx(
        truth.mean() + estimate.log_z - exact_log_z(MODEL), abs=1e-5
    )


def test_pieces_change_nothing(estimate: Estimate, monkeypatch: pytest.MonkeyPatch):
    data = rows(100)
    whole = log_likelihood(MODEL, data, estimate=estimate)
    monkeypatch.setattr(density, "_ROWS", 7)
    parts = log_likelihood(MODEL, data, estimate=estimate)
    np.testing.assert_allclose(parts.log_likelihoods, whole.log_likelihoods, atol=1e-5)


def test_without_an_estimate_one_is_made(seed: int):
    data = rows(30)
    found = log_likelihood(
        MODEL, data, schedule="linear", num_steps=50, num_chains=300, base="uniform", seed=seed
    )
    low, high = found.interval_log_z(1 - 1e-6)
    assert found.exact_log_likelihood is not None
    assert low < found.exact_log_likelihood < high
    assert (found.estimate.num_steps, found.estimate.base) == (50, "uniform")


# --- errors -----------------------------------------------------------------------------------


def test_the_two_errors_are_apart(estimate: Estimate):
    few, many = (log_likelihood(MODEL, rows(n), estimate=estimate) for n in (50, 5000))
    assert few.std_err_log_z == many.std_err_log_z == estimate.std_err
    assert few.interval_log_z()[1] - few.interval_log_z()[0] == pytest.approx(
        np.diff(estimate.interval()).item()
    )
    assert 5 < few.std_err_data / many.std_err_data < 20
    assert few.std_err**2 == pytest.approx(few.std_err_data**2 + few.std_err_log_z**2)
    data = few.log_likelihoods
    assert few.std_err_data == pytest.approx(data.std(ddof=1) / np.sqrt(50))
    low, high = few.interval()
    assert low < few.interval_log_z()[0] < few.log_likelihood < few.interval_log_z()[1] < high


@pytest.fixture(scope="module")
def log_z_intervals(replicates: list[Likelihood]) -> list[tuple[float, float]]:
    return [one.interval_log_z(LEVEL) for one in replicates]


def share(found: list[Likelihood], bounds, truth) -> int:
    return sum(low <= truth(one) <= high for (low, high), one in zip(bounds, found, strict=True))


def assert_covers(hits: int, alpha: float = 1e-6) -> None:
    """Within binomial bounds of the level, two percent of slack below for small samples."""
    law = stats.binom(REPLICATES, LEVEL)
    assert stats.binom(REPLICATES, LEVEL - 0.02).ppf(alpha) <= hits <= law.isf(alpha), hits


@functools.cache
def expected() -> float:
    """E[log p(v)] over the model's own law, which the data are drawn from."""
    joint = log_joint(MODEL)
    log_p = logsumexp(joint, axis=0) - logsumexp(joint)
    return float((np.exp(log_p) * log_p).sum())


def test_intervals_cover(replicates: list[Likelihood], log_z_intervals: list):
    """The whole one the mean over the source, that of log Z the mean over the very examples."""
    whole = [one.interval(LEVEL) for one in replicates]
    assert_covers(share(replicates, whole, lambda _: expected()))
    assert_covers(share(replicates, log_z_intervals, lambda one: one.exact_log_likelihood))


def test_one_error_alone_does_not_cover(replicates: list[Likelihood], log_z_intervals: list):
    """Mutants: the error of log Z left out, and that of the data."""

    def data_alone(one: Likelihood) -> tuple[float, float]:
        half = stats.norm.ppf((1 + LEVEL) / 2) * one.std_err_data
        return one.log_likelihood - half, one.log_likelihood + half

    for bounds in ([data_alone(one) for one in replicates], log_z_intervals):
        with pytest.raises(AssertionError):
            assert_covers(share(replicates, bounds, lambda _: expected()))


def test_a_lopsided_interval_is_turned_over(estimate: Estimate):
    """High log Z is low likelihood: where log Z reaches up, the likelihood reaches down."""
    log_weights = np.append(np.zeros(99), 4.0)  # bootstrap, with a long upper side
    heavy = dataclasses.replace(
        estimate,
        runs=Runs(dataclasses.replace(estimate.run, log_weights=log_weights)),
        judgement=judge(log_weights),
    )
    low_z, high_z = heavy.interval()
    assert high_z - heavy.log_z > 1.5 * (heavy.log_z - low_z)
    found = log_likelihood(MODEL, rows(1000), estimate=heavy)
    low, high = found.interval_log_z()
    assert found.log_likelihood - low == pytest.approx(high_z - heavy.log_z)
    assert found.log_likelihood - found.interval()[0] > found.interval()[1] - found.log_likelihood
    assert high - found.log_likelihood == pytest.approx(heavy.log_z - low_z)


def test_unknown_errors_are_none_and_unknown(estimate: Estimate):
    found = log_likelihood(MODEL, rows(1), estimate=estimate)
    record = found.to_dict()
    assert record["std_err_data"] is record["std_err"] is None
    assert record["interval"] == [None, None]
    assert None not in record["interval_log_z"]
    assert dict(found.rows())["error of the data"] == "unknown"
    json.dumps(record, allow_nan=False)


# --- words ------------------------------------------------------------------------------------


def test_a_sound_estimate_is_no_bound(estimate: Estimate):
    found = log_likelihood(MODEL, rows(50), estimate=estimate)
    assert found.status is Status.OK
    assert "upper bound" not in repr(found)
    assert "exact" in dict(found.rows())


def test_an_unreliable_one_is_an_upper_bound_in_words(estimate: Estimate):
    log_weights = np.append(np.zeros(99), 30.0)
    weak = dataclasses.replace(
        estimate,
        runs=Runs(dataclasses.replace(estimate.run, log_weights=log_weights)),
        judgement=judge(log_weights),
    )
    found = log_likelihood(MODEL, rows(50), estimate=weak)
    assert found.status is Status.UNRELIABLE
    assert "likely an upper bound" in dict(found.rows())["log-likelihood"]
    assert "likely an upper bound, because log Z is likely too low" in found.messages[0]
    assert found.messages[1:] == weak.messages
    assert found.to_dict()["status"] == "unreliable"


# --- data -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((3, 5)), "data has 5 units per row and the model 6 visible units"),
        (np.full((3, 6), 0.5), "must hold zeros and ones, got 18 other values of 18, such as 0.5"),
        (np.full((3, 6), 2.0), "data must lie in [0, 1]"),
        (np.zeros(6), "must hold rows of units"),
        (np.full((3, 6), np.nan), "must be finite"),
        ("nothing.npy", "no data file"),
    ],
)
def test_bad_data(data, words: str, estimate: Estimate):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (words are looked at below)
        log_likelihood(MODEL, data, estimate=estimate)
    assert words in str(caught.value)


def test_intensities_of_a_file_are_drawn_once(tmp_path: Path, estimate: Estimate):
    """As the models were trained; always by the same coins, so that runs are comparable."""
    intensities = np.random.default_rng(0).random((50, 6)).astype(np.float32)
    np.save(tmp_path / "rows.npy", intensities)
    drawn = binarise(intensities, derive_seed(0, "likelihood"))
    np.testing.assert_array_equal(DataSource.of(tmp_path / "rows.npy").examples(), drawn)
    found = log_likelihood(MODEL, tmp_path / "rows.npy", estimate=estimate)
    given = log_likelihood(MODEL, drawn, estimate=estimate)
    np.testing.assert_array_equal(found.log_likelihoods, given.log_likelihoods)
    assert found.data == "rows.npy"


def test_an_estimate_of_another_model_is_refused(estimate: Estimate):
    other = RBM(MODEL.weights, MODEL.hidden_bias + 1, MODEL.visible_bias)
    with pytest.raises(ValueError, match="that of another model, rbm-4x6"):
        log_likelihood(other, rows(5), estimate=estimate)
    with pytest.raises(ValueError, match="num_steps to make one: leave one out"):
        log_likelihood(MODEL, rows(5), estimate=estimate, num_steps=5)


# --- of other models than RBMs ----------------------------------------------------------------


def of(model: AbstractModel, estimate: Estimate) -> Estimate:
    """The same log Z as if it were that of another model, of which none is run."""
    plan = dataclasses.replace(estimate.plan, model_digest=model.digest)
    return dataclasses.replace(estimate, plan=plan)


@pytest.mark.parametrize("name", ["lattice", "boltzmann", "potts"])
def test_of_any_model_with_a_log_density(name: str, estimate: Estimate):
    states, energies = joint(name)
    found = log_likelihood(MODELS[name], states, estimate=of(MODELS[name], estimate))
    np.testing.assert_allclose(found.log_likelihoods, energies - estimate.log_z, atol=1e-5)


def test_of_real_units(estimate: Estimate):
    """log p*(v) of a Gaussian RBM, its hidden units summed one state after the other."""
    model: Any = MODELS["gaussian"]
    data = np.random.default_rng(0).normal(0, 2, (7, 4))
    v = data.astype(np.float32).astype(np.float64)
    weights, hidden, visible, scale = arrays(
        (model.weights, model.hidden_bias, model.visible_bias, model.scale)
    )
    truth = logsumexp(
        [
            -((v - visible) ** 2 / (2 * scale**2)).sum(1) + h @ hidden + (v / scale) @ (h @ weights)
            for h in grid(2, 2, 2)
        ],
        axis=0,
    )
    found = log_likelihood(model, data, estimate=of(model, estimate))
    np.testing.assert_allclose(found.log_densities, truth, atol=1e-5)


def test_states_from_a_file_are_not_scaled(tmp_path: Path, estimate: Estimate):
    model, (states, energies) = MODELS["potts"], joint("potts")
    np.save(tmp_path / "rows.npy", states.astype(np.uint8))
    found = log_likelihood(model, tmp_path / "rows.npy", estimate=of(model, estimate))
    np.testing.assert_allclose(found.log_densities, energies, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("potts", np.full((2, 5), 3), "states from 0 to 2, got 10 other values of 10, such as 3"),
        ("potts", np.full((2, 5), 0.5), "such as 0.5"),
        ("potts", np.zeros((2, 4)), "4 units per row and the model 5 visible units"),
        ("potts", np.full((2, 5), np.nan), "must be finite, got 10 NaN"),
        ("potts", np.array([["A"] * 5]), "must hold real numbers"),
        ("lattice", np.full((2, 8), 0.5), "must hold zeros and ones"),
        ("gaussian", np.zeros(4), "must hold rows of units"),
        ("dbm", np.zeros((2, 4)), "is not known in closed form"),
    ],
)
def test_examples_that_do_not_fit(name: str, data: np.ndarray, words: str, estimate: Estimate):
    model = MODELS[name]
    with pytest.raises(ValueError, match=words):
        log_likelihood(model, data, estimate=of(model, estimate))


def test_sequences_need_units_of_states(tmp_path: Path, estimate: Estimate):
    (tmp_path / "s.fasta").write_text(">a\nACGU\n")
    for model, words in ((MODELS["gaussian"], "real variables"), (MODELS["potts"], "3 states")):
        with pytest.raises(ValueError, match=words):
            log_likelihood(model, tmp_path / "s.fasta", estimate=of(model, estimate))
    with pytest.raises(ValueError, match="data is an array"):
        log_likelihood(MODEL, rows(5), alphabet="rna", estimate=estimate)
