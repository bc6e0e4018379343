"""The pages on models, paths and densities run from top to bottom, and come out right."""

import math
from pathlib import Path

import pytest

import annealz
from annealz.testing import assert_within_mc_error
from support.pages import run_page


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_models():
    names = run_page("docs/models.md")
    trained = annealz.RBM.from_sklearn(names["trained"])
    loaded = annealz.load_model("digits.npz")
    assert loaded.digest == trained.digest
    estimate = names["estimate"]
    assert_within_mc_error(estimate.log_z, annealz.exact_log_z(trained), estimate.std_err)
    result = names["result"]  # of the softmax RBM, the last one
    assert_within_mc_error(result.log_z, annealz.exact_log_z(names["softmax"]), result.std_err)


def test_paths():
    names = run_page("docs/paths.md")
    exact = annealz.exact_log_z(names["model"])
    for result in (names["through"], names["averaged"]):
        assert_within_mc_error(result.log_z, exact, result.std_err)


def test_exchange():
    names = run_page("docs/exchange.md")
    exact = annealz.exact_log_z(names["model"])
    for result in (names["estimate"], names["result"], names["both"]):
        assert result.status.value == "ok"
        assert_within_mc_error(result.log_z, exact, result.std_err)


def test_nested():
    names = run_page("docs/nested.md")
    assert names["estimate"].status.value == "ok"
    assert_within_mc_error(names["estimate"].log_z, math.log(2), names["estimate"].std_err)


def test_densities():
    names = run_page("docs/densities.md")
    assert names["estimate"].status.value == names["evidence"].status.value == "ok"


def test_entropy():
    entropy = run_page("docs/entropy.md")["entropy"]
    assert_within_mc_error(entropy.value, 36.93, entropy.std_err)  # Kaufman's formula


def test_likelihood():
    names = run_page("docs/likelihood.md")
    found = names["likelihood"]
    equal = [1, 1]  # neighbours that agree, of -AUU and of AACG
    want = [0.5 * count - found.estimate.log_z for count in equal]
    assert found.log_likelihoods == pytest.approx(want, abs=1e-5)
