"""safetensors files: named tensors under any of the names of `layouts.py`."""

from pathlib import Path

import numpy as np

from annealz.formats.optional import need

__all__ = ["is_safetensors", "read_safetensors"]


def is_safetensors(head: bytes) -> bool:
    """Whether a file that begins so may be one: the length of a JSON header, and its opening brace."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 10**8


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file."""
    package = need("safetensors.numpy", "safetensors files are read", "formats")
    try:
        return dict(package.load(path.read_bytes()))
    except Exception as error:  # the package has an exception of its own for every kind of damage
        raise ValueError(
            f"{path} is truncated, damaged or no safetensors file: {error}."
        ) from error
