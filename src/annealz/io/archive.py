"""Named arrays in files: npy, npz, and checksummed npz archives with a JSON record, nothing pickled.

An archive is an ordinary `np.savez` file with two more members, both uint8: `checksum`, the SHA-256 of
every other member (name, dtype, shape, bytes), and `meta`, the JSON record.

What the directory of an npz file declares is compared with the free memory before anything is unpacked, and
no more than that is unpacked, whatever the headers of its arrays say.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from annealz.io.files import write_atomic
from annealz.io.reading import Budget, Refusal, open_regular, parse_json, shown, told

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack a piece without a bound
_LONGEST_READ = 4 * 2**20  # the directory of 50,000 members


def save_archive(path: str | Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """Write an archive atomically."""
    write_atomic(path, pack_archive(arrays, meta))


def pack_archive(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> bytes:
    """Return an archive as bytes."""
    members = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    pickled = [name for name, array in members.items() if array.dtype.hasobject]
    if pickled:
        raise ValueError(f"object arrays are never written to a file, got {pickled[0]}.")
    members["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    members = {"checksum": np.frombuffer(_checksum(members), np.uint8), **members}
    buffer = io.BytesIO()
    # without allow_pickle=False, which would be one more array before NumPy 2.1
    np.savez(buffer, **members)  # pyright: ignore[reportArgumentType]
    return buffer.getvalue()


def load_archive(
    path: str | Path, *, need_checksum: bool = True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the record of an archive.

    A ValueError names the file and says whether it is missing, empty, truncated, altered, pickled, too
    large or no archive at all. Without `need_checksum` a plain `np.savez` file is accepted.
    """
    path = Path(path)
    with open_regular(path) as file:
        head = file.read(64)
        if not head:
            raise ValueError(f"{path} is empty.")
        if head[:4] not in _ZIP:
            kind = "a pickle, which is never loaded" if head[:1] == b"\x80" else "not an npz file"
            raise ValueError(f"{path} is {kind}: save the arrays with np.savez.")
        members = _members(file, path)
    checksum = members.pop("checksum", None)
    if checksum is None and b"checksum.npy" in head:  # its directory does not list all members
        raise ValueError(f"{path} was altered or damaged: its checksum cannot be read.")
    if checksum is None and need_checksum:
        raise ValueError(f"{path} has no checksum: it was not written by annealz.")
    if checksum is not None and checksum.tobytes() != _checksum(members):
        raise ValueError(f"{path} was altered or damaged: its checksum does not match.")
    return members, _record(members.pop("meta", None), path)


def load_npy(path: str | Path, name: str = "its array") -> np.ndarray:
    """Return the array of an npy file."""
    with open_regular(path) as file:
        Budget(path).take(name, (os.fstat(file.fileno()).st_size,), 1)
        return _read_npy(file, name, path)


def real_numbers(
    arrays: Mapping[str, np.ndarray],
    name: str,
    what: str,
    *,
    num_axes: int | None = None,
    length: int | None = None,
) -> np.ndarray:
    """Return the array of this name: real numbers, with so many axes, the first one so long.

    `what` it is a part of, for messages.
    """
    if name not in arrays:
        raise ValueError(f"{what} is damaged: it lacks the array {shown(name)}.")
    array = arrays[name]
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{what} is damaged: {shown(name)} must hold real numbers, got dtype {shown(array.dtype)}."
        )
    is_wrong = num_axes is not None and array.ndim != num_axes
    if is_wrong or (length is not None and array.shape[:1] != (length,)):
        raise ValueError(
            f"{what} is damaged: {shown(name)} has shape {shown(array.shape)}, which does not fit."
        )
    if array.dtype.itemsize <= 8 and array.dtype.isnative:
        return array
    with np.errstate(over="ignore"):  # JAX takes no others
        return array.astype(array.dtype.newbyteorder("=") if array.itemsize <= 8 else np.float64)


def _members(file: BinaryIO, path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file by name."""
    budget, members = Budget(path), {}
    try:
        with zipfile.ZipFile(cast(BinaryIO, _Pieces(file))) as zipped:
            for member in zipped.infolist():
                name = member.filename.removesuffix(".npy")
                if name == member.filename or member.compress_type not in _METHODS:
                    raise Refusal(
                        f"{path} holds {shown(name)}, which is not an array as np.savez writes it: it is "
                        "damaged or not an npz file."
                    )
                if name in members:
                    raise Refusal(f"{path} is damaged: it holds {shown(name)} twice.")
                budget.take(name, (member.file_size,), 1)
                members[name] = member
            for name, member in members.items():
                with zipped.open(member) as opened:
                    members[name] = _read_npy(opened, name, path)
    except Refusal:
        raise
    except Exception as error:  # zipfile raises whatever a damaged directory leads to
        raise ValueError(f"{path} is truncated or damaged: {told(error)}.") from error
    return members


def _read_npy(file: IO[bytes], name: str, path: str | Path) -> np.ndarray:
    """Return the array of an open file, which must hold it and nothing else."""
    where = f"{path} is truncated or damaged: {shown(name)}"
    try:
        array = npy.read_array(file, allow_pickle=False)
    except Exception as error:  # of NumPy, zipfile, zlib, or Python's parser
        if "Object arrays" in str(error):
            raise Refusal(
                f"{path} holds pickled objects, which are never loaded: save plain arrays with np.savez."
            ) from error
        reason = told(error).partition(" To allow loading")[
            0
        ]  # NumPy's advice is to trust the file
        raise Refusal(f"{where} cannot be read: {reason.rstrip('.')}.") from error
    if file.read(1):
        raise Refusal(f"{where} is followed by other bytes.")
    Budget(path).take(name, array.shape, array.itemsize)  # items of no size may be any number
    return array


class _Pieces:
    """The file to zipfile, which reads a directory at once however long it claims to be."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, count: int = -1) -> bytes:
        if count > _LONGEST_READ:
            raise ValueError("its directory is too long")
        return self.file.read(count)

    def seekable(self) -> bool:
        return True


def _record(meta: np.ndarray | None, path: str | Path) -> dict[str, Any]:
    if meta is None:
        return {}
    start = f"{path} holds an array called meta that is not a JSON record"
    try:
        record = parse_json(meta.tobytes())
    except ValueError as error:  # of JSON or of Unicode
        raise ValueError(f"{start}: {told(error)}.") from error
    if not isinstance(record, dict):
        raise ValueError(f"{start}: it must be a table of names.")
    return record


def _checksum(members: Mapping[str, np.ndarray]) -> bytes:
    hasher = hashlib.sha256()
    for name in sorted(members):
        array = members[name]
        hasher.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        hasher.update(np.ascontiguousarray(array).tobytes())
    return hasher.digest()
