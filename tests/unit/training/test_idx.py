"""IDX files: what MNIST is stored in; damage is named."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest

from annealz.training.data import read_idx
from annealz.training.mnist import load_mnist
from support.idx import PIXELS, encode


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4), (1, 1, 24)], ids=str)
def test_round_trip(tmp_path: Path, pack, shape: tuple):
    (tmp_path / "a").write_bytes(pack(encode(PIXELS.reshape(shape))))
    read = read_idx(tmp_path / "a")
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, PIXELS.reshape(shape))
    np.testing.assert_array_equal(read_idx(str(tmp_path / "a")), read)


def test_the_header_is_big_endian(tmp_path: Path):
    """On a little-endian machine the wrong order promises 33 million images."""
    (tmp_path / "a").write_bytes(b"\0\0\x08\x01" + b"\0\0\0\2" + b"\5\6")
    np.testing.assert_array_equal(read_idx(tmp_path / "a"), [5, 6])


def test_no_images_are_an_empty_array(tmp_path: Path):
    (tmp_path / "a").write_bytes(encode(PIXELS[:0]))
    assert read_idx(tmp_path / "a").shape == (0, 3, 4)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"\0\0\x08", b"hello world", b"\0\0\x0d\x01\0\0\0\1\0\0\0\0"],
    ids=["empty", "one byte", "three bytes", "text", "floats"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="is not an IDX file of unsigned bytes"):
        read_idx(tmp_path / "a")


def test_missing_and_superfluous_bytes_are_named(tmp_path: Path):
    for content in (encode(PIXELS)[:-1], encode(PIXELS)[:16], encode(PIXELS) + b"\0"):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(ValueError, match=r"a promises shape \(2, 3, 4\) and holds \d+ bytes"):
            read_idx(tmp_path / "a")


@pytest.mark.parametrize("length", range(4, 16))
def test_a_truncated_header_is_named(tmp_path: Path, length: int):
    (tmp_path / "cut").write_bytes(encode(PIXELS)[:length])
    with pytest.raises(ValueError, match="cut"):
        read_idx(tmp_path / "cut")


def test_truncated_gzip_is_named(tmp_path: Path):
    packed = gzip.compress(encode(PIXELS))
    for length in range(2, len(packed)):
        (tmp_path / "cut.gz").write_bytes(packed[:length])
        with pytest.raises(ValueError, match=r"cut\.gz"):
            read_idx(tmp_path / "cut.gz")


def test_altered_gzip_is_named(tmp_path: Path):
    packed = gzip.compress(encode(PIXELS), mtime=0)
    body = range(10, len(packed))  # after the header with its date
    for i in body:
        (tmp_path / "bad.gz").write_bytes(packed[:i] + bytes([packed[i] ^ 0xFF]) + packed[i + 1 :])
        with pytest.raises(ValueError, match=r"bad\.gz"):
            read_idx(tmp_path / "bad.gz")
    assert zlib.crc32(encode(PIXELS)).to_bytes(4, "little") == packed[-8:-4]


# --- MNIST -----------------------------------------------------------------------------------


def test_other_digits_are_refused_by_their_checksum(tmp_path: Path):
    (tmp_path / "train-images-idx3-ubyte").write_bytes(encode(PIXELS))
    with pytest.raises(ValueError, match="not the train split of MNIST: its checksum differs"):
        load_mnist(tmp_path)


def test_missing_digits_are_named(tmp_path: Path):
    with pytest.raises(ValueError, match="no MNIST in .*t10k-images-idx3-ubyte, plain or .gz"):
        load_mnist(tmp_path, "test")
    with pytest.raises(ValueError, match="split must be train or test, got 'valid'"):
        load_mnist(tmp_path, "valid")


def test_real_digits_are_intensities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a known checksum the pixels come out as rows in [0, 1]."""
    import hashlib

    from annealz.training import mnist

    checksum = hashlib.sha256(encode(PIXELS * 11)).hexdigest()
    monkeypatch.setitem(mnist._SHA256, "t10k", checksum)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(encode(PIXELS * 11)))
    images = load_mnist(tmp_path, "test")
    assert images.dtype == np.float32
    np.testing.assert_allclose(images, (PIXELS * 11).reshape(2, 12) / 255)
