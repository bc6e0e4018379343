"""Checksummed npz archives: named arrays and a JSON record, nothing pickled.

An archive is an ordinary `np.savez` file with two more members, both uint8: `meta`, the JSON
record, and `checksum`, the SHA-256 of every other member (name, dtype, shape, bytes).
"""

import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from annealz.files import write_atomic

__all__ = ["load_archive", "pack_archive", "save_archive", "unpack_archive"]


def save_archive(path: str | Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """Write the archive atomically."""
    write_atomic(path, pack_archive(arrays, meta))


def pack_archive(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> bytes:
    """The archive as bytes."""
    members = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    pickled = [name for name, array in members.items() if array.dtype.hasobject]
    if pickled:
        raise ValueError(f"{pickled[0]} holds Python objects, which are never written to a file.")
    members["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    members["checksum"] = np.frombuffer(_checksum(members), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **members)  # before NumPy 2.1 allow_pickle=False would be one more array
    return buffer.getvalue()


def load_archive(
    path: str | Path, *, need_checksum: bool = True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of an archive.

    A ValueError names the file and says whether it is missing, empty, truncated, altered, pickled
    or no archive at all. Without `need_checksum` a plain `np.savez` file is accepted.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}.") from error
    return unpack_archive(raw, path, need_checksum=need_checksum)


def unpack_archive(
    raw: bytes, path: str | Path, *, need_checksum: bool = True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of an archive in memory; errors name it `path`."""
    if not raw:
        raise ValueError(f"{path} is empty.")
    if raw[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):  # what np.load takes for a zip
        kind = "a pickle, which is never loaded" if raw[:1] == b"\x80" else "no npz file"
        raise ValueError(f"{path} is {kind}: save the arrays with np.savez.")
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise ValueError(f"{path} is truncated or damaged: {error}.") from error
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise ValueError(
                f"{path} holds pickled objects, which are never loaded: save plain arrays with np.savez."
            ) from error
        raise ValueError(f"{path} is truncated or damaged: {error}.") from error
    checksum = members.pop("checksum", None)
    if checksum is None and b"checksum.npy" in raw:  # its directory no longer lists all members
        raise ValueError(f"{path} was altered or damaged: its checksum cannot be read.")
    if checksum is None and need_checksum:
        raise ValueError(f"{path} has no checksum: it was not written by annealz.")
    if checksum is not None and checksum.tobytes() != _checksum(members):
        raise ValueError(f"{path} was altered or damaged: its checksum does not match.")
    meta = members.pop("meta", None)
    try:
        return members, {} if meta is None else json.loads(meta.tobytes())
    except ValueError as error:  # of JSON or of Unicode
        raise ValueError(f"{path} holds an array called meta that is no JSON record.") from error


def _checksum(members: dict[str, np.ndarray]) -> bytes:
    hasher = hashlib.sha256()
    for name in sorted(members):
        array = members[name]
        hasher.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        hasher.update(np.ascontiguousarray(array).tobytes())
    return hasher.digest()
