"""A model by its packaged name, by the import path of a Python object, or from a file of any format.

The formats are listed in `io/registry/formats.py`. A file is recognised by its first bytes, and where
they do not say, or another package claims it, by its ending. The names of its arrays give the layout
(`layouts.py`).
"""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annealz.core.errors import InputError
from annealz.core.names import packaged_models
from annealz.io.formats import FORMATS, FileFormat
from annealz.io.reading import open_regular, shown
from annealz.io.registry import call
from annealz.models.abstract import AbstractModel
from annealz.models.formats.layouts import rbm_of
from annealz.models.formats.naming import MappedFile, parse_map
from annealz.models.formats.npz import MODEL
from annealz.models.formats.python_object import (
    is_import_path,
    load_object,
    module_of,
    without_name,
)
from annealz.models.rbm import RBM

__all__ = ["load_binary", "load_model", "load_trajectory", "model_record", "read_model"]


def load_model(
    name: str | Path,
    *,
    map: str | Mapping[str, str] | None = None,
) -> AbstractModel:
    """The model of a packaged name, a file, or the import path of a Python object.

    Of a training of rbms the last update is taken, or the one that is named after the file:
    `training.h5/update_100`. Of a network of the UAI competitions evidence may be given so:
    `network.uai/3=1,7=0`.

    Parameters
    ----------
    name : the name, file or import path
    map : what the arrays of a file are called, {"weights": "W.T", "visible_bias": "bv"}, or as --map takes
        it; .T where rows of the weights are visible units. By default the names of known programs, or a
        guess where nothing else can be meant.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> model = annealz.load_model("mnist-pcd-20")
    >>> model.num_hidden, model.num_visible
    (20, 784)
    >>> np.savez("mine.npz", W=np.zeros((64, 64)), c=np.zeros(64), b=np.zeros(64))
    >>> names = {"weights": "W.T", "hidden_bias": "c", "visible_bias": "b"}
    >>> annealz.load_model("mine.npz", map=names).name
    'rbm-64x64'
    """
    return read_model(MappedFile.of(str(name), map))[0]


def model_record(name: str | Path) -> dict[str, Any]:
    """What is known of such a model: at least its "name".

    "exact_log_z" is there only where it was recorded for these very parameters, "unused_means" where the
    file holds an array that looks like means of the visible units under a name that is not read, and
    "guessed_names" where names of arrays were guessed, as --map takes them.

    Examples
    --------
    >>> import annealz
    >>> record = annealz.model_record("mnist-pcd-20")
    >>> record["name"], round(record["exact_log_z"], 4)
    ('mnist-pcd-20', 201.7465)
    """
    return read_model(name)[1]


def read_model(name: str | Path) -> tuple[AbstractModel, dict[str, Any]]:
    """A model and its record; a `MappedFile` says what its arrays are called."""
    packaged = packaged_models()
    names = parse_map(name.map) if isinstance(name, MappedFile) else None
    if names and (str(name) in packaged or (is_import_path(str(name)) and not Path(name).exists())):
        raise InputError("map", f"gives the names of arrays in a file, and {name} is not one")
    if is_import_path(str(name)) and not Path(name).exists():
        from annealz.models.log_density import LogDensity

        found = load_object(str(name))  # whose function is evaluated by those who check it
        is_density = isinstance(found, LogDensity)  # whose own name is often that of a function
        called = str(name).rpartition(":")[2] if is_density else found.name
        return found, {"name": called, "source": str(name)}
    path, update = packaged.get(str(name), Path(name)), None
    if path.parent.is_file():  # which has no files in it
        path, update = path.parent, path.name
    module = module_of(str(name))
    if module is not None:
        raise ValueError(without_name(str(name), module))
    if not path.exists():
        if path.suffix or "/" in str(name) or os.sep in str(name):
            raise ValueError(f"no such file: {name}.")
        raise ValueError(
            f"unknown model {str(name)!r}: give a file, module:name of a Python object, or one of "
            f"{', '.join(packaged)}."
        )
    if str(name) in packaged:
        model, meta = _packaged(path)
        return model, dict(meta)
    return _from_file(path, update, names)


