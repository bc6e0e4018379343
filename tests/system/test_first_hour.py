"""What a newcomer stumbles over: strict exit, own help, missing files, doctor, tables in a pipe."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import annealz
from annealz.cli.main import main
from annealz.core import compilation_cache as programs
from annealz.testing import random_rbm
from support.imports import annealz_in_a_process, imported

HASTY = ["--base", "uniform", "--schedule", "linear", "--no-second-opinion", "--quiet"]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.fixture
def model(tmp_path) -> str:
    path = tmp_path / "m.npz"
    annealz.save_rbm(path, random_rbm(4, 6))
    return str(path)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_strict_tells_scripts_what_cannot_be_trusted(model, more):
    few = [model, "--steps", "20", "--chains", "10", *HASTY, *more]  # too few to be judged
    many = [model, "--steps", "20", "--chains", "100", *HASTY, *more]
    assert run("estimate", *few) == 0
    assert run("estimate", *few, "--strict") == 4
    assert run("estimate", *many, "--strict") == 0


def test_an_error_names_the_help_of_its_command(capsys):
    assert run("estimate", "--bogus") == 2
    assert "see 'annealz estimate --help'" in capsys.readouterr().err
    assert run("bogus") == 2
    assert "see 'annealz --help'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.npz", "folder/missing", "./missing"])
def test_a_missing_file_is_no_such_file(name, capsys):
    assert run("estimate", name) == 2
    assert capsys.readouterr().err == f"annealz: no such file: {name}.\n"


def test_flags_are_shown_without_a_type(capsys):
    assert run("estimate", "--help") == 0
    text = capsys.readouterr().out
    assert "--two-sided" in text
    assert "<bool>" not in text


def test_tables_in_a_pipe_end_where_their_words_end(model, capsys):
    assert run("estimate", model, "--steps", "20", "--chains", "50", *HASTY) == 0
    assert run("models") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 12
    assert [line for line in lines if line != line.rstrip()] == []


def test_the_doctor_finds_what_is_here(capsys):
    assert run("doctor", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["annealz"] == annealz.__version__
    test = found["self-test"]
    assert test["is_passed"]
    assert abs(test["log_z"] - test["exact_log_z"]) < 5 * test["std_err"]


def test_the_doctor_says_so_where_numbers_are_wrong(monkeypatch, capsys):
    import annealz.models.exact as exact

    true = exact.exact_log_z
    monkeypatch.setattr(exact, "exact_log_z", lambda model: true(model) + 1)
    assert run("doctor") == 1
    assert "FAILED" in capsys.readouterr().out


def test_programs_are_kept_where_nobody_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(programs.platformdirs, "user_cache_dir", lambda name: str(tmp_path / name))
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANNEALZ_PROGRAMS", "0")
    programs.keep_programs()
    assert programs.programs_folder() is None
    assert "JAX_COMPILATION_CACHE_DIR" not in programs.os.environ
    monkeypatch.delenv("ANNEALZ_PROGRAMS")
    monkeypatch.setattr(programs.os, "environ", dict(programs.os.environ))
    programs.keep_programs()
    folder = programs.programs_folder()
    assert folder is not None
    assert folder.is_dir()
    assert programs.os.environ["JAX_COMPILATION_CACHE_DIR"] == str(folder)
    assert int(programs.os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]) == 10**9


def test_damaged_programs_are_compiled_again_without_a_word(model, tmp_path):
    command = [
        sys.executable,
        "-m",
        "annealz",
        "estimate",
        model,
        "--steps",
        "20",
        *HASTY,
        "--json",
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    kept["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    kept["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiled twice: half of the time
    found = []
    for _ in range(2):
        done = subprocess.run(command, env=kept, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        found.append(json.loads(done.stdout)["log_z"])
        files = [*(tmp_path / "cache").rglob("*-cache")]
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:50])
    assert found[0] == found[1]


def test_a_small_estimate_imports_what_it_needs(model):
    """A first result waits for its imports: other families, other formats and ArviZ are not among them."""
    done = annealz_in_a_process("estimate", model, "--quiet")
    assert done.returncode == 0
    modules = imported(done.stderr)
    assert "annealz.models.rbm" in modules
    others = {f"annealz.models.formats.{name}" for name in ("hdf5", "julia", "mat", "uai")}
    others |= {f"annealz.models.{name}" for name in ("dbm", "ising", "layered_rbm", "potts")}
    assert not modules & {*others, "arviz_stats", "matplotlib", "optax", "blackjax"}


def test_a_status_is_a_string_and_a_truth():
    estimate = annealz.estimate_log_z(
        random_rbm(4, 6),
        base="uniform",
        schedule="linear",
        num_steps=2e1,
        num_chains=100,
        second_opinion=False,
    )
    assert estimate.num_steps == 20
    assert estimate.ok
    assert estimate.status == "ok"
    assert estimate.status
    assert not annealz.Status.UNRELIABLE
    assert f"{estimate.status}" == "ok"
    assert len(repr(estimate.trace)) < 200
    assert "steps 1 to 20" in repr(estimate.trace)


@pytest.mark.parametrize("steps", [10.5, "many", np.nan, np.inf])
def test_what_is_no_number_of_steps_is_one_sentence(steps):
    with pytest.raises(ValueError, match="num_steps must be a whole number"):
        annealz.estimate_log_z(random_rbm(4, 6), method="exchange", num_steps=steps)
    with pytest.raises(ValueError, match="num_steps must be a whole number"):
        annealz.estimate_log_z(random_rbm(4, 6), num_steps=steps)


def test_a_finished_run_is_not_that_of_another_model(tmp_path):
    options = {"base": "uniform", "schedule": "linear", "num_steps": 20, "num_chains": 50}
    run = annealz.estimate_log_z(
        random_rbm(4, 6), out=tmp_path / "r", second_opinion=False, **options
    )
    assert annealz.resume(tmp_path / "r", model=random_rbm(4, 6)).log_z == run.log_z
    with pytest.raises(ValueError, match="another model than the one given"):
        annealz.resume(tmp_path / "r", model=random_rbm(4, 6, seed=9))


def test_shapes_that_do_not_fit_are_refused_at_once():
    with pytest.raises(ValueError, match=r"need hidden_bias of shape \(3,\), got shape \(4,\)"):
        annealz.RBM(np.zeros((3, 4)), np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError, match=r"weights must be a \(hidden, visible\) matrix"):
        annealz.RBM(np.zeros(3), np.zeros(3), np.zeros(3))


def test_means_of_zero_or_one_are_smoothed_and_said():
    means = np.array([0.0, 0.2, 0.5, 0.9, 1.0, 0.3])
    estimate = annealz.estimate_log_z(
        random_rbm(4, 6), data=means, num_steps=20, num_chains=100, second_opinion=False
    )
    assert estimate.base == "base-rate"
    assert any("of the 6 means of the data 2 are 0 or 1" in one for one in estimate.messages)
    rows = np.repeat(means[None], 1000, axis=0)
    same = annealz.estimate_log_z(
        random_rbm(4, 6), data=rows, num_steps=20, num_chains=100, second_opinion=False
    )
    assert same.log_z == pytest.approx(estimate.log_z, abs=1e-5)
    assert not any("means" in one for one in same.messages)


KEYS = {"weights": "W", "hidden_bias": "c", "visible_bias": "b"}


@pytest.mark.parametrize("turned", [False, True])
def test_a_state_dict_is_read_either_way_round(turned):
    model = random_rbm(4, 6)
    weights = np.asarray(model.weights)
    held = {"W": weights.T if turned else weights, "c": model.hidden_bias, "b": model.visible_bias}
    assert annealz.RBM.from_state_dict(held, KEYS).digest == model.digest
    assert annealz.RBM.from_state_dict(held, KEYS, transpose=turned).digest == model.digest
    with pytest.raises(ValueError, match="need hidden_bias of shape"):
        annealz.RBM.from_state_dict(held, KEYS, transpose=not turned)


def test_a_square_state_dict_must_say_how_it_lies():
    model = random_rbm(4, 4)
    held = {"W": np.asarray(model.weights).T, "c": model.hidden_bias, "b": model.visible_bias}
    with pytest.raises(ValueError, match="give transpose=False or transpose=True"):
        annealz.RBM.from_state_dict(held, KEYS)
    assert annealz.RBM.from_state_dict(held, KEYS, transpose=True).digest == model.digest
    with pytest.raises(ValueError, match=r"state_dict lacks weights, .* it holds W \(4, 4\)"):
        annealz.RBM.from_state_dict({"W": held["W"]})
