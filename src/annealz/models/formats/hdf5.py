"""HDF5: trainings of rbms, RBMs of RestrictedBoltzmannMachines.jl, MATLAB 7.3 files, and plain datasets.

rbms keeps a training in one file, `model_type` and a group for every update that was saved:

    /model_type                     BBRBM (binary units), PBRBM (visible units of q states), IIRBM (spins),
                                    BGRBM and IGRBM (Gaussian hidden units)
    /update_100/params/             weight_matrix (visible, hidden) or (visible, states, hidden),
                                    vbias and hbias; older files keep them in the group itself
    /update_200/params/             …

Its energies are those of `models/rbm.py`, `models/layered.py` and `layouts.py`, states from 0. The
update with the highest number is the model; another one is named after the file, `training.h5/update_100`.
Files of RestrictedBoltzmannMachines.jl are described in `julia.py`.

What is read is a part of the file itself: links to other files, values that lie in other files, and soft
links, which may go round in circles, are refused. Sizes are checked before a value is read.
"""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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

_MAGIC = b"\x89HDF\r\n\x1a\n"
_UPDATE = re.compile(r"update_[0-9]{1,18}")
_MOST_NAMES, _LONGEST_TEXT = 100_000, 100
_PIECE_RECORD = 1024  # bytes that the library takes for a piece, whatever it holds: 820 measured


def is_hdf5(head: bytes) -> bool:
    """Check whether a file that begins so is one; MATLAB writes 512 bytes of text before it."""
    return _MAGIC in (head[:8], head[512:520])


def load_hdf5(
    path: Path, update: str | None = None, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """Return the model of a file, or of one update in it, and its record."""
    with _opened(path) as file:
        updates = file.updates()
        if not updates and update is not None:
            raise Refusal(f"{path} holds no updates of a training, and {update} was asked for.")
        if update is not None and update not in updates:
            raise Refusal(
                f"{path} holds no {update}: choose one of {len(updates)} from {updates[0]} to "
                f"{updates[-1]}."
            )
        if updates:
            update = update or updates[-1]
            kind, arrays = file.type_of_rbms(), file.parameters(update)
        else:
            kind, arrays = None, file.contents(file.root) | file.within(names or {})
    if HEADER in arrays and not names:
        return model_of_julia(arrays), {}
    model, record = read_layout(arrays, path, names, kind)
    return model, {**record, "name": f"{path.stem}/{update}"} if update else record


def updates_of(path: Path) -> list[str]:
    """Return the names of the updates of a training, in order."""
    with _opened(path) as file:
        updates = file.updates()
        if not updates:
            raise Refusal(
                f"{path} holds {listed(file.root)}: a training of rbms holds update_1, update_2, …"
            )
        return updates


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
        self.path, self.root, self.h5py, self.budget = path, root, h5py, Budget(path)
        with open_regular(path) as raw:
            self.is_matlab = raw.read(10) == b"MATLAB 7.3"

    def updates(self) -> list[str]:
        """Return the names of the updates of a training, in order."""
        names = [name for name in self._names(self.root) if _UPDATE.fullmatch(name)]
        return sorted(names, key=lambda name: int(name.removeprefix("update_")))

    def type_of_rbms(self) -> str | None:
        """Return the type of a training's models, if it is one that is read; None if none is named."""
        if "model_type" not in self.root:
            return None
        kind = self._text(self._item(self.root, "model_type"))
        if kind not in RBMS_TYPES:
            raise Refusal(
                f"{self.path} holds a model of type {shown(kind or '?')}: of the models of rbms "
                f"{', '.join(RBMS_TYPES)} are read."
            )
        return kind

    def parameters(self, update: str) -> dict[str, Any]:
        """Return the arrays of an update."""
        group = self._item(self.root, update, is_group=True)
        if "params" in group:
            group = self._item(group, "params", is_group=True)
        return self.contents(group)

    def within(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Return the arrays of these names that lie in groups, group/array."""
        wanted = [name.removesuffix(".T") for name in names.values() if "/" in name]
        found = {}
        for place in dict.fromkeys(name.rpartition("/")[0] for name in wanted):
            group = self.root
            for word in place.split("/"):
                group = self._item(group, word, is_group=True) if word in group else {}
            arrays = self.contents(group)
            found |= {f"{place}/{name}": array for name, array in arrays.items()}
        return {name: found[name] for name in wanted if name in found}

    def contents(self, group: Any) -> dict[str, Any]:
        """Return the numeric arrays and the short texts directly in a group."""
        found = {}
        for name in self._names(group):
            item = self._item(group, name)
            if not isinstance(item, self.h5py.Dataset):
                continue
            if item.shape and item.dtype.kind in "fiub":
                self._take(item, name)
                found[name] = item[()].T if self.is_matlab else item[()]
            elif (text := self._text(item)) is not None:
                found[name] = text
        return found

    def _names(self, group: Any) -> list[str]:
        if len(group) > _MOST_NAMES:
            raise Refusal(f"{self.path} holds {len(group)} names: {_MOST_NAMES} are read.")
        return [name for name in group if isinstance(name, str)]  # others are bytes, not UTF-8

    def _text(self, item: Any) -> str | None:
        """Return a short text; None if it is something else."""
        if not isinstance(item, self.h5py.Dataset) or item.shape not in ((), (1,)):
            return None
        if item.dtype.kind not in "OSU" or item.dtype.itemsize > _LONGEST_TEXT:
            return None
        value: Any = item[()] if item.shape == () else item[0]
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

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

    def _item(self, group: Any, name: str, is_group: bool = False) -> Any:
        """Return what has this name in a group, if it and its values lie there themselves."""
        where = None
        if not isinstance(group.get(name, getlink=True), self.h5py.HardLink):
            where = "as a link to another place, which is not followed"
        item: Any = group[name] if where is None else None
        if isinstance(item, self.h5py.Dataset) and (item.is_virtual or item.external):
            where = "with values in other files, which are not opened"
        if where is not None:
            raise Refusal(
                f"{self.path} holds {shown(name)} {where}: copy what it names into the file."
            )
        if is_group and not isinstance(item, self.h5py.Group):
            raise Refusal(f"{self.path} is damaged: {shown(name)} must be a group.")
        return item
