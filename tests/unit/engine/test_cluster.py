"""Neither the workers of a cluster, nor their number, nor the loss of some changes a bit.

The workers are threads of this process, and blocks are small, so that runs have several.
"""

import contextlib
import importlib
import pickle
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import numpy as np
import pytest

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.devices import Elsewhere, computing_on, device_name, platform
from annealz.engine import blocks, cluster, connect
from annealz.engine.anneal import anneal
from annealz.engine.cluster import (
    Cluster,
    current_cluster,
    map_concurrently,
    on_cluster,
)
from annealz.engine.connect import connected
from annealz.engine.observers import Expectation, Slope
from annealz.engine.run import Run
from annealz.kernels.gibbs import BlockGibbs
from annealz.methods.exchange.exchange import exchange
from annealz.models.exact import exact_samples
from annealz.paths.geometric import GeometricPath
from annealz.pilots.draws import approximate_draws
from annealz.schedules.rules import linear
from annealz.testing import random_rbm

MODEL = random_rbm(6, 9, 1.0, seed=3)
PATH = GeometricPath(BernoulliBase.uniform(9), MODEL, "visible")
OBSERVERS = {"slope": Slope(), "states": Expectation(lambda x: x)}
MODES = {
    "forward": {"observers": OBSERVERS},
    "resampled": {"resample": 0.9},
    "reverse": {"reverse": True, "purpose": "reverse"},
}


@contextlib.contextmanager
def workers(count: int, **options) -> Iterator[tuple[distributed.LocalCluster, distributed.Client]]:
    with (
        distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    with workers(2) as (_, client):
        yield client


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch):
    """70 chains are 5 blocks of 14."""
    monkeypatch.setitem(blocks._MAX_BLOCK, "cpu", 16)


def run_of(mode: str, **options) -> Run:
    count = 80 if mode == "resampled" else 70  # in islands of 4
    start = {"start": exact_samples(MODEL, count, 0)[0]} if mode == "reverse" else {}
    return anneal(
        PATH, BlockGibbs(), linear(40), num_chains=count, seed=1, **MODES[mode], **start, **options
    )


