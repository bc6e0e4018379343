"""What was written before the modules moved into layers is read as it was (`fixtures/written-by-0.1`)."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.methods.folder import RunFolder
from annealz.models.formats.load import read_model
from annealz.schedules.terrain import Terrain
from annealz.training.job import resume_training
from support.places import FIXTURES

WRITTEN = FIXTURES / "written-by-0.1"
EXPECTED = json.loads((WRITTEN / "expected.json").read_text())
ROUNDING = 1e-6  # what another processor may add to a run that goes on


def assert_close(now, before) -> None:
    """The same except for rounding, through dictionaries and lists."""
    if isinstance(before, dict):
        assert now.keys() == before.keys()
        for key in now.keys() - {"messages"}:
            assert_close(now[key], before[key])
    elif isinstance(before, list):
        assert len(now) == len(before)
        for one, other in zip(now, before, strict=True):
            assert_close(one, other)
    else:
        assert now == (pytest.approx(before, rel=1e-9) if isinstance(before, float) else before)


def written():
    """The script that wrote the files."""
    spec = importlib.util.spec_from_file_location("written_by_0_1", WRITTEN / "write.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EXPECTED["runs"])
def test_finished_runs(name: str, tmp_path: Path):
    folder = shutil.copytree(WRITTEN / "runs" / name, tmp_path / name)
    result = annealz.resume(folder)
    expected = EXPECTED["runs"][name]
    assert result.status.value == expected["status"]
    assert result.log_z == pytest.approx(expected["log_z"], abs=1e-12)
    assert result.std_err == pytest.approx(expected["std_err"], abs=1e-12)
    result.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    before = json.loads((folder / "estimate.json").read_text())
    now = result.to_dict()
    assert now.keys() == before.keys()
    for key in now.keys() - {"messages"}:
        assert_close(now[key], before[key])


@pytest.mark.parametrize("name", EXPECTED["runs"])
def test_problems_are_restored(name: str):
    folder = RunFolder(WRITTEN / "runs" / name)
    settings = folder.inputs()[0]
    own = written().METROPOLISED if name == "metropolised" else {}
    problem = folder.problem(settings, **own)
    assert problem.model.digest in {one["digest"] for one in EXPECTED["models"].values()}
    record = json.loads((folder.path / "run.json").read_text())
    record.pop("digest")
    assert settings.to_dict() == record


@pytest.mark.parametrize("name", EXPECTED["unfinished"])
def test_unfinished_runs_resume(name: str, tmp_path: Path):
    folder = shutil.copytree(WRITTEN / "unfinished" / name, tmp_path / name)
    result = annealz.resume(folder)
    assert result.log_z == pytest.approx(EXPECTED["unfinished"][name], abs=ROUNDING)
    assert RunFolder(folder).is_done()


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_models(name: str):
    model = read_model(WRITTEN / "models" / f"{name}.npz")[0]
    assert model.digest == EXPECTED["models"][name]["digest"]
    exact = EXPECTED["models"][name]["exact_log_z"]
    assert annealz.exact_log_z(model) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("name", EXPECTED["schedules"])
def test_schedules(name: str):
    schedule = annealz.Schedule.load(WRITTEN / "schedules" / f"{name}.json")
    assert schedule.digest == EXPECTED["schedules"][name]
    assert schedule.name == name


def test_terrain():
    terrain = Terrain.load(WRITTEN / "terrain.npz")
    assert terrain.tau is not None
    assert annealz.mixing(terrain, 100).num_steps == 100


def test_training_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    copy = shutil.copytree(WRITTEN / "training", tmp_path / "training")
    monkeypatch.chdir(copy)  # the record names rows.npy
    resume_training(copy / "m.training")
    now, before = (read_model(copy / f"{name}.npz")[0] for name in ("m", "whole"))
    np.testing.assert_allclose(now.weights, before.weights, atol=1e-5)
