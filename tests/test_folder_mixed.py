"""A run folder with files of another run, cut short, empty or gone: one sentence that names the file."""

import json
import shutil
from pathlib import Path

import pytest

import annealz
from annealz.cli.main import main
from annealz.testing import random_rbm

OPTIONS = {"schedule": "linear", "num_steps": 40, "num_chains": 30, "two_sided": True}
READ = (
    "run.json", "inputs.npz", "schedule.json", "second-schedule.json", "run.npz", "reverse.npz",
    "second.npz",
)  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """Two finished runs of one model, which differ in their seeds and steps."""
    root, model = tmp_path_factory.mktemp("runs"), random_rbm(5, 8)
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
    annealz.estimate_log_z(
        random_rbm(4, 6), schedule="linear", num_steps=20, num_chains=30, out=folder
    )
    assert not list(folder.glob(".*"))
