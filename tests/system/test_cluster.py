"""Clusters of real processes: the command line with its defaults, and what is killed at a random moment."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.engine import cluster as engine
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.testing import default_seed, random_rbm
from support.clusters import SOURCE, WAIT, Processes, processes
from support.command import refused, run, wait_for

MODEL = random_rbm(6, 9, 1.0, seed=3)
SHORT = ["--steps", "300", "--chains", "2048", "--schedule", "linear", "--base", "visible-bias"]
SHORT += ["--no-second-opinion", "--seed", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An RBM in a file, and a module with an Ising model and a density, which workers can import."""
    folder = tmp_path_factory.mktemp("models")
    annealz.save_rbm(folder / "rbm.npz", MODEL)
    (folder / "own.py").write_text(
        "import annealz, jax.numpy as jnp\n"
        "ising = annealz.Ising.square((4, 4), 0.3)\n"
        "density = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), 2)\n"
    )
    return folder


@pytest.fixture
def model(folder: Path) -> Path:
    return folder / "rbm.npz"


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Processes]:
    with processes(folder, 2) as cluster:
        yield cluster


# --- the command line -------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["rbm.npz", "own:ising", "own:density"])
def test_defaults_give_the_same_bits(capsys, model: str, folder: Path, cluster, monkeypatch):
    """Base, schedule and second opinion as they are chosen by default."""
    monkeypatch.chdir(folder)
    command = "estimate", model, "--steps", "200", "--chains", "100", "--json"
    status, there, said = run(capsys, *command, "--cluster", cluster.file)
    assert status == 0, said
    found, known = json.loads(there), json.loads(run(capsys, *command)[1])
    for result in (found, known):
        del result["seconds"], result["messages"]  # that some threads had nothing to do
    assert found == known


def test_local_processes(capsys, folder: Path, monkeypatch):
    """Started by the command, all on 127.0.0.1, and a module of the current folder."""
    monkeypatch.chdir(folder)
    command = "estimate", "own:ising", "--steps", "50", "--json"
    status, there, said = run(capsys, *command, "--cluster", "2")
    assert status == 0, said
    assert "annealz: 2 workers with " in said
    _, here, _ = run(capsys, *command)
    assert json.loads(there)["log_z"] == json.loads(here)["log_z"]


def test_what_is_refused(capsys, model: Path):
    for command in (["estimate", str(model)], ["compare", str(model)]):
        said = refused(capsys, *command, "--cluster", "nowhere.json")
        assert "cannot read nowhere.json: No such file or directory." in said


def test_all_workers_are_lost(capsys, model: Path, tmp_path: Path, monkeypatch):
    """One sentence and status 3; then to the same result without a cluster."""
    monkeypatch.setattr(engine, "_LOOK_SECONDS", 0.1)
    command = ["estimate", model, *SHORT, "--steps", "2000"]
    with processes(tmp_path, 1) as cluster:
        real = engine.ClusterWorkers.call

        def call(self, method: str, rows: Any):
            if method == "advance" and rows[0][1]:
                monkeypatch.setattr(engine, "WAIT_SECONDS", 0.3)
                cluster.workers[0].kill()
            return real(self, method, rows)

        monkeypatch.setattr(engine.ClusterWorkers, "call", call)
        status, _, said = run(
            capsys, *command, "--out", tmp_path / "run", "--cluster", cluster.file,
            "--checkpoint-seconds", "0",
        )  # fmt: skip
    assert status == 3
    assert f"annealz: all workers at {cluster.address} are gone, and none came within" in said
    assert said.endswith(f"Resume with: annealz resume {tmp_path / 'run'}\n")
    resumed = annealz.resume(tmp_path / "run")
    again = json.loads(run(capsys, *command, "--json")[1])
    assert (resumed.log_z, resumed.std_err) == (again["log_z"], again["std_err"])


