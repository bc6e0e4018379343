"""safetensors files: named tensors under any of the names of `layouts.py`."""

import os
from pathlib import Path

import numpy as np

from annealz.formats.optional import need
from annealz.reading.budget import Budget
from annealz.reading.regular import open_regular
from annealz.reading.words import told

__all__ = ["is_safetensors", "read_safetensors"]

_LONGEST_HEADER = 8 * 2**20  # some 50,000 tensors


def is_safetensors(head: bytes) -> bool:
    """Whether a file that begins so may be one: the length of a JSON header, and its opening brace."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 10**8


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file."""
    package = need("safetensors.numpy", "safetensors files are read", "formats")
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        Budget(path, size).take("tensors", (size,), 1)
        length = int.from_bytes(file.read(8), "little")
        if length > min(size, _LONGEST_HEADER):
            raise ValueError(
                f"{path} is truncated, damaged or no safetensors file: its header has {length} bytes."
            )
        file.seek(0)
        raw = file.read(size)
    try:
        return dict(package.load(raw))
    except Exception as error:  # the package has an exception of its own for every kind of damage
        raise ValueError(
            f"{path} is truncated, damaged or no safetensors file: {told(error)}."
        ) from error
