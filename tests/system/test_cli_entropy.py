"""`annealz entropy`: table, JSON, a run that was kept, one sentence for every bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from annealz.models.formats.npz import save_rbm
from annealz.testing import log_joint, random_rbm
from support.command import KEYS as ESTIMATE_KEYS
from support.command import PLAIN, refused, run

KEYS = [
    "model",
    "entropy",
    "std_err",
    "interval",
    "bits",
    "variables",
    "is_differential",
    "mean_log_density",
    "std_err_mean",
    "ess",
    "estimate",
    "status",
    "messages",
]
SMALL = ("--steps", 50, "--chains", 100, "--schedule", "linear", *PLAIN)
MODEL = random_rbm(4, 6, seed=2)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    save_rbm("m.npz", MODEL, {"name": "m"})


def test_json_is_one_object_with_the_documented_keys(capsys):
    status, out, err = run(capsys, "entropy", "m.npz", *SMALL, "--json", "--quiet")
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert list(result) == KEYS
    assert list(result["estimate"]) == ESTIMATE_KEYS
    energies = logsumexp(log_joint(MODEL), axis=0)
    law = np.exp(energies - logsumexp(energies))
    assert abs(result["entropy"] + law @ np.log(law)) < 5 * result["std_err"]
    assert result["interval"][0] < result["entropy"] < result["interval"][1]
    assert list(Path("cache").iterdir()) == []


def test_a_page_that_cannot_be_written_is_refused_first(capsys):
    assert "nowhere" in refused(capsys, "entropy", "m.npz", *SMALL, "--report", "nowhere/p.html")


def test_the_table_has_both_units_and_a_run_can_be_kept(capsys):
    status, out, _ = run(
        capsys, "entropy", "m.npz", *SMALL, "--out", "run", "--report", "page.html"
    )
    assert status == 0
    assert out.splitlines()[-1] == "report: page.html"
    assert "log Z" in Path("page.html").read_text("utf-8")
    for words in ("nats", "in bits", "visible units", "mean of log p*", "log Z"):
        assert words in out
    status, again, _ = run(capsys, "entropy", "m.npz", "--run", "run")
    assert status == 0
    assert again.splitlines()[:6] == out.splitlines()[:6]
    assert "--steps would make another" in refused(
        capsys, "entropy", "m.npz", "--run", "run", "--steps", 5
    )
    save_rbm("other.npz", random_rbm(4, 6, seed=3), {"name": "other"})
    assert "that of another model, m" in refused(capsys, "entropy", "other.npz", "--run", "run")


def test_an_unreliable_one_is_strict_and_says_what_may_help(capsys):
    few = ("--steps", 50, "--chains", 10, "--schedule", "linear", *PLAIN)
    status, out, _ = run(capsys, "entropy", "m.npz", *few, "--strict", "--quiet")
    assert status == 4
    assert "unreliable" in out
    assert "> annealz entropy m.npz --base visible-bias" in out
    assert "--chains 100" in out.splitlines()[-1]


def test_bad_input_is_one_line(capsys):
    assert "no such file" in refused(capsys, "entropy", "missing.npz", *SMALL)
    assert "--method" in refused(capsys, "entropy", "m.npz", "--method", "exchange")
