"""HDF5: trainings of the PyPI package rbms, MATLAB 7.3 files, and plain datasets at the root.

rbms keeps a training in one file, `model_type` and a group for every update that was saved:

    /model_type                     BBRBM (binary units) or PBRBM (visible units of q states)
    /update_100/params/             weight_matrix (visible, hidden) or (visible, states, hidden),
                                    vbias and hbias
    /update_200/params/             …

Its energies are those of `models/rbm.py` and `models/softmax_rbm.py`, over units of 0 and 1 and states from
0. The update with the highest number is the model; another one is named after the file,
`training.h5/update_100`.
"""

from pathlib import Path
from typing import Any

import numpy as np

from annealz.formats.optional import need

__all__ = ["HDF5_MAGIC", "read_hdf5", "read_updates"]

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_TYPES = ("BBRBM", "PBRBM")
_PREFIX = "update_"


def read_hdf5(path: Path, update: str | None = None) -> tuple[dict[str, np.ndarray], str]:
    """The arrays of one update, or of the file itself where it is no training; and the update's name."""
    with _open(path) as file:
        updates = _updates(file)
        if not updates:
            if update is not None:
                raise ValueError(
                    f"{path} holds no updates of a training, and {update} was asked for."
                )
            return _datasets(file, is_matlab=_is_matlab(path)), ""
        _check_type(file, path)
        name = updates[-1] if update is None else update
        if name not in updates:
            raise ValueError(
                f"{path} holds no {name}: choose one of {len(updates)} from {updates[0]} to {updates[-1]}."
            )
        return _parameters(file[name]), name


def read_updates(path: Path) -> list[tuple[int, dict[str, np.ndarray]]]:
    """(number, arrays) of every update of a training, in order."""
    with _open(path) as file:
        updates = _updates(file)
        if not updates:
            found = ", ".join(sorted(file)) or "nothing"
            raise ValueError(
                f"{path} holds {found}: a training of rbms holds update_1, update_2, …"
            )
        _check_type(file, path)
        return [(_number(name), _parameters(file[name])) for name in updates]


def _open(path: Path):
    h5py = need("h5py", "HDF5 files are read", "formats")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is truncated, damaged or no HDF5 file: {error}.") from error


def _updates(file) -> list[str]:
    names = [name for name in file if name.startswith(_PREFIX) and _number(name) >= 0]
    return sorted(names, key=_number)


def _number(name: str) -> int:
    digits = name.removeprefix(_PREFIX)
    return int(digits) if digits.isdecimal() else -1


def _check_type(file, path: Path) -> None:
    kind: Any = file["model_type"][()] if "model_type" in file else _TYPES[0].encode()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in _TYPES:
        raise ValueError(
            f"{path} holds a model of type {kind}: of the models of rbms {' and '.join(_TYPES)} are read."
        )


def _parameters(group) -> dict[str, np.ndarray]:
    """Newer files keep the parameters in a group of their own, older ones beside the rest."""
    return _datasets(group.get("params", group))


def _datasets(group, is_matlab: bool = False) -> dict[str, np.ndarray]:
    """The numeric arrays directly in a group."""
    found = {}
    for name, item in group.items():
        if getattr(item, "shape", None) and item.dtype.kind in "fiub":
            array = item[()]
            found[name] = array.T if is_matlab else array
    return found


def _is_matlab(path: Path) -> bool:
    with open(path, "rb") as raw:
        return raw.read(10) == b"MATLAB 7.3"
