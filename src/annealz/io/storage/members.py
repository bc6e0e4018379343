"""The members of an npz file: a zip of npy files, stored or deflated.

What the zip's directory and the arrays' headers declare is checked before a member is unpacked, and no more
is unpacked than was declared.
"""

import zipfile
from typing import BinaryIO, cast

import numpy as np

from annealz.io.reading.budget import Budget
from annealz.io.reading.npy import read_npy
from annealz.io.reading.refusal import Refusal
from annealz.io.reading.words import shown, told

__all__ = ["read_members"]

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack a piece without a bound
_LONGEST_READ = 4 * 2**20  # the directory of 50,000 members


def read_members(file: BinaryIO, budget: Budget, item_size: int = 1) -> dict[str, np.ndarray]:
    """The arrays by name; a value counts as `item_size` bytes at least."""
    try:
        with zipfile.ZipFile(cast(BinaryIO, _Pieces(file))) as zipped:
            members = zipped.infolist()
            _check(members, budget)
            return {
                member.filename.removesuffix(".npy"): _read(zipped, member, budget, item_size)
                for member in members
            }
    except Refusal:
        raise
    except Exception as error:  # zipfile raises whatever a damaged directory leads to
        raise ValueError(f"{budget.path} is truncated or damaged: {told(error)}.") from error


def _check(members: list[zipfile.ZipInfo], budget: Budget) -> None:
    """Refuse a directory that cannot be that of an npz file."""
    seen = set()
    for member in members:
        name = shown(member.filename)
        if not member.filename.endswith(".npy") or member.compress_type not in _METHODS:
            raise Refusal(
                f"{budget.path} holds {name}, which is not an array as np.savez writes it: it is damaged "
                "or not an npz file."
            )
        if member.filename in seen:
            raise Refusal(f"{budget.path} is damaged: it holds {name} twice.")
        seen.add(member.filename)
        budget.unpack(member.file_size)


def _read(
    zipped: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget, item_size: int
) -> np.ndarray:
    name = member.filename.removesuffix(".npy")
    size = 1 if name in ("meta", "checksum") else item_size
    with zipped.open(member) as file:
        return read_npy(cast(BinaryIO, file), member.file_size, name, budget, size)


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
