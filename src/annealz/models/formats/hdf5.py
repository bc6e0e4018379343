"""HDF5: trainings of rbms, RBMs of RestrictedBoltzmannMachines.jl, MATLAB 7.3 files, and plain datasets.

rbms keeps a training in one file, `model_type` and a group for every update that was saved:

    /model_type                     BBRBM (binary units), PBRBM (visible units of q states), IIRBM (spins),
                                    BGRBM and IGRBM (Gaussian hidden units)
    /update_100/params/             weight_matrix (visible, hidden) or (visible, states, hidden),
                                    vbias and hbias
    /update_200/params/             …

Its energies are those of `models/rbm.py`, `models/softmax_rbm.py` and `layouts.py`, states from 0. The
update with the highest number is the model; another one is named after the file, `training.h5/update_100`.
Files of RestrictedBoltzmannMachines.jl are described in `julia.py`.

What is read is a part of the file itself: links to other files, values that lie in other files, and soft
links, which may go round in circles, are refused. Sizes are checked before a value is read.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from annealz.io.reading import (
    Budget,
    Refusal,
    check_regular,
    listed,
    need,
    open_regular,
    shown,
    told,
)
from annealz.models.abstract import AbstractModel
from annealz.models.formats.julia import HEADER, model_of_julia
from annealz.models.formats.layouts import RBMS_TYPES, read_layout

__all__ = ["is_hdf5", "load_hdf5", "read_hdf5", "read_updates"]

_MAGIC = b"\x89HDF\r\n\x1a\n"
_OF_TRAJECTORIES = ("BBRBM", "PBRBM")
_PREFIX = "update_"
_MOST_NAMES, _MOST_DIGITS, _LONGEST_TYPE = 100_000, 18, 100
_PIECE_RECORD = (
    1024  # bytes that the HDF5 library takes for a piece, whatever it holds: 820 measured
)


def is_hdf5(head: bytes) -> bool:
    """Whether a file that begins so is one; MATLAB writes 512 bytes of text before it."""
    return _MAGIC in (head[:8], head[512:520])


def load_hdf5(
    path: Path, update: str | None = None, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """The model of a file or of one update in it, and its record."""
    arrays, update, kind = read_hdf5(path, update, names)
    if kind == HEADER:
        return model_of_julia(arrays, path), {}
    model, record = read_layout(arrays, path, names, kind)
    return model, {**record, "name": f"{path.stem}/{update}"} if update else record


def read_hdf5(
    path: Path, update: str | None = None, names: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], str, str | None]:
    """The arrays of one update, or of the file itself where it is not a training; the update; the type.

    Of groups in the file what `names` names is read too, group/array.
    """
    with _opened(path) as file:
        updates = file.updates()
        if not updates:
            if update is not None:
                raise Refusal(f"{path} holds no updates of a training, and {update} was asked for.")
            if HEADER in file.root and not names:
                return file.arrays(file.root) | file.strings(file.root), "", HEADER
            found = file.arrays(file.root, is_matlab=_is_matlab(path))
            return found | file.within(names or {}), "", None
        kind = file.check_type(tuple(RBMS_TYPES))
        name = updates[-1] if update is None else update
        if name not in updates:
            raise Refusal(
                f"{path} holds no {name}: choose one of {len(updates)} from {updates[0]} to {updates[-1]}."
            )
        return file.parameters(name), name, kind


def read_updates(path: Path) -> list[tuple[int, dict[str, np.ndarray]]]:
    """(number, arrays) of every update of a training, in order."""
    with _opened(path) as file:
        updates = file.updates()
        if not updates:
            raise Refusal(
                f"{path} holds {listed(file.root)}: a training of rbms holds update_1, update_2, …"
            )
        file.check_type(_OF_TRAJECTORIES)
        return [(_number(name), file.parameters(name)) for name in updates]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator["_File"]:
    h5py = need("h5py", "HDF5 files are read", "formats")
    check_regular(path)
    try:
        with h5py.File(path, "r") as root:
            yield _File(path, root, h5py)
    except Refusal:
        raise
    except Exception as error:  # h5py raises whatever a damaged file leads to
        raise ValueError(
            f"{path} is truncated, damaged or not an HDF5 file: {told(error)}."
        ) from error


class _File:
    """An open file and what is left of the memory that its arrays may take."""

    def __init__(self, path: Path, root: Any, h5py: Any):
        self.path, self.root, self.h5py = path, root, h5py
        self.budget = Budget(path)

    def updates(self) -> list[str]:
        """The names of the updates of a training, in order."""
        if len(self.root) > _MOST_NAMES:
            raise Refusal(f"{self.path} holds {len(self.root)} names: {_MOST_NAMES} are read.")
        names = [name for name in self.root if isinstance(name, str) and _number(name) >= 0]
        return sorted(names, key=_number)

    def check_type(self, known: tuple[str, ...]) -> str | None:
        """The type of a training's models, if it is one of these; None where the file does not say."""
        if "model_type" not in self.root:
            return None
        kind = self._string(self.root, "model_type")
        if kind not in known:
            raise Refusal(
                f"{self.path} holds a model of type {shown(kind)}: of the models of rbms "
                f"{', '.join(known[:-1])} and {known[-1]} are read here."
            )
        return kind

    def strings(self, group: Any) -> dict[str, str]:
        """The short texts directly in a group."""
        found = {}
        for name in group:
            if isinstance(name, str) and self._is_string(self._item(group, name)):
                found[name] = self._string(group, name)
        return found

    def within(self, names: Mapping[str, str]) -> dict[str, np.ndarray]:
        """The arrays of these names that lie in groups, group/array."""
        found = {}
        for name in names.values():
            *groups, last = name.removesuffix(".T").split("/")
            group = self.root
            for word in groups:
                group = self._group(group, word) if word in group else {}
            if groups and last in group:
                arrays = self.arrays(group)
                found |= {"/".join((*groups, last)): arrays[last]} if last in arrays else {}
        return found

    def _is_string(self, item: Any) -> bool:
        if not isinstance(item, self.h5py.Dataset) or item.is_virtual or item.external:
            return False
        is_short = item.dtype.itemsize <= _LONGEST_TYPE and item.shape in ((), (1,))
        return is_short and item.dtype.kind in "OSU"

    def _string(self, group: Any, name: str) -> str:
        """A short text; a question mark where it is something else."""
        item = self._item(group, name)
        kind: Any = b"?"
        if self._is_string(item):
            kind = item[()] if item.shape == () else item[0]
        return kind.decode(errors="replace") if isinstance(kind, bytes) else str(kind)

    def parameters(self, update: str) -> dict[str, np.ndarray]:
        """Newer files keep the parameters in a group of their own, older ones beside the rest."""
        group = self._group(self.root, update)
        return self.arrays(self._group(group, "params") if "params" in group else group)

    def arrays(self, group: Any, is_matlab: bool = False) -> dict[str, np.ndarray]:
        """The numeric arrays directly in a group."""
        if len(group) > _MOST_NAMES:
            raise Refusal(f"{self.path} holds {len(group)} names: {_MOST_NAMES} are read.")
        found = {}
        for name in group:
            if not isinstance(name, str):  # bytes that are not UTF-8
                continue
            item = self._item(group, name)
            if not isinstance(item, self.h5py.Dataset):
                continue
            self._check_place(item, name)
            if item.shape and item.dtype.kind in "fiub":
                self._take(item, name)
                array = item[()]
                found[name] = array.T if is_matlab else array
        return found

    def _take(self, item: Any, name: str) -> None:
        """Count what reading a dataset takes: its values, a piece of it, and a record of every piece."""
        size = self.budget.take(name, item.shape, item.dtype.itemsize)
        chunks = item.chunks or item.shape
        if math.prod(chunks) * item.dtype.itemsize > size:  # a piece is unpacked as a whole
            self.budget.take(f"a piece of {name}", chunks, item.dtype.itemsize)
        pieces = [
            -(-length // max(chunk, 1)) for length, chunk in zip(item.shape, chunks, strict=True)
        ]
        self.budget.take(f"the pieces of {name}", pieces, _PIECE_RECORD)

    def _group(self, group: Any, name: str) -> Any:
        found = self._item(group, name)
        if not isinstance(found, self.h5py.Group):
            raise Refusal(f"{self.path} is damaged: {shown(name)} must be a group.")
        return found

    def _item(self, group: Any, name: str) -> Any:
        """What has this name in a group, if it lies there itself."""
        if not isinstance(group.get(name, getlink=True), self.h5py.HardLink):
            raise Refusal(
                f"{self.path} holds {shown(name)} as a link to another place, which is not followed: copy "
                "what it names into the file."
            )
        return group[name]

    def _check_place(self, item: Any, name: str) -> None:
        """Refuse a dataset whose values lie in other files; nothing else may be asked of it before."""
        if item.is_virtual or item.external:
            raise Refusal(
                f"{self.path} holds {shown(name)} with values in other files, which are not opened: copy "
                "them into the file."
            )


def _number(name: str) -> int:
    digits = name.removeprefix(_PREFIX)
    is_number = name.startswith(_PREFIX) and digits.isascii() and digits.isdecimal()
    return int(digits) if is_number and len(digits) <= _MOST_DIGITS else -1


def _is_matlab(path: Path) -> bool:
    with open_regular(path) as raw:
        return raw.read(10) == b"MATLAB 7.3"
