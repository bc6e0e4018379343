"""Devices and processes change no bit; who is lost, is named, and the run goes on from its checkpoint.

A team is tested twice: as threads of this process that talk over pipes, and as real processes over
loopback, one of which is killed. Devices are emulated, in processes of their own.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz import distributed
from annealz.engine import blocks
from annealz.engine.anneal import anneal
from annealz.engine.observers import Expectation, Slope
from annealz.engine.run import Run
from annealz.engine.workers.team import LostProcess, Message, Team, from_bytes, to_bytes
from annealz.kernels import BlockGibbs
from annealz.models import exact_samples
from annealz.paths import GeometricPath
from annealz.paths.bases import BernoulliBase
from annealz.schedules import linear
from annealz.testing import random_rbm
from annealz.workflows.problem import choose_problem
from annealz.workflows.settings import Given, ProblemSettings
from annealz.workflows.workers.assist import assist, pack_inputs

MODEL = random_rbm(6, 9, 1.0, seed=3)
BASE = BernoulliBase.uniform(9)
PATH = GeometricPath(BASE, MODEL, "visible")
OBSERVERS = {"slope": Slope(), "states": Expectation(lambda x: x)}
NUM_CHAINS, NUM_STEPS = 70, 40
MODES = {
    "forward": {"observers": OBSERVERS},
    "resampled": {"resample": 0.9},
    "reverse": {"reverse": True, "purpose": "reverse"},
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch):
    """70 chains are 5 blocks of 14."""
    monkeypatch.setitem(blocks._MAX_BLOCK, "cpu", 16)


def run_of(mode: str, **options) -> Run:
    count = 80 if mode == "resampled" else NUM_CHAINS  # in islands of 4
    start = {"start": exact_samples(MODEL, count, 0)[0]} if mode == "reverse" else {}
    return anneal(
        PATH, BlockGibbs(), linear(NUM_STEPS), num_chains=count, seed=1,
        **MODES[mode], **start, **options,
    )  # fmt: skip


def assert_same_bits(one: Run, other: Run) -> None:
    np.testing.assert_array_equal(one.log_weights, other.log_weights)
    np.testing.assert_array_equal(one.states, other.states)
    for name in ("steps", "log_z", "ess"):
        np.testing.assert_array_equal(getattr(one.trace, name), getattr(other.trace, name))
    for name in one.trace.means:
        np.testing.assert_array_equal(one.trace.means[name], other.trace.means[name])
        np.testing.assert_array_equal(one.trace.variances[name], other.trace.variances[name])
    assert one.num_resamplings == other.num_resamplings


# --- a team of threads ------------------------------------------------------------------------


@contextlib.contextmanager
def team_of(num_devices: list[int], observers=OBSERVERS) -> Iterator[tuple[Team, list[Team], list]]:
    """A leader, the others, and what stopped them; each of the others helps in a thread."""
    ends = [Pipe() for _ in num_devices[1:]]
    leader = Team(0, num_devices, [mine for mine, _ in ends])
    others = [Team(p, num_devices, [theirs]) for p, (_, theirs) in enumerate(ends, 1)]
    raised: list[BaseException | None] = [None] * len(others)

    def help_with(j: int) -> None:
        try:
            assist(others[j], observers)
        except BaseException as error:
            raised[j] = error

    problem = choose_problem(MODEL, base=BASE)
    settings = ProblemSettings(
        model=problem.name,
        model_digest=MODEL.digest,
        source=None,
        base=problem.base_name,
        marginal=problem.marginal,
        given=Given(path=False, kernel=False, base=False),
    )
    inputs = pack_inputs(problem, linear(NUM_STEPS), settings)
    threads = [
        threading.Thread(target=help_with, args=(j,), daemon=True) for j in range(len(others))
    ]
    for thread in threads:
        thread.start()
    leader.tell("inputs", inputs)
    try:
        yield leader, others, raised
    finally:
        with contextlib.suppress(LostProcess):
            leader.tell("done")
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        for team in (leader, *others):
            team.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_devices", [[1, 1], [2, 1, 3], [1] * 7], ids=str)
def test_processes_change_no_bit(mode: str, num_devices: list[int], small_blocks):
    """Two, three, and more processes than blocks."""
    alone = run_of(mode)
    with team_of(num_devices) as (team, _, _):
        assert_same_bits(run_of(mode, team=team), alone)
        assert_same_bits(run_of(mode, team=team, chunk_steps=7), alone)


def test_who_runs_a_block_matters_to_the_others(small_blocks, monkeypatch: pytest.MonkeyPatch):
    """Mutant: all do the leader's blocks. Then the comparison above must fail."""
    alone = run_of("forward")
    monkeypatch.setattr(
        "annealz.workflows.workers.assist._Helper._of",
        lambda self, owners: [0, 2, 4][: owners.count(1)],
    )
    with team_of([1, 1]) as (team, _, _), pytest.raises(AssertionError):
        assert_same_bits(run_of("forward", team=team), alone)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_goes_on_in_another_number_of_processes(mode: str, tmp_path: Path, small_blocks):
    alone, file = run_of(mode), tmp_path / "checkpoint.npz"

    def interrupt(progress) -> None:
        if progress.step >= 20:
            raise KeyboardInterrupt

    options = {"checkpoint": file, "chunk_steps": 5}
    with team_of([1, 1]) as (team, _, _), pytest.raises(KeyboardInterrupt):
        run_of(mode, team=team, on_progress=interrupt, **options)
    with team_of([1, 1, 1]) as (team, _, _):
        assert_same_bits(run_of(mode, team=team, **options), alone)
    assert_same_bits(run_of(mode, **options), alone)  # a finished run, from its file alone


