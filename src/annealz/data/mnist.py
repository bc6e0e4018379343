"""MNIST: 60,000 training and 10,000 test digits of 28 x 28 pixels, as intensities in [0, 1]."""

import hashlib
from pathlib import Path

import numpy as np

from annealz.data.idx import read_idx

__all__ = ["load_mnist"]

_SHA256 = {  # of the unpacked pixels with their IDX header
    "train": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "t10k": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
}


def load_mnist(folder: str | Path, split: str = "train") -> np.ndarray:
    """The images of one split ("train" or "test") as float32 (images, 784) in [0, 1]."""
    stem = {"train": "train", "test": "t10k"}.get(split)
    if stem is None:
        raise ValueError(f"split must be train or test, got {split!r}.")
    candidates = [Path(folder) / f"{stem}-images-idx3-ubyte{end}" for end in ("", ".gz")]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise ValueError(f"no MNIST in {folder}: looked for {candidates[0].name}, plain or .gz.")
    pixels = read_idx(found)
    header = b"\x00\x00\x08\x03" + np.asarray(pixels.shape, ">u4").tobytes()
    if hashlib.sha256(header + pixels.tobytes()).hexdigest() != _SHA256[stem]:
        raise ValueError(f"{found} is not the {split} split of MNIST: its checksum differs.")
    return pixels.reshape(len(pixels), -1).astype(np.float32) / 255
