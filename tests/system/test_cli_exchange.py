"""`annealz estimate --method exchange`: JSON, table, files, interruption, options that do not fit."""

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from annealz.engine.progress import Progress
from support.command import KEYS, run

SMALL = ("--rungs", "4", "--ensembles", "8", "--steps", "128", "--method", "exchange")
SMALL += ("--base", "visible-bias")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    generator = np.random.default_rng(5)
    path = tmp_path / "small.npz"
    np.savez(
        path,
        weights=generator.normal(0, 0.5, (4, 6)),
        hidden_bias=generator.normal(size=4),
        visible_bias=generator.normal(size=6),
    )
    return path


def test_json_has_the_keys_of_an_estimate_and_the_rounds(capsys, model: Path):
    status, out, _ = run(capsys, "estimate", model, *SMALL, "--json", "--quiet")
    result = json.loads(out)
    assert status == 0
    assert {*result} >= {*KEYS}
    assert result["method"] == "exchange"
    assert result["status"] == "ok"
    assert result["num_steps"] == 128
    assert result["num_chains"] == 32
    assert result["sweeps"] == {"pilot": 0, "main": 128 * 32}
    assert abs(result["log_z"] - result["exact_log_z"]) < 6 * result["std_err"]
    assert [one["sweeps"] for one in result["rounds"]] == [32, 32, 64]
    assert set(result["rounds"][0]) == {"sweeps", "barrier", "log_z", "std_err", "round_trips"}


def test_the_table_shows_the_rounds(capsys, model: Path):
    status, out, _ = run(capsys, "estimate", model, *SMALL, "--plot", "p.png", "--report", "r.html")
    assert status == 0
    assert re.search(r"^method +replica exchange, 128 sweeps", out, re.MULTILINE)
    assert re.search(r"^ladder +4 temperatures, barrier 0\.\d\d", out, re.MULTILINE)
    assert re.search(r"round +sweeps +barrier +log Z +round trips", out)
    assert re.search(r"^ *3 +64 +0\.\d\d +\d\.\d{4} ± 0\.\d{4} +\d+", out, re.MULTILINE)
    assert Path("p.png").stat().st_size > 10_000
    page = Path("r.html").read_text()
    assert "Replica exchange" in page
    assert page.count("<svg") == 2
    command = re.sub(r"<[^>]+>", "", page)
    assert (
        f"annealz estimate {model} --method exchange --base visible-bias --steps 128 --rungs 4 "
        "--ensembles 8 --seed 0" in " ".join(command.split())
    )


def test_a_run_is_cut_off_resumed_and_reported(capsys, model: Path, monkeypatch):
    status, whole, _ = run(capsys, "estimate", model, *SMALL, "--out", "whole", "--json", "--quiet")
    assert status == 0
    calls = []

    def interrupt(now: Progress) -> None:
        calls.append(now)
        if now.stage == "exchange" and now.step > 40:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def shown(*_, **__):
        yield interrupt

    with monkeypatch.context() as patch:
        patch.setattr("annealz.views.progress.live_report", shown)
        status, out, err = run(capsys, "estimate", model, *SMALL, "--out", "cut")
    assert (status, out) == (130, "")
    assert "interrupted; resume with: annealz resume cut" in err
    status, _, err = run(capsys, "report", "cut")
    assert status == 2
    assert "unfinished run" in err
    status, out, _ = run(capsys, "resume", "cut", "--json", "--quiet")
    assert status == 0
    one, two = json.loads(whole), json.loads(out)
    for result in (one, two):
        result.pop("seconds")
    assert one == two
    assert json.loads(Path("cut/result.json").read_text())["log_z"] == one["log_z"]
    status, out, _ = run(capsys, "report", "cut")
    assert status == 0
    assert "Replica exchange" in Path("cut/report.html").read_text()
    status, _, err = run(capsys, "estimate", model, *SMALL, "--out", "cut")
    assert status == 2
    assert "already holds a finished run" in err


def test_a_scratch_folder_is_dropped(capsys, model: Path, tmp_path: Path):
    assert run(capsys, "estimate", model, *SMALL, "--quiet")[0] == 0
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rungs", "1"], "--rungs must be at least 2, got 1"),
        (["--ensembles", "4"], "--ensembles must be at least 5, got 4"),
        (["--ensembles", "1000000000000"], "GiB of memory"),
        (["--steps", "3"], "--steps must be at least 16, got 3"),
        (["--schedule", "linear"], "--schedule does not fit --method exchange"),
        (["--chains", "100"], "--chains does not fit --method exchange"),
        (["--target-std-err", "0.1"], "--target-std-err does not fit --method exchange"),
        (["--max-seconds", "9"], "--max-seconds does not fit --method exchange"),
        (["--two-sided"], "--two-sided does not fit --method exchange"),
        (["--resample", "0.5"], "--resample does not fit --method exchange"),
        (["--along", "0.5"], "--along does not fit --method exchange"),
        (["--method", "guess"], "--method must be one of annealing, exchange, nested, got 'guess'"),
        (["--method", "annealing"], "--rungs belongs to --method exchange"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    capsys, model: Path, options: list[str], words: str
):
    status, out, err = run(capsys, "estimate", model, *SMALL, *options, "--quiet")
    assert (status, out) == (2, "")
    assert err.startswith("annealz: ")
    assert err.count("\n") == 1
    assert words in err


def test_an_unreliable_run_says_what_to_type(capsys):
    words = (
        "mnist-cd1-20",
        "--method",
        "exchange",
        "--rungs",
        "3",
        "--ensembles",
        "5",
        "--steps",
        "16",
    )
    status, out, _ = run(capsys, "estimate", *words, "--report", "r.html")
    assert status == 0
    assert "no replica went from the base to the target and back" in out
    assert "> annealz estimate mnist-cd1-20 --method exchange --steps 64 --rungs 3" in out
    assert "What to try next" in Path("r.html").read_text()


def test_the_likelihood_of_data_takes_log_z_from_such_a_run(capsys, model: Path):
    np.save("rows.npy", np.eye(6, dtype=np.uint8))
    assert run(capsys, "estimate", model, *SMALL, "--out", "run", "--quiet")[0] == 0
    status, out, _ = run(capsys, "likelihood", model, "rows.npy", "--run", "run", "--quiet")
    assert status == 0
    assert "replica exchange, 128 sweeps" in out
    options = ("--run", "run", "--conservative", "--quiet")
    status, _, err = run(capsys, "likelihood", model, "rows.npy", *options)
    assert status == 2
    assert "conservative follows the schedule of an estimate by annealing" in err
