"""safetensors files: named tensors under any of the names of `layouts.py`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annealz.io.reading import Budget, need, open_regular, told
from annealz.models.abstract import AbstractModel
from annealz.models.formats.layouts import read_layout

_LONGEST_HEADER = 8 * 2**20  # some 50,000 tensors


def is_safetensors(head: bytes) -> bool:
    """Check whether a file that begins so may be one: the length of a JSON header, and its brace."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 10**8


def load_safetensors(
    path: Path, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """Return the model of a file, and its record."""
    package = need("safetensors.numpy", "safetensors files are read", "formats")
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        Budget(path).take("tensors", (size,), 1)
        raw = file.read(size)
    length = int.from_bytes(raw[:8], "little")
    try:
        if length > min(size, _LONGEST_HEADER):
            raise ValueError(f"its header has {length} bytes")
        arrays = package.load(raw)
    except Exception as error:  # the package has an exception of its own for every kind of damage
        raise ValueError(
            f"{path} is truncated, damaged or not a safetensors file: {told(error)}."
        ) from error
    return read_layout(arrays, path, names)
