"""Checkpoints: a resumed run ends in the same bits, and a checkpoint of another run is refused."""

import importlib
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.engine import blocks
from annealz.engine.anneal import anneal
from annealz.engine.observers import Expectation, Slope
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.io.archive import load_archive
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear, sm08
from support.kernels import BiasedGibbs
from support.runs import assert_same_run, interrupt_at, small_run
from support.systems import SMALL, SMALL_BASE, marginals


@marginals
def test_a_resumed_run_ends_in_the_same_bits(marginal: str, tmp_path: Path, seed: int):
    """Interrupted at random steps, some of them between two records, with other chunks after."""
    whole = small_run(marginal)
    generator = np.random.default_rng(seed)
    for trial in range(4):
        path = tmp_path / f"{trial}.npz"
        steps = generator.choice(np.arange(1, 100), 3, replace=False).tolist()
        on_progress = interrupt_at(*steps)
        for _ in range(20):
            try:
                chunk_steps = int(generator.integers(1, 12))
                resumed = small_run(
                    marginal, checkpoint=path, chunk_steps=chunk_steps, on_progress=on_progress
                )
                break
            except KeyboardInterrupt:
                assert path.exists()
        assert_same_run(whole, resumed)
        assert resumed.messages == ()


def test_resumed_blocks_end_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 16)
    whole = small_run()
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(50))
    assert_same_run(whole, small_run(checkpoint=tmp_path / "c"))


def test_a_run_before_its_first_record_is_resumed(tmp_path: Path):
    whole = small_run(record_every=90)
    with pytest.raises(KeyboardInterrupt):
        small_run(
            record_every=90, checkpoint=tmp_path / "c", chunk_steps=2, on_progress=interrupt_at(2)
        )
    assert_same_run(whole, small_run(record_every=90, checkpoint=tmp_path / "c"))


def test_a_finished_run_is_read_back(tmp_path: Path):
    whole = small_run(checkpoint=tmp_path / "c")
    steps: list[Progress] = []
    again = small_run(checkpoint=tmp_path / "c", on_progress=steps.append)
    assert_same_run(whole, again)
    assert steps == []


def test_seconds_add_up_over_resumes(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(50))
    _, meta = load_archive(tmp_path / "c")
    assert meta["step"] == 56
    assert small_run(checkpoint=tmp_path / "c").seconds > meta["seconds"] > 0


def test_checkpoints_are_written_while_the_run_goes(tmp_path: Path):
    """With no time between them, one after every chunk: a killed process loses one chunk."""
    steps = []

    def look(_: Progress) -> None:
        if (tmp_path / "c").exists():
            steps.append(load_archive(tmp_path / "c")[1]["step"])

    small_run(checkpoint=tmp_path / "c", checkpoint_seconds=0, chunk_steps=25, on_progress=look)
    assert steps == [25, 50, 75]


def expected_state(x):
    return x


def other_state(x):
    return 1 - x


checkpoints = importlib.import_module("annealz.engine.checkpoint")

OTHER_RUNS = {
    "seed": {"seed": 4},
    "purpose": {"purpose": "pilot"},
    "schedule": {"schedule": sm08(100)},
    "more steps": {"schedule": linear(101)},
    "num_chains": {"num_chains": 38},
    "record_every": {"record_every": 4},
    "fewer observers": {"observers": {"slope": Slope()}},
    "other observer": {"observers": {"slope": Slope(), "sum": Slope()}},
    "other marginal": {"marginal": "hidden"},
}


@pytest.mark.parametrize("difference", OTHER_RUNS)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, difference: str):
    """Going on would end in a plausible number of neither run."""
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(50))
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(ValueError, match="c belongs to another run"):
        small_run(checkpoint=tmp_path / "c", **OTHER_RUNS[difference])
    assert (tmp_path / "c").read_bytes() == before


def checkpointed(path: Path, model, kernel, observers=None, base=SMALL_BASE) -> Run:
    return anneal(
        GeometricPath(base, model), kernel, linear(6), num_chains=37, checkpoint=path,
        observers=observers or {},
    )  # fmt: skip


def test_a_checkpoint_of_another_model_base_or_kernel_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    checkpointed(path, SMALL, BlockGibbs())
    changed = eqx.tree_at(
        lambda m: m.weights, SMALL, SMALL.weights.at[0, 0].set(np.nextafter(SMALL.weights[0, 0], 9))
    )
    base = BernoulliBase.uniform(5)
    for model, kernel, other_base in (
        (changed, BlockGibbs(), SMALL_BASE),
        (SMALL, BiasedGibbs(), SMALL_BASE),
        (SMALL, BlockGibbs(), base),
    ):
        with pytest.raises(ValueError, match="belongs to another run"):
            checkpointed(path, model, kernel, base=other_base)


def test_a_checkpoint_of_another_function_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    checkpointed(path, SMALL, BlockGibbs(), {"f": Expectation(expected_state)})
    checkpointed(path, SMALL, BlockGibbs(), {"f": Expectation(expected_state)})
    with pytest.raises(ValueError, match="belongs to another run"):
        checkpointed(path, SMALL, BlockGibbs(), {"f": Expectation(other_state)})


def test_a_checkpoint_of_another_lambda_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    checkpointed(path, SMALL, BlockGibbs(), {"f": Expectation(lambda x: x)})
    with pytest.raises(ValueError, match="belongs to another run"):
        checkpointed(path, SMALL, BlockGibbs(), {"f": Expectation(lambda x: 1 - x)})


def test_a_damaged_checkpoint_is_refused(tmp_path: Path):
    path = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=path, chunk_steps=7, on_progress=interrupt_at(50))
    raw = path.read_bytes()
    damages = [raw[:0], raw[:10], raw[: len(raw) // 2], raw[:-1], b"hello"]
    middle = len(raw) // 2
    damages.append(raw[:middle] + bytes([raw[middle] ^ 0xFF]) + raw[middle + 1 :])
    for damage in damages:
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=rf"{path} "):
            small_run(checkpoint=path)
        assert path.read_bytes() == damage


def test_a_full_disk_stops_nothing_and_is_mentioned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = small_run()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "save_archive", fail)
    run = small_run(checkpoint=tmp_path / "c", checkpoint_seconds=0, chunk_steps=10)
    assert_same_run(whole, run)
    assert len(run.messages) == 1
    assert str(tmp_path / "c") in run.messages[0]
    assert "No space left on device" in run.messages[0]


def test_a_missing_folder_stops_nothing(tmp_path: Path):
    run = small_run(checkpoint=tmp_path / "none" / "c")
    assert "No such file or directory" in run.messages[0]
