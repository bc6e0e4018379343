"""Data by name: `mnist` (its training split), `mnist-test`, or a file; what it was, to be read again.

The digest is that of the values as training sees them, float32 in [0, 1] with their shape.
"""

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from annealz.core.errors import InputError
from annealz.core.random import derive_seed
from annealz.io.reading.fields import Field, Record, line, one_of, optional, text
from annealz.training.data.array import read_data
from annealz.training.data.binarise import binarise
from annealz.training.data.mnist import load_mnist

__all__ = ["DataSource", "check_rows", "digest_rows"]

SOURCE = Record(
    "the record of data",
    (
        Field("name", line),
        Field("kind", one_of("mnist", "file")),
        Field("path", optional(text)),
        Field("digest", text, False),
    ),
)

_SPLITS = {"mnist": "train", "mnist-train": "train", "mnist-test": "test"}


@dataclasses.dataclass(frozen=True)
class DataSource:
    """Where rows of data come from.

    `path` is the file, or the folder of the MNIST files; None for MNIST from the user's cache.
    """

    name: str
    kind: Literal["mnist", "file"]
    path: Path | None

    @classmethod
    def of(cls, data: str | Path, mnist: str | Path | None = None) -> Self:
        """The source of a command's DATA argument and its --mnist folder."""
        if str(data) in _SPLITS:
            folder = mnist or os.environ.get("ANNEALZ_MNIST")
            return cls(str(data), "mnist", None if folder is None else Path(folder).absolute())
        if mnist is not None:
            raise InputError(
                "mnist",
                f"is for the data set mnist, and the data are {data}",
                remedy="leave one out",
            )
        path = Path(data).absolute()
        return cls(path.name, "file", path)

    def read(self) -> np.ndarray:
        """The rows (rows, units), float32 in [0, 1]."""
        if self.kind == "mnist":
            return load_mnist(self.path, _SPLITS[self.name])
        assert self.path is not None
        return check_rows(read_data(self.path), str(self.path))

    def examples(self) -> np.ndarray:
        """The rows as zeros and ones: intensities are drawn once, always by the same coins."""
        return binarise(self.read(), derive_seed(0, "likelihood"))

    def to_dict(self) -> dict[str, Any]:
        """A record for `from_dict`."""
        path = None if self.path is None else str(self.path)
        return {"name": self.name, "kind": self.kind, "path": path}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The source of such a record."""
        record = SOURCE.check(record)
        path = record["path"]
        return cls(record["name"], record["kind"], None if path is None else Path(path))


def check_rows(data: np.ndarray, name: str = "data") -> np.ndarray:
    """The data as float32 (rows, units), further axes flattened; a ValueError says what is wrong."""
    array = np.asarray(data)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must hold rows of units, at least one of each, got shape {array.shape}."
        )
    with np.errstate(over="ignore"):
        array = array.reshape(len(array), -1).astype(np.float32, copy=False)
    low, high = float(array.min()), float(array.max())
    if not np.isfinite([low, high]).all():
        wrong = int((~np.isfinite(array)).sum())
        raise ValueError(
            f"{name} must be finite, got {wrong} NaN or infinite of {array.size} values."
        )
    if low < 0 or high > 1:
        raise ValueError(
            f"{name}: data must lie in [0, 1], got values from {low:g} to {high:g}: rescale them."
        )
    return array


def digest_rows(data: np.ndarray) -> str:
    """Hexadecimal SHA-256 of shape and values."""
    hasher = hashlib.sha256(f"rows {data.shape[0]} {data.shape[1]}".encode())
    hasher.update(np.ascontiguousarray(data, dtype="<f4").data)
    return hasher.hexdigest()
