"""Checksummed npz archives: named arrays and a JSON record, nothing pickled.

An archive is an ordinary `np.savez` file with two more members, both uint8: `meta`, the JSON
record, and `checksum`, the SHA-256 of every other member (name, dtype, shape, bytes).
"""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from annealz.io.reading.budget import Budget
from annealz.io.reading.json_text import parse_json
from annealz.io.reading.regular import open_regular
from annealz.io.reading.words import told
from annealz.io.storage.files import write_atomic
from annealz.io.storage.members import read_members

__all__ = ["load_archive", "pack_archive", "save_archive", "unpack_archive"]


def save_archive(path: str | Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """Write the archive atomically."""
    write_atomic(path, pack_archive(arrays, meta))


def pack_archive(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> bytes:
    """The archive as bytes."""
    members = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    pickled = [name for name, array in members.items() if array.dtype.hasobject]
    if pickled:
        raise ValueError(f"object arrays are never written to a file, got {pickled[0]}.")
    members["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    members["checksum"] = np.frombuffer(_checksum(members), np.uint8)
    buffer = io.BytesIO()
    # without allow_pickle=False, which would be one more array before NumPy 2.1
    np.savez(buffer, **members)  # pyright: ignore[reportArgumentType]
    return buffer.getvalue()


def load_archive(
    path: str | Path, *, need_checksum: bool = True, item_size: int = 1
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of an archive.

    A ValueError names the file and says whether it is missing, empty, truncated, altered, pickled, too
    large or no archive at all. Without `need_checksum` a plain `np.savez` file is accepted. A value counts
    as `item_size` bytes at least.
    """
    path = Path(path)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return _unpack(file, size, Budget(path), need_checksum, item_size)


def unpack_archive(
    raw: bytes, path: str | Path, *, need_checksum: bool = True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of an archive in memory; errors name it `path`."""
    return _unpack(io.BytesIO(raw), len(raw), Budget(path), need_checksum)


def _unpack(
    file: BinaryIO, size: int, budget: Budget, need_checksum: bool, item_size: int = 1
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    path, head = budget.path, file.read(4)
    if not size:
        raise ValueError(f"{path} is empty.")
    if head not in (b"PK\x03\x04", b"PK\x05\x06"):  # what np.load takes for a zip
        kind = "a pickle, which is never loaded" if head[:1] == b"\x80" else "not an npz file"
        raise ValueError(f"{path} is {kind}: save the arrays with np.savez.")
    members = read_members(file, budget, item_size)
    checksum = members.pop("checksum", None)
    if checksum is None and _holds(
        file, b"checksum.npy"
    ):  # its directory does not list all members
        raise ValueError(f"{path} was altered or damaged: its checksum cannot be read.")
    if checksum is None and need_checksum:
        raise ValueError(f"{path} has no checksum: it was not written by annealz.")
    if checksum is not None and checksum.tobytes() != _checksum(members):
        raise ValueError(f"{path} was altered or damaged: its checksum does not match.")
    return members, _record(members.pop("meta", None), path)


def _record(meta: np.ndarray | None, path: str | Path) -> dict[str, Any]:
    if meta is None:
        return {}
    try:
        record = parse_json(meta.tobytes())
    except ValueError as error:  # of JSON or of Unicode
        raise ValueError(
            f"{path} holds an array called meta that is not a JSON record: {told(error)}."
        ) from error
    if not isinstance(record, dict):
        raise ValueError(
            f"{path} holds an array called meta that is not a JSON record: it must be a table of names."
        )
    return record


def _holds(file: BinaryIO, word: bytes) -> bool:
    """Whether the word is anywhere in the file."""
    file.seek(0)
    end = b""
    while piece := file.read(2**20):
        if word in end + piece:
            return True
        end = piece[-len(word) :]
    return False


def _checksum(members: dict[str, np.ndarray]) -> bytes:
    hasher = hashlib.sha256()
    for name in sorted(members):
        array = members[name]
        hasher.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        hasher.update(np.ascontiguousarray(array).tobytes())
    return hasher.digest()
