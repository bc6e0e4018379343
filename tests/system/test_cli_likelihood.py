"""`annealz likelihood`: table, JSON, files, one sentence for every bad input, interruption."""

import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.models.exact import exact_samples
from annealz.models.formats.load import read_model
from annealz.models.formats.npz import save_rbm
from annealz.testing import random_rbm
from support.command import KEYS as ESTIMATE_KEYS
from support.command import PLAIN, refused, run, wait_for

KEYS = [
    "model",
    "data",
    "num_examples",
    "log_likelihood",
    "std_err",
    "std_err_log_z",
    "std_err_data",
    "interval",
    "interval_log_z",
    "exact_log_likelihood",
    "conservative",
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
    monkeypatch.delenv("ANNEALZ_MNIST", raising=False)
    save_rbm("m.npz", MODEL, {"name": "m"})
    np.save("rows.npy", exact_samples(MODEL, 40)[0].reshape(40, 2, 3).astype(np.uint8))


def test_json_is_one_object_with_the_documented_keys(capsys):
    status, out, err = run(capsys, "likelihood", "m.npz", "rows.npy", *SMALL, "--json", "--quiet")
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert list(result) == KEYS
    assert list(result["estimate"]) == ESTIMATE_KEYS
    assert (result["model"], result["data"], result["num_examples"]) == ("m", "rows.npy", 40)
    assert result["interval"][0] < result["log_likelihood"] < result["interval"][1]
    assert (
        result["interval_log_z"][0] < result["exact_log_likelihood"] < result["interval_log_z"][1]
    )
    assert result["conservative"] is None
    assert list(Path("cache").iterdir()) == []


def test_the_table_keeps_the_errors_apart(capsys):
    status, out, _ = run(capsys, "likelihood", "m.npz", "rows.npy", *SMALL)
    assert status == 0
    for words in ("rows.npy, 40 examples", "error of the data", "error of log Z", "exact", "ESS"):
        assert words in out


@pytest.mark.parametrize("name", ["v.npy", "v.csv"])
def test_every_example_to_a_file(capsys, name: str):
    command = ("likelihood", "m.npz", "rows.npy", *SMALL, "--per-example", name)
    status, out, _ = run(capsys, *command, "--json")
    assert status == 0
    if name == "v.npy":
        values = np.load(name)
    else:
        header, *lines = Path(name).read_text().splitlines()
        assert header == "example,log_likelihood"
        assert [line.split(",")[0] for line in lines] == [str(i) for i in range(40)]
        values = np.array([float(line.split(",")[1]) for line in lines])
    assert values.shape == (40,)
    assert values.mean() == pytest.approx(json.loads(out)["log_likelihood"], abs=1e-9)
    assert f"{name} exists" in refused(capsys, *command)
    assert run(capsys, *command, "--force")[0] == 0


@pytest.fixture
def sequences() -> np.ndarray:
    """All sequences of a Potts model in p.npz, of four units and the states -ACGU, in s.fasta."""
    generator = np.random.default_rng(0)
    couplings = np.triu(generator.normal(0, 0.7, (4, 4)), 1)
    model = annealz.Potts(couplings + couplings.T, 5, generator.normal(0, 0.5, (4, 5)))
    annealz.save_model("p.npz", model)
    rows = np.array(list(itertools.product(range(5), repeat=4)))
    records = [f">s{i} x\n{''.join('-ACGU'[k] for k in row)}\n" for i, row in enumerate(rows)]
    Path("s.fasta").write_text("".join(records))
    same = rows[:, :, None] == rows[:, None, :]
    fields = np.asarray(model.fields, np.float64)[np.arange(4), rows].sum(1)
    return (same * np.asarray(model.couplings, np.float64)).sum((1, 2)) / 2 + fields


POTTS = ("--steps", 50, "--chains", 100, "--schedule", "linear", "--base", "uniform")
POTTS += ("--no-second-opinion",)


def test_sequences_in_fasta_have_the_probabilities_of_enumeration(capsys, sequences: np.ndarray):
    command = ("likelihood", "p.npz", "s.fasta", *POTTS, "--per-example", "v.csv", "--json")
    status, out, err = run(capsys, *command, "--quiet")
    assert (status, err) == (0, "")
    result = json.loads(out)
    header, *lines = Path("v.csv").read_text().splitlines()
    assert header == "example,log_likelihood,name"
    assert [line.split(",")[2] for line in lines] == [f"s{i}" for i in range(625)]
    values = np.array([float(line.split(",")[1]) for line in lines])
    np.testing.assert_allclose(values, sequences - result["estimate"]["log_z"], atol=1e-5)
    assert abs(logsumexp(values)) < 5 * result["std_err_log_z"]
    assert (result["data"], result["num_examples"]) == ("s.fasta", 625)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (">a\nACGU\n>b\nACXU\n", "'X' at place 3 of 'b'"),
        (">a\nACGU\n>b\nACcGU\n", "sed '/^>/!s/[a-z.]//g'"),
        (">a\nACGU\n>b\nACG\n", "aligned sequences of one length"),
        (">a\nACGUA\n", "5 units per row and the model 4 visible units"),
        ("ACGU\n", "is not a FASTA file"),
        (">a\n", "has no letters"),
    ],
)
@pytest.mark.usefixtures("sequences")
def test_sequences_that_do_not_fit_are_one_sentence(capsys, text: str, words: str):
    Path("bad.fasta").write_text(text)
    assert words in refused(capsys, "likelihood", "p.npz", "bad.fasta", *POTTS, "--quiet")


