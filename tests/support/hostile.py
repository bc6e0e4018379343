"""Files that are wrong on purpose, and the one sentence that refuses them."""

import io
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from annealz.testing import random_rbm

MODEL = random_rbm(3, 5, seed=4)
ARRAYS = {
    name: np.asarray(getattr(MODEL, name)) for name in ("weights", "hidden_bias", "visible_bias")
}
DEEP = "[" * 100_000


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npy_header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    raw = text.encode("latin1")
    width = 2 if version == (1, 0) else 4
    return b"\x93NUMPY" + bytes(version) + len(raw).to_bytes(width, "little") + raw


def write_zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as zipped:
        for name, raw in members.items():
            zipped.writestr(name, raw)
    return path


def with_meta(path: Path, meta: str) -> Path:
    """A plain file with a record of any text, which needs no checksum."""
    np.savez(path, **ARRAYS, meta=np.frombuffer(meta.encode(), np.uint8))
    return path


def write_hdf5(path: Path, change) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in ARRAYS.items():
            file[name] = array
        change(file)
    return path


def refused(read, *args) -> str:
    """What the reader says, which must be one line that can be printed."""
    with pytest.raises(ValueError, match=".") as caught:
        read(*args)
    text = str(caught.value)
    assert text.isprintable(), text
    assert len(text) < 2000
    text.encode()
    return text
