"""Clusters of real processes: the command line, TLS, garbage, and what is killed at a random moment."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

import annealz
from annealz.bases import BernoulliBase
from annealz.kernels import BlockGibbs
from annealz.paths import GeometricPath
from annealz.testing import default_seed, random_rbm
from support.clusters import SOURCE, WAIT, processes
from support.command import refused, run, wait_for

MODEL = random_rbm(6, 9, 1.0, seed=3)


# --- the command line -------------------------------------------------------------------------

SHORT = ["--steps", "300", "--chains", "2048", "--schedule", "linear", "--base", "visible-bias"]
SHORT += ["--no-second-opinion", "--seed", "1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("model") / "model.npz"
    annealz.save_rbm(file, MODEL)
    return file


def test_local_processes(capsys, model: Path):
    """As in one process, and all on 127.0.0.1."""
    status, there, said = run(capsys, "estimate", model, *SHORT, "--cluster", "2", "--json")
    assert status == 0, said
    assert "annealz: 2 workers with " in said
    _, here, _ = run(capsys, "estimate", model, *SHORT, "--json")
    found, known = json.loads(there), json.loads(here)
    assert found["log_z"] == known["log_z"]
    assert found["ess"] == known["ess"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--cluster", "nowhere.json"], "cannot read nowhere.json: No such file or directory."),
        (["--cluster", "wrong"], "cannot read wrong: No such file or directory."),
        (["--tls-ca", "ca.pem"], "--tls-ca goes with --cluster: give both, or neither."),
        (["--cluster", "2", "--tls-key", "k"], "--tls-ca goes with the address of a scheduler"),
        (["--cluster", "tls://h:1", "--tls-key", "k"], "--tls-ca is missing: TLS takes --tls-ca"),
    ],
)
def test_what_is_refused(capsys, options: list[str], text: str, model: Path):
    for command in (["estimate", str(model)], ["compare", str(model)]):
        assert text in refused(capsys, *command, *options)


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
        wait_for(tmp_path / "run" / "checkpoint.npz", process)
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


# --- who may connect --------------------------------------------------------------------------


def test_strangers_are_refused_and_garbage_changes_nothing(capsys, model: Path, tmp_path: Path):
    """TLS: with the certificate as without a cluster; without it one sentence; bytes to the port."""
    pair = distributed.Security.temporary()
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    key.write_text(pair.tls_client_key)
    certificate.write_text(pair.tls_client_cert)
    tls = "--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key)
    options = ["--tls-ca", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(key)]
    other = distributed.Security.temporary()
    wrong_key, wrong = tmp_path / "wrong-key.pem", tmp_path / "wrong.pem"
    wrong_key.write_text(other.tls_client_key)
    wrong.write_text(other.tls_client_cert)
    with processes(tmp_path, 1, *tls, protocol="tls") as cluster:
        host, port = cluster.address.removeprefix("tls://").split(":")
        stop = threading.Event()
        noise = threading.Thread(target=_noise, args=(host, int(port), stop))
        noise.start()
        try:
            at = ["--cluster", cluster.address]
            status, right, said = run(capsys, "estimate", model, *SHORT, *at, *options, "--json")
            assert status == 0, said
            strangers = (
                [],
                [
                    "--tls-ca",
                    str(certificate),
                    "--tls-cert",
                    str(wrong),
                    "--tls-key",
                    str(wrong_key),
                ],
            )
            for given in strangers:
                assert cluster.address in refused(capsys, "estimate", model, *SHORT, *at, *given)
        finally:
            stop.set()
            noise.join()
        _, again, _ = run(capsys, "estimate", model, *SHORT, *at, *options, "--json")
    _, here, _ = run(capsys, "estimate", model, *SHORT, "--json")
    values = [json.loads(one)["log_z"] for one in (right, again, here)]
    assert values[0] == values[1] == values[2]


def _noise(host: str, port: int, stop: threading.Event) -> None:
    """Random bytes, half a TLS greeting, and connections that say nothing."""
    random_bytes = random.Random(default_seed())
    while not stop.is_set():
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1) as end:
            kind = random_bytes.randrange(3)
            if kind < 2:
                end.sendall((b"\x16\x03\x01" * kind) + random_bytes.randbytes(500))
        time.sleep(0.05)


# --- what is killed ---------------------------------------------------------------------------

PATH = GeometricPath(BernoulliBase.uniform(9), MODEL, "visible")
CHAINS, STEPS = 6000, 20_000
DISTURBANCES = ("one is killed", "two of four are killed", "one comes", "the scheduler is killed")


def _anneal(**options: Any):
    return annealz.anneal(
        PATH, BlockGibbs(), annealz.linear(STEPS), num_chains=CHAINS, seed=1, **options
    )


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
