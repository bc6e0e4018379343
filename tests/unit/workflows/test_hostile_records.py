"""Hostile schedules, records, runs and data: each is refused in one sentence."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.engine.checkpoint import Checkpoint, RunState
from annealz.engine.run import Run
from annealz.io.archive import load_archive, pack_archive, save_archive
from annealz.io.records import load_record
from annealz.models.formats.load import read_model
from annealz.models.formats.npz import save_model
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.training.data import read_data
from support.hostile import DEEP, MODEL, refused

# --- schedules, records, runs --------------------------------------------------------------------


def schedule_file(path: Path, **changes) -> Path:
    annealz.sm08(145).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


TERRAIN = {"betas": [0, 1], "mean": [0, 1], "variance": [1, 1], "ess": [5, 5]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": 3}, "name of the schedule must be a line of text, got 3"),
        ({"betas": "0"}, "betas of the schedule must be a list"),
        ({"betas": [0, [1], 1]}, "must be a number, got a list"),
        ({"betas": [0, 10**400]}, "must be a number, got a number too large"),
        ({"provenance": [1]}, "provenance of the schedule must be a table"),
        ({"digest": 5}, "digest of the schedule must be a text"),
        ({"terrain": [1]}, "terrain of the schedule is damaged"),
        ({"terrain": {}}, "its terrain is damaged"),
        ({"terrain": {**TERRAIN, "mean": [0, 10**400]}}, "a number too large"),
        ({"terrain": {**TERRAIN, "mean": [{}, 1]}}, "must be a number"),
        ({"terrain": {**TERRAIN, "sweeps": "9"}}, "sweeps of the terrain must be a whole number"),
        ({"terrain": {**TERRAIN, "more": 1}}, "its terrain is damaged"),
    ],
)
def test_saved_schedules(tmp_path: Path, changes: dict, words: str):
    assert words in refused(Schedule.load, schedule_file(tmp_path / "a.json", **changes))


@pytest.mark.parametrize(
    "text", [DEEP, '{"a":' * 99_999, "[0, 1" + "0" * 400 + "]", "[0, [[1]]]", "[0, {}]", "\x00", ""]
)
def test_other_schedules(tmp_path: Path, text: str):
    for name in ("a.json", "a.txt", "a.csv"):
        (tmp_path / name).write_text(text)
        assert f"schedule file {tmp_path / name}: " in refused(Schedule.load, tmp_path / name)
    (tmp_path / "a.txt").write_bytes(b"\xff 0 1")
    refused(Schedule.load, tmp_path / "a.txt")


@pytest.mark.parametrize("text", [DEEP, "[]", "3", "{}", '{"digest": []}', "\xff"])
def test_records_of_folders(tmp_path: Path, text: str):
    (tmp_path / "run.json").write_bytes(text.encode("latin1"))
    assert "run.json was altered or damaged" in refused(load_record, tmp_path / "run.json")


RUN_ARRAYS = {
    "log_weights": np.zeros(4),
    "states": np.zeros((4, 3), np.uint8),
    **{f"trace:{name}": np.arange(2.0) for name in ("steps", "betas", "log_z", "ess")},
}
RUN_META = {"log_z0": 1.0, "seed": 0, "purpose": "run", "seconds": 1.0, "messages": []}
RUN_META |= {"is_reverse": False, "island_size": None, "num_resamplings": 0, "num_filling": 0}


@pytest.mark.parametrize(
    ("arrays", "meta", "words"),
    [
        ({"log_weights": np.array(["a"])}, {}, "log_weights must hold real numbers"),
        ({"log_weights": np.zeros((4, 4))}, {}, "log_weights has shape (4, 4)"),
        ({"log_weights": np.zeros(0)}, {}, "0 chains"),
        ({"states": np.zeros(3)}, {}, "states has shape (3,)"),
        ({"trace:ess": np.zeros(3)}, {}, "trace:ess has shape (3,)"),
        ({"mean:u": np.zeros(7)}, {}, "mean:u has shape (7,)"),
        ({}, {"log_z0": "1"}, "log_z0 of the record of a run must be a number"),
        ({}, {"messages": "text"}, "messages of the record of a run must be a list"),
        ({}, {"island_size": 3}, "4 chains make no islands of 3"),
        ({}, {"island_size": 0}, "no islands of 0"),
        ({}, {"seed": 1.5}, "must be a whole number"),
    ],
)
def test_stored_runs(arrays: dict, meta: dict, words: str):
    schedule = annealz.linear(10)
    assert Run.from_arrays(RUN_ARRAYS, RUN_META, schedule).num_chains == 4
    assert words in refused(
        Run.from_arrays, {**RUN_ARRAYS, **arrays}, {**RUN_META, **meta}, schedule
    )
    for name in RUN_ARRAYS:
        rest = {key: array for key, array in RUN_ARRAYS.items() if key != name}
        assert f"lacks the array {name}" in refused(Run.from_arrays, rest, RUN_META, schedule)
    for name in RUN_META:
        rest = {key: value for key, value in RUN_META.items() if key != name}
        assert f"lacks {name}" in refused(Run.from_arrays, RUN_ARRAYS, rest, schedule)


def test_checkpoints(tmp_path: Path):
    start = RunState(0, [np.zeros((4, 3), np.float32), np.arange(4, dtype=np.float32)], [])
    checkpoint = Checkpoint(tmp_path / "a.npz", "digest")
    checkpoint.save(RunState(1, start.blocks, [{"step": 1, "u": 2.0}]), 3.0)
    assert checkpoint.load(start)[0].records == [{"step": 1, "u": 2.0}]
    arrays, meta = load_archive(tmp_path / "a.npz")
    for changes, record in (
        ({"leaf:0": np.zeros(9, np.uint8)}, {}),
        ({"leaf:1": np.zeros(9)}, {}),
        ({"leaf:1": np.array(["a"])}, {}),
        ({"record:u": np.zeros(5)}, {}),
        ({"record:step": np.array(5)}, {}),
        ({}, {"step": "1"}),
        ({}, {"seconds": None}),
        ({}, {"digest": 4}),
    ):
        save_archive(tmp_path / "a.npz", {**arrays, **changes}, {**meta, **record})
        assert "a.npz" in refused(checkpoint.load, start)
    save_archive(tmp_path / "a.npz", {}, meta)
    assert "lacks the array leaf:0" in refused(checkpoint.load, start)


def test_terrains(tmp_path: Path):
    path = tmp_path / "a.npz"
    columns = {name: np.array(values) for name, values in TERRAIN.items()}
    for arrays, meta in (
        ({**columns, "mean": np.array(["a", "b"])}, {}),
        ({**columns, "more": np.ones(2)}, {}),
        ({}, {}),
        (columns, {"sweeps": []}),
        (columns, {"more": 1}),
    ):
        save_archive(path, arrays, {"kind": "terrain", **meta})
        assert "a.npz holds a damaged terrain" in refused(Terrain.load, path)


# --- data --------------------------------------------------------------------------------------


def test_data(tmp_path: Path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\0\0\x08\xff" + b"\xff" * 1020))
    assert "a.gz declares its array" in refused(read_data, tmp_path / "a.gz")
    (tmp_path / "a").write_bytes(b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"\1")
    assert "is damaged" in refused(read_data, tmp_path / "a")
    (tmp_path / "a.npz").write_bytes(pack_archive({"x": np.array(["a"])}, {}))
    assert "must hold real numbers" in refused(read_data, tmp_path / "a.npz")


def test_models_that_were_saved_are_read(tmp_path: Path):
    for model in (MODEL, annealz.Potts.square(4, 3, 0.8), annealz.Ising.square(4, 0.3)):
        save_model(tmp_path / "a.npz", model, {"name": "a", "note": {"any": [1]}})
        found, meta = read_model(tmp_path / "a.npz")
        assert (found.digest, meta["note"]) == (model.digest, {"any": [1]})
