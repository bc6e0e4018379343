"""The folder of a run of any kind: what was written is read, damaged and foreign files are named."""

import json
import multiprocessing
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from annealz.io import store as store_module
from annealz.io.records import load_record, save_record
from annealz.io.store import Store

ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "bits": np.array([1, 0], np.uint8)}
RECORD = {"method": "dice", "source": "mine:model", "seed": 1, "sizes": [1, 2]}
FULL = OSError(28, "No space left on device")


def made(path: Path, seed: int = 1) -> Store:
    """Begin a run: one finished part, and a checkpoint of the next."""
    store = Store(path)
    store.check_free(force=False)
    store.create({**RECORD, "seed": seed}, ARRAYS, {"model": {"family": "rbm"}})
    store.save("run", {"y": np.full(3, seed)}, {"seconds": 1.5})
    store.checkpoint("reverse").write_bytes(b"state")
    return store


def finished(path: Path, seed: int = 1) -> Store:
    store = made(path, seed)
    store.save("reverse", {"z": np.zeros(2)}, {})
    store.finish({"log_z": seed})
    return store


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


def test_what_was_written_is_read_by_another_store(tmp_path: Path):
    made(tmp_path / "a" / "run")
    store = Store(tmp_path / "a" / "run")
    assert (store.holds_run, store.is_done, store.has_progress) == (True, False, True)
    assert (store.method, store.source, store.record()) == ("dice", "mine:model", RECORD)
    arrays, records = store.inputs()
    assert records == {"model": {"family": "rbm"}}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)
    arrays, meta = store.load("run")
    assert (arrays["y"].tolist(), meta) == ([1, 1, 1], {"seconds": 1.5})
    assert store.has("run")
    assert not store.has("reverse")


def test_a_finished_run_holds_its_parts_and_its_result(tmp_path: Path):
    store = finished(tmp_path / "run")
    assert store.is_done
    written = ["inputs.npz", "part-reverse.npz", "part-run.npz", "result.json", "run.json"]
    assert names(store.path) == written
    assert json.loads((store.path / "result.json").read_text()) == {"log_z": 1}
    np.testing.assert_array_equal(Store(store.path).load("reverse")[0]["z"], np.zeros(2))
    store.check_done()


