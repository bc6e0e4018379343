"""MNIST from a mirror: fetched once, the next mirror tried, damage recognised. No network is used."""

import gzip
import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from annealz.training import mnist
from annealz.training.mnist import load_mnist
from support.idx import PIXELS, encode

NAME = "train-images-idx3-ubyte.gz"
PACKED = gzip.compress(encode(PIXELS), mtime=0)
NOWHERE = "http://127.0.0.1:9/"  # the discard port: nobody answers


class Mirror:
    """A server of this test's own, and the paths it was asked for."""

    def __init__(self, folder: Path):
        self.folder, self.asked = folder, []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, format, *args):
                asked.append(self.path)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch):
    """Two images stand for the training split; the cache is this test's own."""
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / NAME).write_bytes(PACKED)
    found = Mirror(tmp_path / "mirror")
    monkeypatch.delenv("ANNEALZ_MNIST", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(mnist, "_CACHE", tmp_path / "cache")
    monkeypatch.setattr(mnist, "_MIRRORS", (found.url,))
    monkeypatch.setitem(mnist._SHA256, "train", hashlib.sha256(encode(PIXELS)).hexdigest())
    monkeypatch.setitem(mnist._PACKED_SHA256, "train", hashlib.sha256(PACKED).hexdigest())
    yield found
    found.server.shutdown()
    found.server.server_close()


def assert_is_the_split(images: np.ndarray) -> None:
    np.testing.assert_allclose(images, PIXELS.reshape(2, 12) / 255)


def test_it_is_fetched_once(mirror: Mirror, capsys):
    assert_is_the_split(load_mnist())
    assert_is_the_split(load_mnist())
    assert mirror.asked == [f"/{NAME}"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", [b"", PACKED[:-9], PACKED[:-1] + b"x"], ids=len)
def test_a_damaged_cached_file_is_fetched_again(mirror: Mirror, damage: bytes):
    load_mnist()
    (mnist._CACHE / NAME).write_bytes(damage)
    assert_is_the_split(load_mnist())
    assert len(mirror.asked) == 2
    assert (mnist._CACHE / NAME).read_bytes() == PACKED


def test_the_next_mirror_is_tried(mirror: Mirror, tmp_path: Path, monkeypatch):
    """One that cannot be reached, one that lacks the file, one that sends another."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / NAME).write_bytes(gzip.compress(b"other"))
    other = Mirror(tmp_path / "other")
    monkeypatch.setattr(mnist, "_MIRRORS", (NOWHERE, f"{other.url}missing/", other.url, mirror.url))
    assert_is_the_split(load_mnist())
    assert [path.name for path in mnist._CACHE.iterdir()] == [NAME]  # no half-written ones
    monkeypatch.setattr(mnist, "_MIRRORS", (f"{other.url}missing/", other.url))
    (mnist._CACHE / NAME).unlink()
    with pytest.raises(ValueError, match="status 404.*sent another file: its checksum differs"):
        load_mnist()
    other.server.shutdown()
    other.server.server_close()


def test_without_a_network_one_sentence_says_so(mirror: Mirror, monkeypatch):
    monkeypatch.setattr(mnist, "_MIRRORS", (NOWHERE, NOWHERE))
    with pytest.raises(ValueError, match="could not be fetched .*could not be reached") as caught:
        load_mnist()
    assert "a folder with its files by mnist" in str(caught.value)
    assert "ANNEALZ_MNIST" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_network_the_cache_is_enough(mirror: Mirror, monkeypatch):
    load_mnist()
    monkeypatch.setattr(mnist, "_MIRRORS", (NOWHERE,))
    assert_is_the_split(load_mnist())


def test_a_cache_that_cannot_be_written_is_named(mirror: Mirror, tmp_path: Path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(mnist, "_CACHE", tmp_path / "file" / "mnist")
    with pytest.raises(ValueError, match="could not be stored in .*mnist"):
        load_mnist()


def test_a_folder_is_taken_before_the_mirrors(mirror: Mirror, tmp_path: Path, monkeypatch):
    assert_is_the_split(load_mnist(mirror.folder))
    monkeypatch.setenv("ANNEALZ_MNIST", str(mirror.folder))
    assert_is_the_split(load_mnist())
    assert mirror.asked == []
    assert not mnist._CACHE.exists()
