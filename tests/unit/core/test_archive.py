"""Archives: what goes in comes out, what was damaged is named, what was there stays."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from annealz.io import files
from annealz.io.archive import load_archive, save_archive
from annealz.io.files import write_atomic

ARRAYS = {
    "float": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),
    "wide": np.array([np.pi, -0.0, np.inf, 5e-324]),
    "bytes": np.arange(7, dtype=np.uint8),
    "empty": np.zeros((0, 3), np.int64),
    "scalar": np.array(3.5),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}
META = {"name": "ä", "exact_log_z": 208.63, "nested": {"list": [1, None, True]}}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.npz"
    save_archive(path, ARRAYS, META)
    return path


def same(arrays: dict, others: dict) -> bool:
    return arrays.keys() == others.keys() and all(
        arrays[name].dtype == others[name].dtype
        and arrays[name].shape == others[name].shape
        and arrays[name].tobytes() == others[name].tobytes()
        for name in arrays
    )


def test_round_trip_keeps_every_bit(archive: Path):
    arrays, meta = load_archive(archive)
    assert same(arrays, ARRAYS)
    assert meta == META


def test_an_archive_is_an_ordinary_npz(archive: Path):
    with np.load(archive, allow_pickle=False) as loaded:
        assert set(loaded.files) == {*ARRAYS, "meta", "checksum"}
        assert json.loads(loaded["meta"].tobytes()) == META


def test_the_path_may_be_a_string(tmp_path: Path):
    save_archive(str(tmp_path / "a.npz"), {"x": np.ones(2)}, {})
    arrays, meta = load_archive(str(tmp_path / "a.npz"))
    assert same(arrays, {"x": np.ones(2)})
    assert meta == {}


def test_plain_savez_needs_leave(tmp_path: Path):
    path = tmp_path / "plain.npz"
    np.savez(path, **ARRAYS)
    with pytest.raises(ValueError, match=r"plain\.npz has no checksum"):
        load_archive(path)
    arrays, meta = load_archive(path, need_checksum=False)
    assert same(arrays, ARRAYS)
    assert meta == {}


def test_compressed_savez_loads(tmp_path: Path):
    path = tmp_path / "compressed.npz"
    np.savez_compressed(path, **ARRAYS)
    assert same(load_archive(path, need_checksum=False)[0], ARRAYS)


# --- damage ----------------------------------------------------------------------------------


def test_missing_and_folder_and_empty_are_named(tmp_path: Path):
    with pytest.raises(ValueError, match=r"cannot read .*none\.npz: No such file"):
        load_archive(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="cannot read .*directory"):
        load_archive(tmp_path)
    (tmp_path / "empty.npz").touch()
    with pytest.raises(ValueError, match=r"empty\.npz is empty"):
        load_archive(tmp_path / "empty.npz")


def test_truncation_at_any_length_is_named(archive: Path):
    raw = archive.read_bytes()
    for length in {*range(1, 200), *range(200, len(raw), 13), *range(len(raw) - 100, len(raw))}:
        archive.write_bytes(raw[:length])
        with pytest.raises(
            ValueError, match=r"archive\.npz .*(truncated|not an npz|damaged|altered)"
        ):
            load_archive(archive)


@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x20, 0x80])
def test_an_altered_byte_is_named_or_harmless(tmp_path: Path, mask: int):
    """Every byte: headers, names, data, checksum, directory. No other exception, no other value.

    Bytes that carry nothing (dates, padding) may change without harm.
    """
    path = tmp_path / "small.npz"
    arrays = {"x": np.array([1.5, -2.5]), "y": np.arange(3)}
    save_archive(path, arrays, {"a": 1})
    raw = path.read_bytes()
    refused = 0
    for i in range(len(raw)):
        path.write_bytes(raw[:i] + bytes([raw[i] ^ mask]) + raw[i + 1 :])
        try:
            loaded, meta = load_archive(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017 (most bytes are refused, some are harmless)
            refused += 1
        else:
            assert same(loaded, arrays), f"byte {i}"
            assert meta == {"a": 1}, f"byte {i}"
    assert refused > len(raw) / 2


def rewritten(path: Path, **changes: np.ndarray | None) -> None:
    """The archive with members replaced or left out, and valid zip checksums."""
    with np.load(path) as loaded:
        members = {**loaded, **changes}
    np.savez(path, **{name: array for name, array in members.items() if array is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"wide": ARRAYS["wide"] + 1e-16},
        {"wide": ARRAYS["wide"][:-1]},
        {"float": ARRAYS["float"].T},
        {"bytes": ARRAYS["bytes"].view(np.int8)},
        {"empty": np.zeros((0, 4), np.int64)},
        {"scalar": None},
        {"more": np.ones(1)},
        {"meta": np.frombuffer(b'{"name": "b"}', np.uint8)},
        {"meta": None},
        {"checksum": np.zeros(32, np.uint8)},
        {"checksum": np.zeros(0)},
    ],
)
def test_altered_members_are_refused(archive: Path, changes: dict):
    """Value, shape, dtype, name or record: all of them are under the checksum."""
    rewritten(archive, **changes)
    if "wide" in changes and changes["wide"].tobytes() == ARRAYS["wide"].tobytes():
        pytest.fail("the test altered nothing")
    with pytest.raises(ValueError, match=r"archive\.npz was altered or damaged"):
        load_archive(archive)


@pytest.mark.parametrize("meta", [b"no json", b"\xff\xfe", b""])
def test_a_foreign_meta_is_named(tmp_path: Path, meta: bytes):
    """A plain npz may well have an array called meta."""
    path = tmp_path / "foreign.npz"
    np.savez(path, x=np.ones(2), meta=np.frombuffer(meta, np.uint8))
    with pytest.raises(ValueError, match=r"foreign\.npz"):
        load_archive(path, need_checksum=False)


# --- pickles ---------------------------------------------------------------------------------


class Bomb:
    """An object whose unpickling leaves a trace."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return (Path.touch, (self.target,))


