"""IDX files, the format of MNIST: big-endian header, then unsigned bytes; gzipped or plain.

00 00 08 <number of axes> | one 32-bit length an axis | the bytes
"""

import gzip
import zlib
from pathlib import Path

import numpy as np

__all__ = ["read_idx"]


def read_idx(path: str | Path) -> np.ndarray:
    """The uint8 array of an IDX file."""
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {error}.") from error
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08" or len(raw) < 4 + 4 * raw[3]:
        raise ValueError(f"{path} is no IDX file of unsigned bytes.")
    start = 4 + 4 * raw[3]
    shape = tuple(int(n) for n in np.frombuffer(raw[4:start], ">u4"))
    if len(shape) != raw[3] or len(raw) - start != int(np.prod(shape)):
        raise ValueError(
            f"{path} promises shape {shape} and holds {len(raw) - start} bytes: it is truncated."
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)