@functools.cache
def _packaged(path: Path) -> tuple[AbstractModel, dict[str, Any]]:
    """Read once a process: what is prepared for a model, for the same arrays, is then found again."""
    return _from_file(path, None, None)


def _from_file(path: Path, update: str | None, names: Any) -> tuple[AbstractModel, dict[str, Any]]:
    model, meta = _read(path, update, names)
    meta.pop("source", None)  # names code to import, which no file may
    if meta.get("digest") != model.digest:
        meta.pop("exact_log_z", None)
    return model, {"name": path.stem, **meta}


def load_binary(name: str | Path) -> tuple[RBM, dict[str, Any]]:
    """The same for what takes RBMs of binary units only."""
    model, meta = read_model(name)
    if not isinstance(model, RBM):
        raise ValueError(
            f"{name} must be an RBM of binary units here, got a {type(model).__name__}."
        )
    return model, meta


def load_trajectory(path: str | Path) -> list[RBM]:
    """The RBMs of a training in the order of their updates: a file of rbms, or a folder of npz files.

    The folder is what `annealz train --series` leaves, files that are named by the number of updates.

    Examples
    --------
    >>> import annealz
    >>> from pathlib import Path
    >>> from annealz.testing import random_rbm
    >>> Path("series").mkdir()
    >>> for updates in (100, 200):
    ...     annealz.save_rbm(f"series/{updates}.npz", random_rbm(4, 6, seed=updates))
    >>> [model.name for model in annealz.load_trajectory("series")]
    ['rbm-4x6', 'rbm-4x6']
    """
    from annealz.models.formats.hdf5 import read_updates

    path = Path(path)
    if path.is_dir():
        members = [file for file in path.glob("*.npz") if file.stem.isdecimal()]
        if not members:
            raise InputError(
                "", f"{path} holds no models along a training", remedy="train with {series}"
            )
        return [load_binary(file)[0] for file in sorted(members, key=lambda f: int(f.stem))]
    return [rbm_of(arrays, f"{path}/update_{number}") for number, arrays in read_updates(path)]


def _read(
    path: Path, part: str | None, names: Mapping[str, str] | None
) -> tuple[AbstractModel, dict[str, Any]]:
    head = _head(path)
    if not head:
        raise ValueError(f"{path} is empty.")
    kind = FORMATS.of(path, head)
    if kind is None:
        raise _unknown(path, head)
    if part is not None and not kind.has_parts:
        kinds = " or ".join(one.name for one in FORMATS.usable() if one.has_parts)
        raise ValueError(f"{path} is not an {kinds} file, so that it holds no {shown(part)}.")
    given: tuple[Any, ...] = (path, part) if kind.has_parts else (path,)
    if names:
        if not kind.takes_names:
            raise InputError("", f"{path} is a file of {kind.name}, whose arrays need no {{map}}")
        given = (*given, names)
    found = call(kind.owner, kind.read, *given)
    return _checked(found, kind, path) if kind.package else found


def _checked(found: object, kind: FileFormat, path: Path) -> tuple[AbstractModel, dict[str, Any]]:
    """What a reader of another package gave, if it is a model and a record."""
    match found:
        case (AbstractModel() as model, dict() as record):
            model.check()
            return model, MODEL.check(record, path)
    raise ValueError(f"{kind.owner} must give a model and a record, got a {type(found).__name__}.")


def _unknown(path: Path, head: bytes) -> ValueError:
    is_pickle = head[:1] == b"\x80"
    what = "a pickle, which is never loaded" if is_pickle else "in an unknown format"
    known = ", ".join(map(str, FORMATS.usable()))
    rest = "".join(f"; {reason.rstrip('.')}" for reason in FORMATS.refusals())
    return ValueError(f"{path} is {what}: give {known}{rest}.")


def _head(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(1024)
