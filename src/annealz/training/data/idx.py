"""IDX files, the format of MNIST: big-endian header, then unsigned bytes; gzipped or plain.

00 00 08 <number of axes> | one 32-bit length an axis | the bytes
"""

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from annealz.io.reading import Budget, open_regular, shown, told

__all__ = ["read_idx"]


def read_idx(path: str | Path, *, item_size: int = 1) -> np.ndarray:
    """The uint8 array of an IDX file; a value counts as `item_size` bytes."""
    with open_regular(path) as file:
        budget = Budget(path)
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not is_packed:
            return _read(file, budget, item_size)
        try:
            with gzip.open(file) as unpacked:
                return _read(cast(BinaryIO, unpacked), budget, item_size)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {told(error)}.") from error


def _read(file: BinaryIO, budget: Budget, item_size: int) -> np.ndarray:
    path, head = budget.path, file.read(4)
    lengths = file.read(4 * head[3]) if len(head) == 4 else b""
    if head[:3] != b"\x00\x00\x08" or len(head) < 4 or len(lengths) < 4 * head[3]:
        raise ValueError(f"{path} is not an IDX file of unsigned bytes.")
    shape = tuple(int(n) for n in np.frombuffer(lengths, ">u4"))
    size = budget.take("its array", shape, item_size) // item_size
    raw = file.read(size + 1)
    if len(raw) != size:
        more = " or more" if len(raw) > size else ""
        raise ValueError(
            f"{path} promises shape {shown(shape)} and holds {len(raw)} bytes{more}: it is damaged."
        )
    try:
        return np.frombuffer(raw, np.uint8).reshape(shape)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {told(error)}.") from error