@pytest.fixture(scope="module")
def alone() -> dict[str, Run]:
    """Runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(blocks._MAX_BLOCK, "cpu", 16)
        return {mode: run_of(mode) for mode in MODES}


def assert_same_bits(one: Run, other: Run) -> None:
    np.testing.assert_array_equal(one.log_weights, other.log_weights)
    np.testing.assert_array_equal(one.states, other.states)
    for name in ("steps", "log_z", "ess"):
        np.testing.assert_array_equal(getattr(one.trace, name), getattr(other.trace, name))
    for name in one.trace.means:
        np.testing.assert_array_equal(one.trace.means[name], other.trace.means[name])
        np.testing.assert_array_equal(one.trace.variances[name], other.trace.variances[name])
    assert one.num_resamplings == other.num_resamplings


# --- the same bits ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_workers_change_no_bit(mode: str, alone: dict[str, Run], client):
    assert_same_bits(run_of(mode, client=client), alone[mode])
    assert_same_bits(run_of(mode, client=client, chunk_steps=7), alone[mode])


@pytest.mark.parametrize("count", [1, 4])
def test_the_number_of_workers_changes_no_bit(count: int, alone: dict[str, Run]):
    with workers(count) as (_, client):
        for mode in MODES:
            assert_same_bits(run_of(mode, client=client), alone[mode])


ISING = annealz.Ising(np.ones((3, 3)) - np.eye(3), np.zeros(3))  # of one layer
DENSITY = annealz.LogDensity(lambda x: -0.5 * ((x - 1) ** 2).sum(), 2)
HMC = annealz.HMC(step_size=0.5)
OTHERS = {
    "hidden marginal": (GeometricPath(BernoulliBase.uniform(9), MODEL, "hidden"), BlockGibbs()),
    "Ising": (ISING.path(ISING.flat_base()), ISING.kernel()),
    "density, HMC": (HMC.extend(DENSITY.path(annealz.GaussianBase.standard(2))), HMC),
}


@pytest.mark.parametrize("name", OTHERS)
def test_workers_change_no_bit_of_other_families(name: str, client):
    path, kernel = OTHERS[name]
    options = {"num_chains": 70, "seed": 1}
    here = anneal(path, kernel, linear(40), **options)
    assert_same_bits(anneal(path, kernel, linear(40), **options, client=client), here)


def test_the_comparison_can_fail(alone: dict[str, Run], client, monkeypatch: pytest.MonkeyPatch):
    """A worker that takes blocks for others is seen."""
    real = cluster.ClusterWorkers.call
    monkeypatch.setattr(
        cluster.ClusterWorkers,
        "call",
        lambda self, method, rows: real(self, method, rows[1:] + rows[:1]),
    )
    with pytest.raises(AssertionError):
        assert_same_bits(run_of("forward", client=client), alone["forward"])


def test_ensembles_are_shared_too(client):
    options = {"num_rungs": 4, "num_ensembles": 10, "num_sweeps": 60, "num_draws": 20, "seed": 2}
    here = exchange(PATH, BlockGibbs(), **options)
    there = exchange(PATH, BlockGibbs(), **options, client=client)
    np.testing.assert_array_equal(here.draws, there.draws)
    for one, other in zip(here.rounds, there.rounds, strict=True):
        for name in ("betas", "values", "half_values", "log_ratios", "round_trips"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_whole_estimate(client):
    """A function of one's own, draws and two sides."""
    options = {"num_steps": 60, "num_chains": 40, "two_sided": True, "seed": 4}
    options |= {"schedule": "linear", "base": "standard", "second_opinion": False}
    options |= {"observe": {"states": lambda v: v}, "kernel": annealz.RandomWalk(step_size=1.0)}
    model = annealz.LogDensity(lambda x: -0.5 * ((x - 1) ** 2).sum(), 2)
    here = annealz.estimate_log_z(model, **options)
    there = annealz.estimate_log_z(model, **options, client=client)
    assert here.log_z == there.log_z
    for one, other in zip(here.runs, there.runs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_same_bits(one, other)


def test_schedules_are_compared_map_concurrently(client):
    options = {"schedules": ["linear", "mixing"], "num_steps": 60, "num_chains": 100}
    seen = []
    here = annealz.compare_schedules(MODEL, **options, num_replicates=2)
    there = annealz.compare_schedules(
        MODEL, **options, num_replicates=2, client=client, on_progress=lambda *now: seen.append(now)
    )
    for one, other in zip(here.contenders, there.contenders, strict=True):
        np.testing.assert_array_equal(one.log_weights, other.log_weights)
        np.testing.assert_array_equal(one.betas, other.betas)
    assert {label for label, _ in seen} == {"4 runs"}
    assert seen[-1][1].step == seen[-1][1].num_steps


def test_draws_by_blocks(client, alone: dict[str, Run]):
    given = PATH, BlockGibbs(), alone["forward"], 50
    here = approximate_draws(*given, num_sweeps=40)
    with on_cluster(client):
        np.testing.assert_array_equal(approximate_draws(*given, num_sweeps=40), here)


# --- workers come and go ----------------------------------------------------------------------


@pytest.mark.parametrize("change", ["one leaves", "one comes", "all are others"])
def test_workers_come_and_go(change: str, alone: dict[str, Run]):
    with workers(2) as (local, client):

        def disturb(now) -> None:
            if now.step != 20:
                return
            if change != "one leaves":
                local.scale(4)
                client.wait_for_workers(4, timeout=30)
            if change != "one comes":
                names = list(local.workers)[:2]
                old = [local.workers[name] for name in names[: 1 if "leaves" in change else 2]]
                for worker in old:
                    client.sync(worker.close)  # not retired: what it holds is lost

        run = run_of("forward", client=client, chunk_steps=5, on_progress=disturb)
    assert_same_bits(run, alone["forward"])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_an_interrupted_run_goes_on_with_or_without(
    mode: str, alone: dict[str, Run], client, tmp_path: Path
):
    def interrupt(now) -> None:
        if now.step >= 15:
            raise KeyboardInterrupt

    for first, then in (({"client": client}, {}), ({}, {"client": client})):
        file = tmp_path / f"{len(first)}.npz"
        with pytest.raises(KeyboardInterrupt):
            run_of(mode, **first, checkpoint=file, chunk_steps=5, on_progress=interrupt)
        seen = []
        run = run_of(mode, **then, checkpoint=file, on_progress=seen.append)
        assert min(now.step for now in seen) > 15
        assert_same_bits(run, alone[mode])


def test_an_interrupt_while_workers_compute_loses_one_span(client, tmp_path, monkeypatch):
    """The state before the span is saved, and nobody waits for the span."""
    calls, gather = [], Cluster.gather

    def interrupted(self, futures):
        calls.append(futures)
        if len(calls) == 5:  # after the start and three spans
            raise KeyboardInterrupt
        return gather(self, futures)

    monkeypatch.setattr(Cluster, "gather", interrupted)
    file = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        run_of("forward", client=client, checkpoint=file, chunk_steps=5)
    steps = []
    run_of(
        "forward", checkpoint=file, chunk_steps=5, on_progress=lambda now: steps.append(now.step)
    )
    assert steps[0] == 20  # three spans were done


@pytest.mark.parametrize("is_back", [False, True])
def test_a_lost_connection_is_one_sentence_and_the_run_goes_on(
    is_back: bool, alone: dict[str, Run], client, tmp_path: Path
):
    """Also where the client is connected again: what it waits for is forgotten."""
    file = tmp_path / "run.npz"
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:

        def cut(now) -> None:
            if now.step == 20:
                other.sync(other.scheduler_comm.close)
                while is_back and other.status != "running":
                    time.sleep(0.01)

        with pytest.raises(
            annealz.LostCluster, match=r"^the connection to the \S+ at inproc\S+ is lost"
        ):
            run_of(
                "forward", client=other, checkpoint=file, checkpoint_seconds=0, chunk_steps=5,
                on_progress=cut,
            )  # fmt: skip
    assert_same_bits(run_of("forward", checkpoint=file), alone["forward"])


def test_workers_that_all_die_are_waited_for_and_then_given_up(
    alone: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cluster, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "WAIT_SECONDS", 0.3)
    file = tmp_path / "run.npz"
    with workers(2) as (local, client):

        def kill(now) -> None:
            if now.step == 20:
                for worker in local.workers.values():
                    client.sync(worker.close)

        with pytest.raises(
            annealz.LostCluster, match=r"all workers at \S+ are gone, and none came"
        ):
            run_of(
                "forward", client=client, checkpoint=file, checkpoint_seconds=0, chunk_steps=5,
                on_progress=kill,
            )  # fmt: skip
    assert_same_bits(run_of("forward", checkpoint=file), alone["forward"])


# --- what is refused --------------------------------------------------------------------------


def test_what_is_not_a_client():
    with pytest.raises(ValueError, match=r"client must be a dask.distributed.Client .*, got str"):
        run_of("forward", client="tcp://host:8786")
    with workers(1) as (_, client):
        pass
    with pytest.raises(ValueError, match="client must be connected, and is closed"):
        run_of("forward", client=client)
    assert current_cluster() is None


def test_other_versions_and_devices_are_refused(client, monkeypatch: pytest.MonkeyPatch):
    """At once, and where a worker comes later."""
    own = cluster.describe_host()
    program = cluster.SentProgram(b"", own.replace("jax ", "jax 9."))
    with pytest.raises(ValueError, match=f"a worker has {own} and the run is for .* jax 9"):
        cluster.call(program, "first", 0, (None,))
    other = own.replace("on a cpu", "on a gpu"), Elsewhere("gpu", "")
    workers = {"one": (own, Elsewhere("cpu", "")), "other": other}
    monkeypatch.setattr(client, "run", lambda *_: workers)
    with pytest.raises(
        ValueError, match="on a gpu and the run is for .* on a cpu: install the same"
    ):
        run_of("forward", client=client)


def test_no_workers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "WAIT_SECONDS", 0.1)
    with (
        workers(0) as (_, client),
        pytest.raises(
            ValueError, match=r"no worker came to the scheduler at inproc\S+ within 0.1 s"
        ),
    ):
        run_of("forward", client=client)


