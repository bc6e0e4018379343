"""`annealz evidence`: one model with its posterior, several in a table, one sentence for bad input."""

import json

import pytest

from support.command import KEYS, refused, run
from support.conjugate import log_evidence, means

SOURCE = """
from support.conjugate import conjugate

narrow = conjugate(2.0)
number = 3

def wide():
    return conjugate(8.0)
"""
OPTIONS = ["--base", "standard", "--no-second-opinion", "--schedule", "linear", "--steps", 8]
FEW = [*OPTIONS, "--chains", 200]


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_evidence.py").write_text(SOURCE)


def test_one_model_shows_its_posterior(capsys, tmp_path):
    arguments = ["own_evidence.py:narrow", *FEW, "--quiet", "--out", "run"]
    status, out, err = run(capsys, "evidence", *arguments)
    assert (status, err) == (0, "")
    assert "log Z" in out
    line = next(line for line in out.splitlines() if line.startswith("shift"))
    mean, std_err = map(float, line.split()[1:3])
    assert abs(mean - means()["shift"]) < 5 * std_err
    assert (tmp_path / "run" / "result.json").is_file()
    assert not [*(tmp_path / "cache").glob("*")]


def test_several_models_are_one_table_and_one_json_object(capsys):
    models = ["own_evidence.py:wide", "own_evidence.py:narrow"]
    status, out, err = run(capsys, "evidence", *models, *FEW, "--json", "--quiet", "--out", "runs")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert record["best"] == "narrow"
    assert [row["model"] for row in record["models"]] == ["narrow", "wide"]
    assert {*KEYS} < {*record["models"][0]}
    assert {row["model"]: row["seed"] for row in record["models"]} == {"wide": 0, "narrow": 1}
    factor = record["log_bayes_factors"][0]
    truth = log_evidence(2.0) - log_evidence(8.0)
    assert abs(factor["value"] - truth) < 5 * factor["std_err"]
    posterior = record["models"][0]["posterior"]["scale"]
    assert abs(posterior["mean"] - means()["scale"]) < 5 * posterior["std_err"]
    again = refused(capsys, "evidence", *models, *FEW, "--quiet", "--out", "runs")
    assert "already holds a finished run" in again
    assert "wide" in again


def test_the_table_names_what_cannot_be_trusted(capsys, tmp_path):
    models = ["own_evidence.py:wide", "own_evidence.py:narrow"]
    status, out, err = run(capsys, "evidence", *models, *OPTIONS, "--chains", 10)
    assert status == 0
    assert "own_evidence.py:narrow, 2 of 2" in err
    assert "best model" in out
    assert "log Z of wide cannot be trusted: chains are too few" in out
    assert "try --chains 100" in out
    assert not [*(tmp_path / "cache").glob("*")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["own_evidence.py:number"], "must be an annealz model"),
        (["own_evidence.py:narrow"] * 2, "the models must differ"),
        (["own_evidence.py:narrow", "own_evidence.py:wide", "--plot", "x.png"], "of one model"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_gets_one_line(capsys, arguments, words):
    assert words in refused(capsys, "evidence", *arguments)
