"""A method of another package, found by its entry point: `examples/importance_sampling`."""

import json
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.testing import assert_within_mc_error, random_rbm
from support.command import refused, run
from support.packages import write_package
from support.places import ROOT

MODEL = random_rbm(5, 8, scale=0.2)


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, "declares", "", methods="importance = importance_sampling:METHOD")
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    np.savez(
        "m.npz",
        weights=MODEL.weights,
        hidden_bias=MODEL.hidden_bias,
        visible_bias=MODEL.visible_bias,
    )


def test_python_finds_it_by_name(tmp_path: Path):
    options = {"method": "importance", "base": "uniform", "num_chains": 4000, "seed": 3}
    estimate = annealz.estimate_log_z(MODEL, out="run", **options)
    assert_within_mc_error(estimate.log_z, annealz.exact_log_z(MODEL), estimate.std_err)
    assert estimate.status is annealz.Status.OK
    assert estimate.method == "importance"
    again = annealz.resume("run")
    assert (again.log_z, again.std_err) == (estimate.log_z, estimate.std_err)
    annealz.estimate_log_z(MODEL, **options).report("page.html")
    assert "importance" in Path("page.html").read_text()


def test_the_command_line_finds_it_by_name(capsys):
    words = ["estimate", "m.npz", "--method", "importance", "--base", "uniform", "--chains", 2000]
    status, out, _ = run(capsys, *words, "--json", "--quiet")
    assert status == 0
    result = json.loads(out)
    assert result["method"] == "importance"
    assert abs(result["log_z"] - result["exact_log_z"]) < 6 * result["std_err"]
    assert "--two-sided" in refused(capsys, *words, "--two-sided")


def test_it_is_short():
    source = (ROOT / "examples" / "importance_sampling" / "__init__.py").read_text()
    assert len(source.splitlines()) < 80