def test_a_pickle_file_is_refused_unread(tmp_path: Path):
    path, trace = tmp_path / "model.npz", tmp_path / "trace"
    path.write_bytes(pickle.dumps({"weights": Bomb(trace)}))
    with pytest.raises(ValueError, match=r"model\.npz is a pickle, which is never loaded"):
        load_archive(path, need_checksum=False)
    assert not trace.exists()


def test_pickled_arrays_are_refused_unread(tmp_path: Path):
    path, trace = tmp_path / "model.npz", tmp_path / "trace"
    np.savez(path, weights=np.array([Bomb(trace)], dtype=object))
    with pytest.raises(ValueError, match=r"model\.npz holds pickled objects"):
        load_archive(path, need_checksum=False)
    assert not trace.exists()


def test_object_arrays_are_not_written(tmp_path: Path):
    with pytest.raises(ValueError, match="[Oo]bject arrays"):
        save_archive(tmp_path / "a.npz", {"x": np.array([None])}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"hello", b"\x93NUMPY", b"\x00" * 100, b"P"])
def test_other_files_are_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.npz is not an npz file"):
        load_archive(path)


def test_a_zip_of_other_files_is_refused(tmp_path: Path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr("weights.npy", b"not an array")
    path = tmp_path / "zip.npz"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match=r"zip\.npz"):
        load_archive(path)


# --- atomic writes ---------------------------------------------------------------------------


def fail(*_args, **_options):
    raise OSError(28, "No space left on device")


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_failing_write_leaves_the_old_content(
    archive: Path, call: str, monkeypatch: pytest.MonkeyPatch
):
    """A full disk: the reader still finds the old file, and no half-written one beside it."""
    before = archive.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space"):
            save_archive(archive, {"x": np.zeros(3)}, {})
    assert archive.read_bytes() == before
    assert only(archive.parent) == ["archive.npz"]


def test_an_interrupted_write_leaves_the_old_content(
    archive: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = archive.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomic(archive, b"new")
    assert archive.read_bytes() == before
    assert only(archive.parent) == ["archive.npz"]


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real = os.open

    def refuse(path, flags, *args, **options):
        return fail() if Path(path) == tmp_path else real(path, flags, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "open", refuse)
        write_atomic(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"


def test_content_is_on_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """fsync before rename: otherwise a power cut leaves an empty file under the good name."""
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *a: (calls.append("fsync"), fsync(*a)))
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("replace"), replace(*a)))
    write_atomic(tmp_path / "file", b"content")
    assert calls[:2] == ["fsync", "replace"]


def test_a_written_file_has_ordinary_permissions(tmp_path: Path):
    """mkstemp makes private files: a colleague could not read the result."""
    before = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_missing_folder_is_an_os_error(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "none" / "file", "text")
