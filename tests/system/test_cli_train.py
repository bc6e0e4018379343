"""`annealz train`: table, JSON, one sentence for every bad input, interruption and resume."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from annealz.io.archive import load_archive
from annealz.io.records import save_record
from annealz.models.formats.load import read_model
from annealz.testing import default_seed
from support.command import refused, run, wait_for

KEYS = [
    "file",
    "name",
    "num_hidden",
    "num_visible",
    "data",
    "num_updates",
    "reconstruction_error",
    "pseudo_log_likelihood",
    "exact_log_z",
    "log_likelihood",
    "seconds",
    "digest",
    "series",
    "messages",
]
SMALL = ("--hidden", 4, "--updates", 30, "--batch", 8)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANNEALZ_MNIST", raising=False)
    generator = np.random.default_rng(7)
    np.save("rows.npy", (generator.random((40, 2, 3)) < 0.4).astype(np.uint8))


def test_json_is_one_object_with_the_documented_keys(capsys):
    status, out, err = run(capsys, "train", "rows.npy", "-o", "m.npz", *SMALL, "--json", "--quiet")
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert list(result) == KEYS
    assert result["file"] == "m.npz"
    assert (result["num_hidden"], result["num_visible"], result["num_updates"]) == (4, 6, 30)
    assert result["digest"] == read_model("m.npz")[0].digest
    assert result["log_likelihood"] < 0 < result["exact_log_z"]


def test_the_table_ends_with_the_next_command_and_it_works(capsys):
    status, out, _ = run(capsys, "train", "rows.npy", "--out", "m.npz", *SMALL)
    assert status == 0
    for words in ("4 hidden, 6 visible units", "reconstruction error", "pseudo-likelihood"):
        assert words in out
    assert "annealz estimate m.npz" in out
    status, out, _ = run(capsys, "estimate", "m.npz", "--steps", 50, "--chains", 100)
    assert status == 0
    assert "base-rate" in out


def test_every_setting_reaches_the_file(capsys):
    options = {
        "num_hidden": 4,
        "algorithm": "cd",
        "gibbs_steps": 2,
        "num_updates": 5,
        "learning_rate": 0.3,
        "final_learning_rate": 0.1,
        "weight_decay": 0.01,
        "batch_size": 6,
        "seed": 9,
    }
    names = {"num_hidden": "hidden", "num_updates": "updates", "batch_size": "batch"}
    words = [
        word
        for key, value in options.items()
        for word in (f"--{names.get(key, key).replace('_', '-')}", value)
    ]
    assert run(capsys, "train", "rows.npy", "-o", "m.npz", *words)[0] == 0
    training = read_model("m.npz")[1]["training"]
    assert training.pop("data")["name"] == "rows.npy"
    assert training == options


def test_a_series_is_kept_and_estimated(capsys):
    status, out, _ = run(capsys, "train", "rows.npy", "-o", "m.npz", *SMALL, "--series", 10)
    assert status == 0
    assert "m.training" in out
    assert sorted(p.name for p in Path("m.training").glob("0*.npz")) == [
        "000000010.npz",
        "000000020.npz",
        "000000030.npz",
    ]
    assert run(capsys, "estimate", "m.training/000000010.npz", "--steps", 20)[0] == 0
    status, again, _ = run(capsys, "resume", "m.training")  # done: only shown
    assert (status, again) == (0, out)


# --- refusals: one sentence, and nothing is written -------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.npy", "-o", "m.npz"), "no data file"),
        (("rows.npy",), "Missing option '--out'"),
        (("rows.npy", "-o", "m.txt"), "m.txt must end in .npz"),
        (("rows.npy", "-o", "none/m.npz"), "a folder that does not exist"),
        (("rows.npy", "-o", "folder.npz"), "folder.npz is a folder"),
        (("rows.npy", "-o", "m.npz", "--hidden", 0), "--hidden must be at least 1, got 0"),
        (("rows.npy", "-o", "m.npz", "--algorithm", "x"), "algorithm must be cd or pcd, got 'x'"),
        (("rows.npy", "-o", "m.npz", "--updates", "many"), "Invalid value for '--updates'"),
        (("rows.npy", "-o", "m.npz", "--learning-rate", 0), "--learning-rate must be positive"),
        (("rows.npy", "-o", "m.npz", "--series", 0), "series must be at least 1, got 0"),
        (("rows.npy", "-o", "m.npz", "--seed", -1), "seed must be an integer from 0"),
        (("rows.npy", "-o", "m.npz", "--mnist", "."), "--mnist is for the data set mnist"),
        (("mnist", "-o", "m.npz", "--mnist", "."), "no MNIST in"),
        (("bad.npy", "-o", "m.npz"), "must be finite, got 1 NaN or infinite of 4 values"),
        (("large.npy", "-o", "m.npz"), "data must lie in [0, 1], got values from 2 to 2"),
        (("vector.npy", "-o", "m.npz"), "must hold rows of units"),
        (("text.txt", "-o", "m.npz"), "is not an IDX file"),
    ],
)
def test_bad_input(capsys, arguments, words):
    np.save("bad.npy", [[0.0, np.nan], [1.0, 0.5]])
    np.save("large.npy", np.full((2, 2), 2.0))
    np.save("vector.npy", np.zeros(3))
    Path("text.txt").write_text("hello")
    Path("folder.npz").mkdir()
    before = sorted(Path().rglob("*"))
    assert words in refused(capsys, "train", *arguments)
    assert sorted(Path().rglob("*")) == before


def test_a_model_is_never_overwritten_without_force(capsys):
    Path("m.npz").write_bytes(b"mine")
    assert "--force is needed to overwrite m.npz" in refused(
        capsys, "train", "rows.npy", "-o", "m.npz", *SMALL
    )
    assert Path("m.npz").read_bytes() == b"mine"
    assert run(capsys, "train", "rows.npy", "-o", "m.npz", *SMALL, "--force")[0] == 0
    assert read_model("m.npz")[1]["name"] == "m"


def test_a_training_is_never_overwritten_without_force(capsys):
    Path("m.training").mkdir()
    Path("m.training/run.json").write_text("{}")
    Path("m.training/000000007.npz").touch()
    words = refused(capsys, "train", "rows.npy", "-o", "m.npz", *SMALL)
    assert "annealz resume m.training" in words
    assert "was altered or damaged" in refused(capsys, "resume", "m.training")
    assert run(capsys, "train", "rows.npy", "-o", "m.npz", *SMALL, "--force")[0] == 0
    assert not Path("m.training").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(capsys):
    Path("locked").mkdir(mode=0o555)
    assert "cannot write" in refused(capsys, "train", "rows.npy", "-o", "locked/m.npz", *SMALL)


def test_a_disk_that_refuses_is_named_at_the_front_door(capsys, monkeypatch):
    def refuse(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("annealz.io.store.write_atomic", refuse)
    words = refused(capsys, "train", "nothing.npy", "-o", "m.npz", *SMALL)
    assert "Read-only file system" in words


def test_without_a_network_one_sentence_says_so(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("annealz.training.mnist._CACHE", tmp_path / "cache")
    monkeypatch.setattr("annealz.training.mnist._MIRRORS", ("http://127.0.0.1:9/",))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    words = refused(capsys, "train", "mnist", "-o", "m.npz", *SMALL)
    assert "could not be fetched" in words
    assert not Path("m.training").exists()


def test_a_training_has_no_picture(capsys):
    Path("m.training").mkdir()
    save_record("m.training/run.json", {"method": "training"})
    assert "leave out --plot" in refused(capsys, "resume", "m.training", "--plot", "a.png")


# --- as a process of its own ------------------------------------------------------------------


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "annealz", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def long(name: str, updates: int, *more: object) -> subprocess.Popen:
    words = ("--hidden", 20, "--updates", updates, "--batch", 64, "--gibbs-steps", 2)
    return start("train", "rows.npy", "-o", f"{name}.npz", *words, "--series", updates // 4, *more)


def test_sigkill_then_resume_gives_the_same_bytes(tmp_path: Path):
    """Killed twice at random moments after the first checkpoint; checkpoints every 0.1 s."""
    seed, updates = default_seed(), 40_000
    moments = random.Random(seed)
    Path("whole").mkdir()
    whole = long("whole/m", updates, "--quiet")
    killed = long("m", updates, "--quiet", "--checkpoint-seconds", "0.1")
    checkpoint = Path("m.training/checkpoint-training.npz")
    for attempt in range(2):
        wait_for(checkpoint, killed)
        time.sleep(moments.uniform(0, 0.4))
        killed.kill()
        killed.communicate()
        if attempt == 0:
            assert killed.returncode == -signal.SIGKILL, f"over too soon (seed {seed})"
            assert not Path("m.npz").exists()
            _, meta = load_archive(checkpoint)
            assert 0 < meta["step"] < updates
            killed = start("resume", "m.training", "--quiet")
    if Path("m.training/checkpoint-training.npz").exists():  # the second kill came in time
        last = start("resume", "m.training", "--json", "--quiet")
        out, err = last.communicate()
        assert last.returncode == 0, err
        assert json.loads(out)["file"] == "m.npz"
    _, err = whole.communicate()
    assert whole.returncode == 0, err
    names = ["m.npz", *(f"m.training/{p.name}" for p in Path("whole/m.training").glob("0*.npz"))]
    assert len(names) == 5
    for name in names:
        assert Path(name).read_bytes() == Path("whole", name).read_bytes(), f"{name} (seed {seed})"
    assert not checkpoint.exists()


def test_ctrl_c_is_answered_with_the_command_that_resumes():
    process = long("m", 100_000_000, "--checkpoint-seconds", "0.2")
    wait_for(Path("m.training/checkpoint-training.npz"), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)  # a training of hours: it did not go on to its end
    assert process.returncode == 130, err
    assert out == ""
    assert "annealz: interrupted; resume with: annealz resume m.training\n" in err
    assert "Traceback" not in err