@pytest.mark.usefixtures("sequences")
def test_what_sequences_do_not_fit(capsys):
    assert "5 states, got 21" in refused(
        capsys, "likelihood", "p.npz", "s.fasta", "--alphabet", "protein", "--quiet"
    )
    assert "the model has 2 states" in refused(capsys, "likelihood", "m.npz", "s.fasta", "--quiet")
    assert "alphabet is for sequences" in refused(
        capsys, "likelihood", "m.npz", "rows.npy", "--alphabet", "rna", "--quiet"
    )
    assert "conservative is for RBMs" in refused(
        capsys, "likelihood", "p.npz", "s.fasta", "--conservative", "--quiet"
    )


def test_a_file_that_cannot_be_written_still_shows_the_result(capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annealz.cli.estimate.write_atomic", full)
    command = ("likelihood", "m.npz", "rows.npy", *SMALL, "--per-example", "v.npy", "--json")
    status, out, err = run(capsys, *command, "--quiet")
    assert status == 2
    assert "log_likelihood" in json.loads(out)
    assert err == "annealz: cannot write v.npy: No space left on device.\n"
    assert list(Path("cache").iterdir()) == []


def test_log_z_of_a_run_that_was_kept(capsys):
    """The same number as that of the run, and no second one is made."""
    estimate = json.loads(run(capsys, "estimate", "m.npz", *SMALL, "--out", "kept", "--json")[1])
    command = ("likelihood", "m.npz", "rows.npy", "--run", "kept", "--json", "--quiet")
    status, out, _ = run(capsys, *command)
    assert status == 0
    assert json.loads(out)["estimate"] == estimate
    assert "--steps, --seed would make another" in refused(
        capsys, *command, "--steps", 5, "--seed", 3
    )
    save_rbm("other.npz", random_rbm(4, 6, seed=4))
    assert "is that of another model, m" in refused(
        capsys, "likelihood", "other.npz", "rows.npy", "--run", "kept"
    )
    assert "holds no run" in refused(capsys, "likelihood", "m.npz", "rows.npy", "--run", "none")


def test_results_go_to_the_folder_of_out(capsys):
    command = ("likelihood", "m.npz", "rows.npy", *SMALL, "--out", "kept", "--json", "--quiet")
    first = json.loads(run(capsys, *command)[1])
    again = json.loads(run(capsys, "resume", "kept", "--json", "--quiet")[1])
    assert first["estimate"] == again
    assert "already holds a finished run" in refused(capsys, *command)


def test_the_default_data_are_the_test_split(capsys, tmp_path):
    """Of a packaged model, and of one that was trained on mnist; others are asked for."""
    (tmp_path / "empty").mkdir()
    assert "t10k-images" in refused(capsys, "likelihood", "mnist-cd1-20", "--mnist", "empty")
    save_rbm("digits.npz", MODEL, {"training": {"data": {"name": "mnist"}}})
    assert "t10k-images" in refused(capsys, "likelihood", "digits.npz", "--mnist", "empty")
    assert "DATA is missing: give mnist-test" in refused(capsys, "likelihood", "m.npz")
    assert "train-images" in refused(
        capsys, "likelihood", "mnist-cd1-20", "mnist", "--mnist", "empty"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.npy",), "no data file"),
        (("narrow.npy",), "narrow.npy has 5 units per row and the model 6 visible units"),
        (("large.npy",), "data must lie in [0, 1]"),
        (("rows.npy", "--per-example", "v.txt"), "v.txt must end in one of .npy, .csv"),
        (("rows.npy", "--per-example", "none/v.npy"), "a folder that does not exist"),
        (("rows.npy", "--mnist", "."), "--mnist is for the data set mnist"),
        (("rows.npy", "--steps", 0), "--steps must be"),
        (("rows.npy", "--base", "nope"), "auto, base-rate, uniform, visible-bias"),
        (("rows.npy", "--seed", -1), "seed"),
    ],
)
def test_bad_input(capsys, arguments, words):
    np.save("narrow.npy", np.zeros((3, 5)))
    np.save("large.npy", np.full((3, 6), 7.0))
    before = {path for path in Path().rglob("*") if path.name != "cache"}
    assert words in refused(capsys, "likelihood", "m.npz", *arguments)
    assert {path for path in Path().rglob("*") if path.name != "cache"} == before