def test_an_interrupt_inside_a_chunk_finds_one_step(tmp_path: Path, small_blocks, monkeypatch):
    """The others are a chunk ahead of the leader; the checkpoint is of the step that all have seen."""
    alone, file = run_of("forward"), tmp_path / "checkpoint.npz"
    with team_of([1, 1]) as (team, _, _):
        collect, calls = team.collect, []

        def interrupted(kind: str):
            calls.append(kind)
            if calls.count("parts") == 3 and kind == "parts":
                collect(kind)
                raise KeyboardInterrupt
            return collect(kind)

        monkeypatch.setattr(team, "collect", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_of("forward", team=team, checkpoint=file, chunk_steps=5)
    with np.load(file) as kept:
        assert json.loads(kept["meta"].tobytes())["step"] == 10
    assert_same_bits(run_of("forward", checkpoint=file), alone)


def test_a_lost_process_is_named(tmp_path: Path, small_blocks):
    file = tmp_path / "checkpoint.npz"
    with team_of([1, 1, 1]) as (team, others, raised):

        def lose(progress) -> None:
            others[1].close()

        with pytest.raises(LostProcess, match="process 2 of 3 is gone"):
            run_of("forward", team=team, on_progress=lose, checkpoint=file, chunk_steps=5)
        assert not file.exists()  # no checkpoint with blocks missing
        team.dismiss("lost", "process 2 of 3 is gone.")
    assert isinstance(raised[0], LostProcess)


def test_a_leader_that_is_gone_is_named(small_blocks):
    mine, theirs = Pipe()
    mine.close()
    with pytest.raises(LostProcess, match="process 0 of 2, which leads the run, is gone"):
        Team(1, [1, 1], [theirs]).listen()


@pytest.mark.parametrize(
    ("observers", "text"),
    [
        ({"slope": Slope()}, "process 1 failed: observe must be the same in all processes"),
        (OBSERVERS | {"states": Expectation(lambda x: 2 * x)}, "does not see the same run"),
    ],
)
def test_a_process_given_something_else_is_refused(observers, text: str, small_blocks):
    with team_of([1, 1], observers) as (team, _, raised), pytest.raises(ValueError, match=text):
        run_of("forward", team=team)
    assert isinstance(raised[0], ValueError)


def test_ctrl_c_in_another_process_reaches_the_leader(small_blocks):
    mine, theirs = Pipe()
    leader, other = Team(0, [1, 1], [mine]), Team(1, [1, 1], [theirs])
    with other.interrupts_passed_on():

        def interrupt() -> None:
            os.kill(os.getpid(), signal.SIGINT)  # left to the leader, here the same process
            leader.collect("parts")

        with pytest.raises(KeyboardInterrupt):  # at once, or where the leader waits
            interrupt()
        with pytest.raises(KeyboardInterrupt):  # a second one is not
            signal.raise_signal(signal.SIGINT)


def test_blocks_are_dealt_out_to_devices():
    assert Team(0, [1, 1], []).owners(5) == [0, 1, 0, 1, 0]
    assert Team(0, [1, 3], []).owners(6) == [0, 1, 1, 1, 0, 1]
    assert Team(0, [2, 1, 1], []).owners(2) == [0, 1]


def test_messages_and_arrays_come_back():
    message = Message("advance", {"step": 3}, b"\n\x00 bytes\n")
    assert Message.read(message.write()) == message
    tree = [
        {"a": np.arange(6, dtype=np.uint8).reshape(2, 3)},
        (np.float64(1 / 3), None, np.float32(2)),
    ]
    back = from_bytes(to_bytes(tree), tree)
    assert back[0]["a"].tolist() == tree[0]["a"].tolist()
    assert back[1] == tree[1]


# --- joining ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("host", 2, 0), "coordinator must be HOST:PORT of process 0, such as .*, got 'host'"),
        (("host:0", 2, 0), "coordinator must be HOST:PORT"),
        (("host:80000", 2, 0), "coordinator must be HOST:PORT"),
        (("host:3000", 0, 0), "num_processes must be at least 1, got 0"),
        (("host:3000", 2, -1), "process_id must be at least 0, got -1"),
        (
            ("host:3000", 2, 2),
            "process_id must be less than num_processes = 2, got 2: count from 0",
        ),
    ],
)
def test_what_cannot_be_joined(arguments, text: str):
    with pytest.raises(ValueError, match=text):
        distributed.initialize(*arguments)
    with pytest.raises(ValueError, match="timeout must be at least 1 second, got 0"):
        distributed.initialize("host:3000", 2, 0, timeout=0)


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of the coordinator cannot be had"):
            distributed._check_port(f"127.0.0.1:{port}")


