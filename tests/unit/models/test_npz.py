"""RBM files: round trip, plain np.savez files, and every refusal with the file's name."""

import os
from pathlib import Path

import numpy as np
import pytest

from annealz.models.formats.load import load_binary
from annealz.models.formats.npz import save_rbm
from annealz.models.rbm import RBM
from annealz.testing import random_rbm

META = {"name": "small", "note": 1.25}


@pytest.fixture
def model() -> RBM:
    plain = random_rbm(3, 5, seed=1)
    means = np.linspace(0.1, 0.9, 5)
    return RBM(plain.weights, plain.hidden_bias, plain.visible_bias, means)


@pytest.fixture
def path(tmp_path: Path, model: RBM) -> Path:
    save_rbm(tmp_path / "rbm.npz", model, META)
    return tmp_path / "rbm.npz"


def arrays_of(model: RBM) -> dict[str, np.ndarray]:
    names = ("weights", "hidden_bias", "visible_bias", "visible_means")
    return {n: np.asarray(getattr(model, n)) for n in names if getattr(model, n) is not None}


def assert_same(one: RBM, two: RBM) -> None:
    assert arrays_of(one).keys() == arrays_of(two).keys()
    for name, array in arrays_of(one).items():
        np.testing.assert_array_equal(array, arrays_of(two)[name], err_msg=name)


def test_round_trip(path: Path, model: RBM):
    loaded, meta = load_binary(path)
    assert_same(loaded, model)
    assert meta == META


def test_round_trip_without_means_or_record(tmp_path: Path):
    save_rbm(tmp_path / "a.npz", random_rbm(2, 4))
    loaded, meta = load_binary(tmp_path / "a.npz")
    assert loaded.visible_means is None
    assert_same(loaded, random_rbm(2, 4))
    assert meta == {"name": "a"}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_plain_npz_loads(tmp_path: Path, model: RBM, save):
    """What people have: float64 arrays of their own, without checksum or record."""
    save(tmp_path / "a.npz", **{n: a.astype(np.float64) for n, a in arrays_of(model).items()})
    loaded, meta = load_binary(tmp_path / "a.npz")
    assert_same(loaded, model)
    assert meta == {"name": "a"}


def test_more_arrays_than_needed_are_no_harm(tmp_path: Path, model: RBM):
    np.savez(tmp_path / "a.npz", **arrays_of(model), epochs=np.array(3))
    assert_same(load_binary(tmp_path / "a.npz")[0], model)


@pytest.mark.parametrize("name", ["weights", "hidden_bias", "visible_bias"])
def test_a_missing_array_is_named_with_what_there_is(tmp_path: Path, model: RBM, name: str):
    arrays = arrays_of(model)
    del arrays[name]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=rf"a\.npz lacks {name}: .*this one holds {min(arrays)}"):
        load_binary(tmp_path / "a.npz")


def test_an_npz_of_nothing_lacks_everything(tmp_path: Path):
    np.savez(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="lacks weights, hidden_bias, visible_bias: .*nothing"):
        load_binary(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("weights", np.ones((5, 3)), r"\(5, 3\).*hidden_bias of shape \(5,\), got shape \(3,\)"),
        ("hidden_bias", np.ones(4), r"\(3, 5\).*hidden_bias of shape \(3,\), got shape \(4,\)"),
        ("visible_bias", np.ones(3), r"\(3, 5\).*visible_bias of shape \(5,\), got shape \(3,\)"),
        (
            "visible_means",
            np.full(5, 1.5),
            r"visible_means must lie between 0 and 1, got 1.5 \(5 of 5\)",
        ),
        ("visible_means", np.ones(3), r"visible_means of shape \(5,\), got shape \(3,\)"),
        ("weights", np.ones(15), r"weights must be a .*matrix, got shape \(15,\)"),
        ("weights", np.full((3, 5), np.nan), "weights must be finite.* 15 NaN"),
        ("visible_bias", [0, 0, np.inf, 0, 0], "visible_bias must be finite.* 1 NaN or infinite"),
        ("hidden_bias", np.ones(3, complex), "hidden_bias must hold real numbers"),
        ("hidden_bias", np.array(["a", "b", "c"]), "hidden_bias must hold real numbers"),
    ],
)
def test_wrong_arrays_are_refused_naming_both_shapes(
    tmp_path: Path, model: RBM, name: str, array, words: str
):
    np.savez(tmp_path / "a.npz", **{**arrays_of(model), name: array})
    with pytest.raises(ValueError, match=rf"a\.npz: .*{words}"):
        load_binary(tmp_path / "a.npz")


def test_pickled_weights_are_refused(tmp_path: Path, model: RBM):
    arrays = {**arrays_of(model), "weights": np.array([{}], dtype=object)}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=r"a\.npz holds pickled objects"):
        load_binary(tmp_path / "a.npz")


def test_truncation_is_refused(path: Path):
    raw = path.read_bytes()
    for length in range(0, len(raw), 31):
        path.write_bytes(raw[:length])
        with pytest.raises(ValueError, match=r"rbm\.npz"):
            load_binary(path)


def test_one_changed_weight_is_refused(path: Path, model: RBM):
    """With valid zip checksums, as an editor of the file would leave it."""
    with np.load(path) as loaded:
        members = dict(loaded)
    members["weights"] = members["weights"].copy()
    members["weights"][0, 0] += 1e-3
    np.savez(path, **members)
    with pytest.raises(ValueError, match=r"rbm\.npz was altered or damaged"):
        load_binary(path)


def flipped(raw: bytes, positions) -> list[bytes]:
    return [raw[:i] + bytes([raw[i] ^ 0xFF]) + raw[i + 1 :] for i in positions]


def damaged_loads(path: Path, copies: list[bytes], model: RBM) -> int:
    """How many damaged copies were refused by name; the others must be the same model."""
    refused = 0
    for copy in copies:
        path.write_bytes(copy)
        try:
            loaded, meta = load_binary(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017 (some flips are harmless)
            refused += 1
        else:
            assert_same(loaded, model)
            assert meta == META
    return refused


def test_flipped_bytes_of_members_are_refused_or_harmless(path: Path, model: RBM):
    raw = path.read_bytes()
    directory = raw.index(b"PK\x01\x02")
    copies = flipped(raw, range(directory))
    assert damaged_loads(path, copies, model) > len(copies) / 2


def test_flipped_bytes_of_the_directory_are_refused_or_harmless(path: Path, model: RBM):
    raw = path.read_bytes()
    directory = raw.index(b"PK\x01\x02")
    damaged_loads(path, flipped(raw, range(directory, len(raw))), model)


def test_a_full_disk_leaves_the_old_model(path: Path, model: RBM, monkeypatch: pytest.MonkeyPatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            save_rbm(path, random_rbm(2, 2))
    assert_same(load_binary(path)[0], model)
    assert [file.name for file in path.parent.iterdir()] == ["rbm.npz"]