def test_a_model_trained_on_rows_is_asked_about_them(capsys):
    """The likelihood of the training data is that of the table of the training."""
    np.save("grey.npy", np.random.default_rng(0).random((60, 6)))
    trained = run(
        capsys, "train", "grey.npy", "-o", "t.npz", "--hidden", 4, "--updates", 20, "--json"
    )
    status, out, _ = run(capsys, "likelihood", "t.npz", "grey.npy", *SMALL, "--json")
    assert status == 0
    assert read_model("t.npz")[0].num_hidden == 4
    assert json.loads(out)["exact_log_likelihood"] == pytest.approx(
        json.loads(trained[1])["log_likelihood"], abs=1e-9
    )


def test_an_interruption_after_log_z_keeps_it(capsys, monkeypatch):
    """In the scratch folder, until the command that was printed has used it."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("annealz.results.likelihood.log_likelihood", interrupt)
        status, out, err = run(
            capsys, "likelihood", "m.npz", "rows.npy", *SMALL, "--per-example", "v w.npy"
        )
    assert (status, out) == (130, "")
    words = shlex.split(err.split("annealz: interrupted; resume with: annealz ")[1])
    status, out, _ = run(capsys, *words, "--json")
    assert status == 0
    assert json.loads(out)["estimate"]["num_steps"] == 50
    assert np.load("v w.npy").shape == (40,)
    assert list(Path("cache").iterdir()) == []


def test_ctrl_c_is_answered_with_the_command_that_goes_on(tmp_path: Path):
    command = [sys.executable, "-m", "annealz", "likelihood", "m.npz", "rows.npy"]
    words = ["--steps", "1000000", "--schedule", "linear", "--chains", "100", *PLAIN]
    process = subprocess.Popen(
        [*command, *words, "--out", "kept", "--checkpoint-seconds", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    wait_for(Path("kept/checkpoint-forward-1.npz"), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)  # a run of hours: it did not go on to its end
    assert (process.returncode, out) == (130, "")
    assert "resume with: annealz likelihood m.npz rows.npy --run kept" in err
    assert "Traceback" not in err
