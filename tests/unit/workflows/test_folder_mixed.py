"""A run folder with files of another run, cut short, empty or gone: one sentence that names the file."""

import contextlib
import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import annealz
from annealz.testing import random_rbm


def stop_at(stage: str, step: int):
    """An on_progress that interrupts there."""

    def stop(now) -> None:
        if now.stage == stage and now.step >= step:
            raise KeyboardInterrupt

    return stop


def estimated(out: Path, seed: int, stage: str | None = None, **options) -> None:
    given = {"schedule": "linear", "num_steps": 40 + seed, "num_chains": 100, "chunk_steps": 10}
    given["base"] = "visible-bias"
    stop = None if stage is None else stop_at(stage, 20)
    with contextlib.nullcontext() if stage is None else pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            random_rbm(4, 6), seed=seed, out=out, on_progress=stop, **given | options
        )


def exchanged(out: Path, seed: int, stage: str | None = None) -> None:
    stop = None if stage is None else stop_at(stage, 20)
    with contextlib.nullcontext() if stage is None else pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            random_rbm(4, 6), method="exchange", num_rungs=4, num_ensembles=5, num_steps=64, num_draws=10,
            chunk_steps=8, seed=seed, out=out, on_progress=stop,
        )  # fmt: skip


KINDS: dict[str, Callable[[Path, int], None]] = {
    "forward": lambda out, seed: estimated(out, seed, second_opinion=False),
    "second": lambda out, seed: estimated(out, seed),
    "two sides": lambda out, seed: estimated(out, seed, two_sided=True),
    "islands": lambda out, seed: estimated(out, seed, resample=0.5, num_chains=100),
    "forward, cut": lambda out, seed: estimated(out, seed, "run", second_opinion=False),
    "two sides, cut": lambda out, seed: estimated(out, seed, "reverse", two_sided=True),
    "exchange": exchanged,
    "exchange, cut": lambda out, seed: exchanged(out, seed, "exchange"),
}


def broken(folders: tuple[Path, Path], folder: Path, name: str, how: str) -> Path:
    """A copy of the first folder of which this file is another's, half, empty or gone."""
    mine, other = folders
    shutil.copytree(mine, folder)
    file = folder / name
    content = file.read_bytes()
    if how == "other":
        shutil.copy(other / name, file)
    elif how == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
    return folder


@pytest.fixture(scope="module")
def of_kind(tmp_path_factory) -> Callable[[str], tuple[Path, Path]]:
    """Of a kind one folder, and one of another seed: made when they are first asked for."""

    @functools.cache
    def made(kind: str) -> tuple[Path, Path]:
        root = tmp_path_factory.mktemp("kinds")
        for seed, name in enumerate(("mine", "other")):
            KINDS[kind](root / name, seed)
        return root / "mine", root / "other"

    return made


@pytest.mark.parametrize("how", ["other", "cut", "empty", "gone"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_file_is_named_or_not_needed(of_kind, tmp_path, kind, how):
    """Never another number: a refusal of one sentence, or the same result."""
    mine, other = of_kind(kind)
    whole = tmp_path / "whole"
    shutil.copytree(mine, whole)
    wanted = annealz.resume(whole).log_z
    for name in sorted(path.name for path in mine.iterdir() if (other / path.name).exists()):
        folder = broken((mine, other), tmp_path / name, name, how)
        try:
            result = annealz.resume(folder)
        except ValueError as error:
            told = str(error)
            assert name != "result.json"  # which is never read
            assert "\n" not in told, (kind, name, how, told)
            named = "inputs.npz" if (name, how) == ("run.json", "other") else name
            assert named in told, (kind, name, how, told)
        else:
            assert result.log_z == wanted, (kind, name, how)
            is_part = name.startswith(("part", "checkpoint"))
            assert name == "result.json" or (is_part and how == "gone"), (kind, name, how)


def test_a_killed_writer_leaves_nothing_that_stays(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".part-forward-1.npz.x1.tmp").write_bytes(b"half")
    estimated(folder, 0, second_opinion=False)
    assert not list(folder.glob(".*"))