def test_a_scheduler_that_is_killed_and_a_run_that_goes_on(model: Path, tmp_path: Path):
    """One sentence and status 3; then to the same result, with another cluster."""
    long = [*SHORT, "--steps", "5000"]
    with processes(tmp_path, 1) as cluster:
        command = [sys.executable, "-m", "annealz", "estimate", str(model), *long, "--quiet"]
        command += ["--out", str(tmp_path / "run"), "--checkpoint-seconds", "0"]
        process = subprocess.Popen(
            [*command, "--cluster", str(cluster.file)],
            env=os.environ | {"PYTHONPATH": SOURCE},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(tmp_path / "run" / "checkpoint-forward-1.npz", process)
        cluster.scheduler.kill()
        _, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 3, errors
    assert errors == (
        f"annealz: the connection to the scheduler at {cluster.address} is lost.  Resume with: "
        f"annealz resume {tmp_path / 'run'}\n"
    )
    with processes(tmp_path, 1) as other, distributed.Client(other.address) as client:
        resumed = annealz.resume(tmp_path / "run", client=client)
    again = annealz.estimate_log_z(
        model, num_steps=5000, num_chains=2048, schedule="linear", base="visible-bias",
        second_opinion=False, seed=1,
    )  # fmt: skip
    np.testing.assert_array_equal(resumed.run.log_weights, again.run.log_weights)


# --- what is killed ---------------------------------------------------------------------------

PATH = GeometricPath(BernoulliBase.uniform(9), MODEL, "visible")
CHAINS, STEPS = 6000, 20_000
OPTIONS = {"num_chains": CHAINS, "seed": 1}
DISTURBANCES = ("one is killed", "two of four are killed", "one comes", "the scheduler is killed")


def _anneal(num_steps: int = STEPS, **options: Any):
    return annealz.anneal(PATH, BlockGibbs(), annealz.linear(num_steps), **OPTIONS, **options)


def _exchange(**options: Any):
    return annealz.exchange(
        PATH, BlockGibbs(), num_rungs=8, num_ensembles=600, num_sweeps=2000, seed=1, **options
    )


def _bits(result: Any) -> list[np.ndarray]:
    if hasattr(result, "rounds"):
        return [array for one in result.rounds for array in (one.betas, one.values, one.log_ratios)]
    return [result.log_weights, result.states, result.trace.means["slope"]]


RUNS: dict[str, Callable] = {
    "forward": _anneal,
    "resampled": lambda **options: _anneal(resample=0.9, **options),
    "exchange": _exchange,
}


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, list[np.ndarray]]:
    return {name: _bits(make()) for name, make in RUNS.items()}


def test_a_worker_killed_in_the_middle_changes_no_bit(cluster: Processes):
    cluster.add(1)
    with distributed.Client(cluster.address, timeout=20, set_as_default=False) as client:
        client.wait_for_workers(len(cluster.workers), timeout=WAIT)
        killed = []

        def kill(now) -> None:
            if now.step >= 100 and not killed:
                killed.append(cluster.workers.pop())
                killed[0].kill()
                killed[0].wait()

        there = _anneal(200, client=client, chunk_steps=50, on_progress=kill)
    assert killed
    for one, other in zip(_bits(there), _bits(_anneal(200)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(20))
def test_disturbed_runs_end_in_the_same_bits(trial: int, undisturbed, tmp_path: Path):
    """Something happens at a random moment of the run."""
    chance = random.Random(f"{default_seed()} {trial}")
    what = DISTURBANCES[trial % len(DISTURBANCES)]
    name = list(RUNS)[trial % len(RUNS)]
    checkpoint = tmp_path / "checkpoint.npz"
    options = {"checkpoint": checkpoint, "checkpoint_seconds": 1}
    with processes(tmp_path, 4 if "four" in what else 2) as cluster:
        happened = threading.Event()

        def disturb() -> None:
            if what == "one comes":
                cluster.add(1)
            elif what == "the scheduler is killed":
                cluster.scheduler.send_signal(signal.SIGKILL)
            else:
                for worker in chance.sample(cluster.workers, 2 if "two" in what else 1):
                    worker.send_signal(signal.SIGKILL)
            happened.set()

        with distributed.Client(cluster.address, timeout=20, set_as_default=False) as client:
            client.wait_for_workers(len(cluster.workers), timeout=WAIT)
            timers: list[threading.Timer] = []

            def start_clock(now) -> None:
                if not timers:  # once it is compiled
                    timers.append(threading.Timer(chance.uniform(0, 5), disturb))
                    timers[0].start()

            try:
                result = RUNS[name](client=client, on_progress=start_clock, **options)
            except annealz.LostCluster:
                assert what == "the scheduler is killed"
                result = RUNS[name](**options)
            timers[0].cancel()
    print(f"{name}, {what}: {'happened' if happened.is_set() else 'too late'}")
    for one, other in zip(_bits(result), undisturbed[name], strict=True):
        np.testing.assert_array_equal(one, other)