def test_what_fails_on_a_worker_is_said_here(client):
    observers = {"slope": Slope(), "wrong": Expectation(lambda x: x @ np.ones(3))}
    with pytest.raises(TypeError, match="dot_general"):
        anneal(PATH, BlockGibbs(), linear(5), num_chains=20, observers=observers, client=client)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    text = r"distributed, which is not installed: pip install 'annealz\[cluster\]'"
    with pytest.raises(ValueError, match=text), connected("2"):
        pass
    with pytest.raises(ValueError, match=text):
        run_of("forward", client=object())


NONE = "cluster must be an address such as tcp://host:8786"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tcp://127.0.0.1:1", "no scheduler answered at tcp://127.0.0.1:1 within 0.2 s"),
        ("gopher://host:70", "no scheduler answered at gopher://host:70"),
        ("tls://127.0.0.1:1", "Dask's configuration of certificates"),
        ("", f"{NONE}.* got ''"),
        ("-1", f"{NONE}.* got '-1'"),
        ("0", "cluster takes 1 to 256 local processes, got 0"),
        ("nowhere.json", "cannot read nowhere.json: No such file"),
        ("text.json", "text.json is not a scheduler file"),
        ("other.json", "other.json is not a scheduler file"),
        ("list.json", "list.json is not a scheduler file"),
    ],
)
def test_clusters_that_are_none(name: str, text: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connect, "_CONNECT_SECONDS", 0.2)
    Path("text.json").write_text("tcp://127.0.0.1:1")
    Path("other.json").write_text('{"address": 3}')
    Path("list.json").write_text("[]")
    with pytest.raises(ValueError, match=text), connected(name):
        pass


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(8) + bytes(range(256))],
    ids=["http", "bytes"],
)
def test_what_listens_there_is_no_scheduler(answer: bytes, monkeypatch):
    """One sentence, also where it means a length by what it says."""
    monkeypatch.setattr(connect, "_CONNECT_SECONDS", 0.5)
    held = []

    def speak(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                held.append(server.accept()[0])
                held[-1].sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=speak, args=(server,), daemon=True).start()
        name = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with (
            pytest.raises(ValueError, match=r"no scheduler answered at \S+ within 0.5 s"),
            connected(name),
        ):
            pass
    for one in held:
        one.close()


