"""Data files, where they came from, and their binarisation."""

import gzip
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from annealz.core.random import Bits
from annealz.testing import assert_within_mc_error
from annealz.training.data import DataSource, binarise, check_rows, digest_rows, load_mnist
from support.idx import encode

PIXELS = np.array([[[0, 255], [51, 102]], [[153, 0], [255, 255]], [[0, 0], [0, 51]]], np.uint8)
ROWS = PIXELS.reshape(3, 4) / np.float32(255)


def write(path: Path) -> Path:
    """The pixels in the format that the name promises."""
    if path.suffix == ".npy":
        np.save(path, PIXELS)
    elif path.suffix == ".npz":
        np.savez(path, pixels=PIXELS)
    else:
        path.write_bytes(gzip.compress(encode(PIXELS)) if path.suffix == ".gz" else encode(PIXELS))
    return path


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a-idx3-ubyte", "a-idx3-ubyte.gz"])
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str):
    source = DataSource.of(write(tmp_path / name))
    rows = source.rows()
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, ROWS)
    assert source.name == name
    again = DataSource.read(source.to_dict())
    assert again == source
    assert digest_rows(again.rows()) == digest_rows(ROWS)


def test_a_source_is_found_again_from_another_folder(tmp_path: Path, monkeypatch):
    write(tmp_path / "a.npy")
    monkeypatch.chdir(tmp_path)
    source = DataSource.of("a.npy")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(source.rows(), ROWS)


def test_digests_tell_shapes_values_and_order_apart():
    digests = {digest_rows(a) for a in (ROWS, ROWS.reshape(4, 3), ROWS[::-1], 1 - ROWS)}
    assert len(digests) == 4
    assert digest_rows(np.asfortranarray(ROWS)) == digest_rows(ROWS)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((0, 2, 2), np.uint8), "at least one of each, got shape (0, 4)"),
        (np.zeros(4), "must hold rows of units"),
        (np.full((2, 2), np.nan), "must be finite, got 4 NaN or infinite of 4 values"),
        (np.full((2, 2), 1e300), "must be finite"),
        (np.full((2, 2), -1.0), "data must lie in [0, 1], got values from -1 to -1: rescale"),
        (PIXELS.astype(int), "got values from 0 to 255: rescale"),
        (np.zeros((2, 2), complex), "must hold real numbers, got dtype complex128"),
    ],
    ids=["empty", "vector", "nan", "overflow", "negative", "integers", "complex"],
)
def test_bad_arrays(tmp_path: Path, array: np.ndarray, words: str):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ValueError, match="bad.npy") as caught:
        DataSource.of(tmp_path / "bad.npy").rows()
    assert words in str(caught.value)


def test_bad_files(tmp_path: Path):
    np.savez(tmp_path / "two.npz", a=ROWS, b=ROWS)
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY")
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    for name, words in {
        "two.npz": "holds 2 arrays: give a file of one",
        "cut.npy": "truncated or damaged",
        "objects.npy": "pickled objects, which are never loaded",
        "none.npy": "no data file",
    }.items():
        with pytest.raises(ValueError, match=words):
            DataSource.of(tmp_path / name).rows()


def test_rows_that_are_right_are_not_copied():
    assert check_rows(ROWS) is not None
    assert np.shares_memory(check_rows(ROWS), ROWS)


def test_mnist_is_the_data_set_and_a_path_is_a_file(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("ANNEALZ_MNIST", str(tmp_path))
    assert DataSource.of("mnist") == DataSource(name="mnist", kind="mnist", path=str(tmp_path))
    assert DataSource.of("mnist", tmp_path / "b").path == str(tmp_path / "b")
    assert DataSource.of("./mnist").kind == "file"
    monkeypatch.delenv("ANNEALZ_MNIST")
    assert DataSource.of("mnist").path is None
    with pytest.raises(ValueError, match="no MNIST in"):
        DataSource.of("mnist", tmp_path / "nowhere").rows()
    with pytest.raises(ValueError, match="no MNIST in"):
        load_mnist(tmp_path)


# --- binarisation -----------------------------------------------------------------------------


def test_binarisation_has_the_intensities_as_means(seed: int):
    """Mutant: the same coin for all units of a row."""
    rows = 20_000
    intensities = np.array([0.1, 0.5, 0.9, 0.02], np.float32)
    drawn = binarise(np.tile(intensities, (rows, 1)), seed)
    assert drawn.dtype == np.float32
    assert set(np.unique(drawn)) == {0, 1}
    errors = np.sqrt(intensities * (1 - intensities) / rows)
    assert_within_mc_error(drawn.mean(0), intensities, errors)
    together = (drawn[:, 0] * drawn[:, 1]).mean()
    assert_within_mc_error(together, 0.05, np.sqrt(0.05 * 0.95 / rows))
    with pytest.raises(AssertionError, match="z = "):
        assert_within_mc_error(drawn[:, 0].mean(), 0.05, np.sqrt(0.05 * 0.95 / rows))


def test_binarisation_is_a_function_of_seed_row_and_unit(seed: int):
    data = np.full((5000, 3), 0.5, np.float32)
    drawn = binarise(data, seed)
    np.testing.assert_array_equal(drawn, binarise(data, seed))
    np.testing.assert_array_equal(drawn[:100], binarise(data[:100], seed))
    assert not np.array_equal(drawn, binarise(data, seed + 1))
    assert not np.array_equal(drawn[:904], drawn[4096:])  # the second block has coins of its own


@pytest.mark.parametrize("coin", [0.0, 1.0])
def test_binary_data_come_back_as_they_are(coin: float, monkeypatch):
    """Whatever the coins, even one that is rounded up to 1."""
    monkeypatch.setattr(
        Bits, "uniforms", lambda self, n, draw: jnp.full((self.num_chains, n), coin)
    )
    data = np.random.default_rng(0).integers(0, 2, (7, 11 + int(coin))).astype(np.float32)
    np.testing.assert_array_equal(binarise(data), data)