def test_a_folder_without_a_run(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none"):
        store = Store(path)
        assert (store.method, store.source, store.holds_run) == (None, None, False)
        with pytest.raises(ValueError, match=r"holds no run to resume: it has no run\.json\.$"):
            store.record()
        with pytest.raises(ValueError, match="holds no run: give|is not the folder of a run: give"):
            store.check_done()
        with pytest.raises(ValueError, match=r"run\.npz is missing: put the file of this run back"):
            store.load("run")
    with pytest.raises(ValueError, match="holds an unfinished run: finish it first"):
        made(tmp_path / "run").check_done()


# --- what is there is not overwritten, and what is not ours is not touched -----------------------


def test_a_place_that_is_taken(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ValueError, match="file is a file: give a folder"):
        Store(file).check_free(force=True)
    unfinished, done = made(tmp_path / "a"), finished(tmp_path / "b")
    for store, words in ((unfinished, "an unfinished run: .* resume it"), (done, "a finished run")):
        before = names(store.path)
        with pytest.raises(ValueError, match=f"{words}.*'annealz resume .*force=True"):
            store.check_free(force=False)
        store.check_free(force=True)
        assert names(store.path) == before
    (unfinished.path / "run.json").unlink()  # what is left is somebody's run all the same
    with pytest.raises(ValueError, match="already holds an unfinished run"):
        unfinished.check_free(force=False)


def test_another_run_in_its_place_leaves_nothing_of_the_first(tmp_path: Path):
    store = finished(tmp_path / "run")
    for name in ("report.html", "000000010.npz", ".part-run.npz.abc.tmp", "mine.npz", "notes.txt"):
        (store.path / name).write_text("")
    store.create({**RECORD, "seed": 2})
    assert names(store.path) == ["mine.npz", "notes.txt", "run.json"]
    with pytest.raises(ValueError, match=r"inputs\.npz is missing"):
        store.inputs()
    store.remove()
    assert names(store.path) == ["mine.npz", "notes.txt"]
    other = made(tmp_path / "other")
    other.remove()
    assert not other.path.exists()
    other.remove()


# --- damage, and files of another run --------------------------------------------------------------


def read_all(path: Path) -> object:
    store = Store(path)
    store.record()
    return store.inputs(), store.load("run"), store.load("reverse")


@pytest.mark.parametrize("how", ["other", "cut", "empty", "altered", "gone"])
@pytest.mark.parametrize("name", ["run.json", "inputs.npz", "part-run.npz", "part-reverse.npz"])
def test_damage_is_named_in_one_line(tmp_path: Path, name: str, how: str):
    mine, other = finished(tmp_path / "mine").path, finished(tmp_path / "other", 2).path
    raw = (mine / name).read_bytes()
    at = raw.find(b"NUMPY") if name.endswith("npz") else len(raw) // 2
    changed = {
        "other": (other / name).read_bytes(),
        "cut": raw[: len(raw) // 2],
        "empty": b"",
        "altered": raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :],
    }
    if how == "gone":
        (mine / name).unlink()
    else:
        (mine / name).write_bytes(changed[how])
    told = "inputs.npz" if (name, how) == ("run.json", "other") else name
    with pytest.raises(ValueError, match=re.escape(told)) as refusal:
        read_all(mine)
    assert "\n" not in str(refusal.value)


def test_records_that_are_no_tables_or_of_other_types(tmp_path: Path):
    store = finished(tmp_path / "run")
    for text in ("[]", "3", "[" * 100_000, "{}"):
        (store.path / "run.json").write_text(text)
        with pytest.raises(ValueError, match=r"run\.json was altered or damaged"):
            Store(store.path).record()
    save_record(store.path / "run.json", {"method": ["a"], "source": 3})
    assert (Store(store.path).method, Store(store.path).source) == (None, None)
    (store.path / "run.json").unlink()
    (store.path / "run.json").mkdir()
    assert not Store(store.path).holds_run


# --- disks that refuse, and processes ----------------------------------------------------------------


def refuse(path, *_) -> None:
    raise FULL


def test_a_full_disk_at_the_start_leaves_nothing(tmp_path: Path, monkeypatch):
    store = Store(tmp_path / "run")
    words = r"cannot write to the output folder .*run: No space left on device\.$"
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "write_atomic", refuse)
        with pytest.raises(ValueError, match=words):
            store.check_free(force=False)
    store.check_free(force=False)
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "save_archive", refuse)
        with pytest.raises(ValueError, match=words):
            store.create(RECORD, ARRAYS)
    assert not store.path.exists()


def test_a_full_disk_on_the_way_is_an_error(tmp_path: Path, monkeypatch):
    store = made(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "save_archive", refuse)
        with pytest.raises(OSError, match="No space left"):
            store.save("reverse", ARRAYS, {})
    assert store.checkpoint("reverse").exists()  # of the part that was not kept
    store.save("reverse", ARRAYS, {})
    assert not store.checkpoint("reverse").exists()
    assert store.has("run")


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot write to the output folder .*Not a directory"):
        Store(tmp_path / "file" / "run").check_free(force=False)


def _write_forever(path: Path) -> None:
    store = Store(path)
    with store.writing():
        store.check_free(force=True)
        store.create(RECORD, ARRAYS)
        for count in range(10**9):
            store.save("run", {"x": np.full(200_000, count)}, {"count": count})


def test_killed_in_the_middle_of_a_write_the_last_part_is_whole(tmp_path: Path):
    """And while it wrote no other process was let in."""
    store = Store(tmp_path / "run")
    for moment in (0.0, 0.013, 0.031):
        process = multiprocessing.get_context("spawn").Process(
            target=_write_forever, args=(store.path,)
        )
        process.start()
        while not store.has("run"):
            time.sleep(0.01)
        assert process.pid is not None
        words = f"in use by another process of annealz, number {process.pid}: wait until it ends"
        with pytest.raises(ValueError, match=words), store.writing():
            pass
        time.sleep(moment)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with store.writing():
            arrays, meta = Store(store.path).load("run")
            np.testing.assert_array_equal(arrays["x"], np.full(200_000, meta["count"]))
            store.check_free(force=True)
            store.create({**RECORD, "seed": 2})
            assert names(store.path) == [".lock", "run.json"]
    assert load_record(store.path / "run.json")["seed"] == 2
    store.remove()
    assert not store.path.exists()