# --- parts ------------------------------------------------------------------------------------


def test_a_module_that_workers_lack_is_named(tmp_path: Path, monkeypatch):
    (tmp_path / "other_density.py").write_text("def moved(x):\n    return x + 1\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        payload = pickle.dumps(importlib.import_module("other_density").moved)
    monkeypatch.delitem(sys.modules, "other_density")
    sent = cluster.SentProgram(payload, cluster.describe_host())
    text = r"a worker has no module 'other_density', .* client.upload_file\.$"
    with pytest.raises(ValueError, match=text):
        cluster.call(sent, "first", 0, (None,))


def test_results_name_the_device_that_computed(client):
    here = platform()
    with computing_on(Elsewhere("tpu", "tpu v9")):
        assert (platform(), device_name()) == ("tpu", "tpu v9")
    assert platform() == here
    with on_cluster(client):
        assert platform() == "cpu"


def test_what_goes_side_by_side_keeps_the_order_and_the_error(client):
    def slow(i: int) -> int:
        time.sleep(0.02 * max(3 - i, 0))
        if i == 5:
            raise ValueError("five")
        return i * i

    with on_cluster(client):
        assert map_concurrently(slow, range(4)) == [0, 1, 4, 9]
        with pytest.raises(ValueError, match="five"):
            map_concurrently(slow, [1, 5, 2])
    assert map_concurrently(slow, range(3)) == [0, 1, 4]
