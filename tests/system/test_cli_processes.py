"""The command line as a process of its own: killed, interrupted, resumed, and one folder for two."""

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

from annealz import resume
from annealz.io.archive import load_archive
from annealz.testing import default_seed
from support.command import wait_for

COMMAND = [
    sys.executable, "-m", "annealz", "estimate", "mnist-cd1-20", "--chains", "64",
    "--schedule", "linear", "--base", "visible-bias", "--no-second-opinion",
]  # fmt: skip


def start(out: Path, steps: int, *arguments: str) -> subprocess.Popen:
    environment = {**os.environ, "XDG_CACHE_HOME": str(out.parent / "cache")}
    return subprocess.Popen(
        [*COMMAND, "--steps", str(steps), "--out", str(out), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_sigkill_then_resume_gives_the_same_bits(tmp_path: Path):
    """Killed twice at random moments after the first checkpoint; checkpoints every 0.2 s."""
    seed = default_seed()
    steps, moments = 4000, random.Random(seed)
    whole = start(tmp_path / "whole", steps, "--json", "--quiet")
    killed = start(tmp_path / "killed", steps, "--quiet", "--checkpoint-seconds", "0.2")
    wait_for(tmp_path / "killed" / "checkpoint-forward-1.npz", killed)
    time.sleep(moments.uniform(0, 0.5))
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL, f"the run was over too soon (seed {seed})"
    assert not (tmp_path / "killed" / "part-forward-1.npz").exists()
    _, meta = load_archive(tmp_path / "killed" / "checkpoint-forward-1.npz")
    assert 0 < meta["step"] < steps
    resumed = subprocess.run(
        [sys.executable, "-m", "annealz", "resume", str(tmp_path / "killed"), "--json", "--quiet"],
        capture_output=True,
        text=True,
    )
    assert resumed.returncode == 0, resumed.stderr
    out, err = whole.communicate()
    assert whole.returncode == 0, err
    assert json.loads(resumed.stdout)["log_z"] == json.loads(out)["log_z"]
    one, two = (
        load_archive(tmp_path / name / "part-forward-1.npz")[0] for name in ("whole", "killed")
    )
    for name in one:
        assert np.array_equal(one[name], two[name]), f"{name} differs (seed {seed})"


def test_ctrl_c_is_answered_at_once_with_the_command_that_resumes(tmp_path: Path):
    process = start(tmp_path / "run", 1_000_000, "--checkpoint-seconds", "0.2")
    wait_for(tmp_path / "run" / "checkpoint-forward-1.npz", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)  # a run of minutes: it did not go on to its end
    assert process.returncode == 130, err
    assert out == ""
    assert f"annealz resume {tmp_path / 'run'}" in err
    assert "Traceback" not in err


def test_a_polite_kill_saves_and_says_how_to_go_on(tmp_path: Path):
    process = start(tmp_path / "run", 1_000_000, "--checkpoint-seconds", "0.2")
    wait_for(tmp_path / "run" / "checkpoint-forward-1.npz", process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert out == ""
    assert f"annealz resume {tmp_path / 'run'}" in err
    assert "Traceback" not in err


def test_a_second_ctrl_c_ends_at_once_and_quietly(tmp_path: Path):
    process = start(tmp_path / "run", 1_000_000, "--checkpoint-seconds", "0.2")
    wait_for(tmp_path / "run" / "checkpoint-forward-1.npz", process)
    for _ in range(20):  # one of them while another is being answered
        process.send_signal(signal.SIGINT)
        time.sleep(0.001)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    _, meta = load_archive(tmp_path / "run" / "checkpoint-forward-1.npz")
    assert meta["step"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_at_start_up_or_at_the_end_is_answered_cleanly(number):
    """While JAX is being imported, where an exception may be lost or turned into another, and after it."""
    status = {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    moments, seen = random.Random(default_seed()), []
    for _ in range(6):
        command = [sys.executable, "-m", "annealz", "models", "--json"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(moments.uniform(0.2, 1.6))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        seen.append((process.returncode, err))
    assert {*seen} <= {(status, "annealz: interrupted.\n"), (0, "")}, seen


INTERRUPTED = """
import gc, os, signal, sys
from annealz.__main__ import main
import annealz.cli.tools

def hidden(*_):
    if not done:
        done.append(1)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            pass

def commanded():
    gc.callbacks.append(hidden)
    gc.collect()
    gc.callbacks.remove(hidden)
    return {}

done = []
annealz.cli.tools.packaged_models = commanded
sys.argv = ["annealz", "models"]
main()
"""


def test_an_interruption_is_not_lost_where_errors_go_nowhere():
    """JAX has a callback of the garbage collector, in which an exception is told and dropped."""
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "annealz: interrupted.\n")


WAITING = """
import os, signal, sys, time
from annealz.__main__ import main
import annealz.cli.tools

def waits():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(100)

annealz.cli.tools.packaged_models = waits
sys.argv = ["annealz", "models"]
main()
"""


def test_an_interruption_does_not_wait_for_what_takes_long():
    ended = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (130, "annealz: interrupted.\n")


def test_of_several_processes_in_one_folder_one_runs(tmp_path: Path):
    processes = [start(tmp_path / "run", 3000, "--json", "--seed", str(i)) for i in range(2)]
    ends = [(process.communicate(timeout=300), process.returncode) for process in processes]
    done = [i for i, (_, code) in enumerate(ends) if code == 0]
    assert len(done) == 1, ends
    assert all(code in (0, 2) for _, code in ends)
    for i, ((_, err), code) in enumerate(ends):
        if i not in done:
            assert code == 2
            assert "is in use by another process" in err or "already holds" in err
    result = json.loads(ends[done[0]][0][0])
    kept = resume(tmp_path / "run")
    assert (kept.log_z, kept.seed) == (result["log_z"], result["seed"])
    assert not (tmp_path / "run" / ".lock").exists()


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("JAX_PLATFORMS", "nonsense", "no device to compute on with JAX_PLATFORMS=nonsense"),
        ("JAX_PLATFORMS", "cuda", "no device to compute on with JAX_PLATFORMS=cuda"),
        ("JAX_TRANSFER_GUARD", "disallow", "JAX_TRANSFER_GUARD forbids transfers"),
        ("PYTHONOPTIMIZE", "2", "PYTHONOPTIMIZE=2 and python -OO remove docstrings"),
    ],
)
def test_settings_that_cannot_work_are_one_sentence(variable: str, value: str, words: str):
    ended = subprocess.run(
        [*COMMAND, "--steps", "20"],
        capture_output=True,
        text=True,
        env={**os.environ, variable: value},
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_closed_output_is_one_sentence():
    command = f"exec {sys.executable} -m annealz estimate --steps 20 >&-"
    ended = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("annealz: standard output is closed")