def test_one_process_is_no_team():
    assert distributed.initialize("host:3000", 1, 0) is distributed.current_team()
    assert distributed.current_team().size == 1


# --- real processes ---------------------------------------------------------------------------

WAIT = 120  # seconds, on a busy machine

SCRIPT = """
import sys
import jax
import numpy as np
import annealz
from annealz.engine import blocks
from annealz.testing import random_rbm

blocks._MAX_BLOCK["cpu"] = 16
out, counts, *team = sys.argv[1:]
every_device = jax.local_devices
for count in counts.split(","):
    jax.local_devices = lambda: every_device()[: int(count)]
    if team:
        annealz.distributed.initialize(team[0], int(team[1]), int(team[2]), timeout=100)
    estimate = annealz.estimate_log_z(
        random_rbm(6, 9, 1.0, seed=3), num_steps=40, num_chains=125, schedule="linear", seed=1,
        base="visible-bias", second_opinion=False,
        observe={"states": lambda x: x},
    )
    run = estimate.run
    np.savez(
        f"{out}-{count}", log_weights=run.log_weights, log_z=estimate.log_z,
        interval=estimate.interval(), states=run.states, means=run.trace.means["states"],
        variances=run.trace.variances["states"],
    )
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*command: str | Path) -> subprocess.Popen:
    """A process with eight emulated devices."""
    flag = "--xla_force_host_platform_device_count=8"
    source = str(Path(annealz.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=os.environ | {"XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu", "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen) -> tuple[int, str]:
    """Exit status, and what it said on stderr."""
    try:
        _, errors = process.communicate(timeout=WAIT)
    finally:
        process.kill()
    return process.returncode, errors


def test_devices_and_processes_change_no_bit(tmp_path: Path):
    """1, 2 and 8 emulated devices; and 2 processes over loopback, one of which has two devices."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    alone = start(script, tmp_path / "alone", "1,2,8")
    assert end(alone) == (0, "")  # what it compiled is there for the others
    team = f"127.0.0.1:{free_port()}", "2"
    processes = [
        start(script, tmp_path / "first", "1", *team, "0"),
        start(script, tmp_path / "second", "2", *team, "1"),
    ]
    for process in processes:
        status, errors = end(process)
        assert status == 0, errors
    names = ("alone-1", "alone-2", "alone-8", "first-1", "second-2")
    one, *others = (dict(np.load(tmp_path / f"{name}.npz")) for name in names)
    assert one["log_weights"].shape == (125,)  # 8 blocks of 16
    for other in others:
        for name, array in one.items():
            np.testing.assert_array_equal(other[name], array, err_msg=name)


# More than one block, and more steps than are done before the signal.
SETTINGS = {"num_steps": 5000, "num_chains": 2048, "schedule": "linear", "seed": 1}
SETTINGS |= {"base": "visible-bias", "second_opinion": False}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """A model's file, and the run that nobody stopped."""
    file = tmp_path_factory.mktemp("undisturbed") / "model.npz"
    annealz.save_rbm(file, MODEL)
    return file, annealz.estimate_log_z(file, **SETTINGS).run


@pytest.mark.parametrize(
    ("number", "which", "statuses", "text"),
    [
        (signal.SIGKILL, 1, (3, -9), "process 1 of 2 is gone.* annealz resume"),
        (signal.SIGKILL, 0, (-9, 3), "process 0 of 2, which leads the run, is gone"),
        (signal.SIGINT, 1, (130, 130), "interrupted; resume with: annealz resume"),
    ],
    ids=["kill-1", "kill-0", "interrupt-1"],
)
def test_a_process_is_stopped_and_the_run_goes_on(
    number, which, statuses, text, undisturbed: tuple[Path, Run], tmp_path: Path
):
    """The others end with one clear sentence, and `resume` gives the bits of a run left alone."""
    model, alone = undisturbed
    out, address = tmp_path / "run", f"127.0.0.1:{free_port()}"
    processes = [
        start(
            "-m", "annealz", "estimate", model, "--steps", "5000", "--chains", "2048",
            "--schedule", "linear", "--seed", "1", "--out", out, "--checkpoint-seconds", "0", "--quiet",
            "--base", "visible-bias", "--no-second-opinion",
            "--distributed", "--coordinator", address, "--num-processes", "2", "--process-id", str(p),
        )
        for p in range(2)
    ]  # fmt: skip
    deadline = time.monotonic() + WAIT
    while not (out / "checkpoint.npz").exists():
        assert time.monotonic() < deadline, [end(process) for process in processes]
        assert all(process.poll() is None for process in processes), [*map(end, processes)]
        time.sleep(0.02)
    processes[which].send_signal(number)
    ended = [end(process) for process in processes]
    assert tuple(status for status, _ in ended) == statuses, ended
    survivor = 0 if number == signal.SIGINT else 1 - which
    lines = ended[survivor][1].splitlines()
    assert len(lines) == 1, lines
    assert re.search(text, lines[0]), lines
    assert not (out / "run.npz").exists()
    assert_same_bits(annealz.resume(out).run, alone)
