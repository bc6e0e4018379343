"""A run folder with files of another run, cut short, empty or gone: one sentence that names the file."""

import contextlib
import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.cli.main import main
from annealz.testing import random_rbm
from annealz.training.data.source import DataSource
from annealz.training.folder import TrainingFolder
from annealz.training.job import train_to_file
from annealz.training.settings import Settings

OPTIONS = {"schedule": "linear", "num_steps": 40, "num_chains": 100, "two_sided": True}
READ = (
    "run.json", "inputs.npz", "schedule.json", "second-schedule.json", "run.npz", "reverse.npz",
    "second.npz",
)  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """Two finished runs of one model, which differ in their seeds and steps."""
    root, model = tmp_path_factory.mktemp("runs"), random_rbm(4, 6)
    for seed, name in enumerate(("mine", "other")):
        options = OPTIONS | {"num_steps": 40 + seed, "draws": None}
        annealz.estimate_log_z(model, seed=seed, out=root / name, **options)
    return root / "mine", root / "other"


def broken(folders: tuple[Path, Path], tmp_path: Path, name: str, how: str) -> Path:
    mine, other = folders
    folder = tmp_path / "run"
    shutil.copytree(mine, folder)
    file = folder / name
    assert file.is_file(), sorted(path.name for path in folder.iterdir())
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


@pytest.mark.parametrize("how", ["other", "cut", "empty", "gone"])
@pytest.mark.parametrize("name", READ)
def test_the_file_is_named(folders, tmp_path, capsys, name, how):
    folder = broken(folders, tmp_path, name, how)
    for command in ("resume", "report"):
        with pytest.raises(SystemExit) as end:
            main([command, str(folder), *(["--quiet"] if command == "resume" else [])])
        said = capsys.readouterr()
        if command == "resume" and (name, how) == ("run.npz", "gone"):
            assert end.value.code in (0, None)  # the run is made again, to the same bits
            again, before = (
                json.loads((d / "estimate.json").read_text()) for d in (folder, folders[0])
            )
            assert again["log_z"] == before["log_z"]
            (folder / "run.npz").unlink()
            continue
        assert end.value.code == 2, (command, said)
        assert said.err.count("\n") == 1
        told = "inputs.npz" if (name, how) == ("run.json", "other") else name
        if (name, how) == ("run.npz", "gone"):
            assert "unfinished run" in said.err
        elif (name, how) == ("run.json", "gone"):
            assert "no run" in said.err
        else:
            assert told in said.err, said.err


def test_a_killed_writer_leaves_nothing_that_stays(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".run.npz.x1.tmp").write_bytes(b"half")
    estimated(folder, 0, second_opinion=False)
    assert not list(folder.glob(".*"))


# --- every file of every kind of folder ------------------------------------------------------


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
            random_rbm(4, 6), method="exchange", num_rungs=4, num_ensembles=5, num_steps=64, num_draws=10, chunk_steps=8,
            seed=seed, out=out, on_progress=stop,
        )  # fmt: skip


def trained(out: Path, seed: int, is_done: bool, series: int | None = 10) -> None:
    """In the folder `out`, beside its model."""
    rows, file = out.parent / "rows.npy", out.parent / f"{out.name}-model.npz"
    np.save(rows, np.random.default_rng(0).integers(0, 2, (50, 6)).astype(np.float32))
    settings = Settings(num_hidden=4, num_updates=40, batch_size=10, seed=seed)

    def stop(now) -> None:
        if not is_done and now.num_done >= 20:
            raise KeyboardInterrupt

    with contextlib.nullcontext() if is_done else pytest.raises(KeyboardInterrupt):
        train_to_file(DataSource.of(str(rows)), settings, file, series=series, on_progress=stop)
    TrainingFolder.beside(file).path.rename(out)


KINDS: dict[str, Callable[[Path, int], None]] = {
    "forward": lambda out, seed: estimated(out, seed, second_opinion=False),
    "second": lambda out, seed: estimated(out, seed),
    "two sides": lambda out, seed: estimated(out, seed, two_sided=True),
    "islands": lambda out, seed: estimated(out, seed, resample=0.5, num_chains=100),
    "forward, cut": lambda out, seed: estimated(out, seed, "run", second_opinion=False),
    "two sides, cut": lambda out, seed: estimated(out, seed, "reverse", two_sided=True),
    "exchange": exchanged,
    "exchange, cut": lambda out, seed: exchanged(out, seed, "exchange"),
    "training": lambda out, seed: trained(out, seed, True),
    "training, cut": lambda out, seed: trained(out, seed, False),
}


TOLD_BY = {  # where another file than the wrong one is named, or none
    ("run.json", "other"): {"inputs.npz"},
    ("run.json", "gone"): {"no run"},
    ("training.json", "other"): {"result.json", "checkpoint.npz"},
    ("training.json", "gone"): {"no run"},
}


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


def outcome(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def number(text: str) -> object:
    """What a result is told by: log Z, or the digest of a trained model."""
    found = json.loads(text)
    return found["log_z"] if "log_z" in found else found["digest"]


@pytest.mark.parametrize("how", ["other", "cut", "empty", "gone"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_file_is_named_or_not_needed(of_kind, tmp_path, capsys, kind, how):
    """Never a traceback, never another number: a refusal of one line, or the same result."""
    mine, other = of_kind(kind)
    whole = tmp_path / "whole"
    shutil.copytree(mine, whole)
    code, out, err = outcome(capsys, "resume", str(whole), "--json", "--quiet")
    assert code == 0, err
    wanted, is_training = number(out), (mine / "training.json").exists()
    for name in sorted(path.name for path in mine.iterdir() if (other / path.name).exists()):
        for command in ("resume", "report"):
            folder = broken((mine, other), tmp_path / f"{command} {name}", name, how)
            options = ["--json", "--quiet"] if command == "resume" else []
            code, out, err = outcome(capsys, command, str(folder), *options)
            what = (kind, name, how, command, err)
            assert code in (0, 2), what
            if code == 2:
                assert err.count("\n") == 1, what
                assert "annealz: " in err, what
                told = {name} | (
                    {"unfinished run", "has no report"} if command == "report" else set()
                )
                told |= TOLD_BY.get((name, how), set())
                assert any(words in err for words in told), what
            elif command == "resume":
                assert number(out) == wanted, what
                if not is_training and name != "estimate.json":  # which is for others, and not read
                    kept = json.loads((folder / "estimate.json").read_text())
                    assert kept["log_z"] == wanted, what
