"""A model by its packaged name, by the import path of a Python object, or from a file of any format.

The formats are listed in `io/formats.py`. A file is recognised by its first bytes, and where they do not
say, or another package claims it, by its ending. The names of its arrays give the layout (`layouts.py`).
"""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annealz.core.errors import InputError
from annealz.core.names import packaged_models
from annealz.io.formats import FORMATS
from annealz.io.reading import open_regular, shown
from annealz.io.registry import call
from annealz.models.abstract import AbstractModel
from annealz.models.formats.naming import MappedFile, parse_map
from annealz.models.formats.npz import MODEL
from annealz.models.formats.python_object import (
    is_import_path,
    load_object,
    module_of,
    without_name,
)
from annealz.models.rbm import RBM


def load_model(name: str | Path, *, map: str | Mapping[str, str] | None = None) -> AbstractModel:
    """Return the model of a packaged name, a file, or the import path of a Python object.

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
    >>> np.savez("mine.npz", W=np.zeros((64, 64)), c=np.zeros(64), b=np.zeros(64))
    >>> names = {"weights": "W.T", "hidden_bias": "c", "visible_bias": "b"}
    >>> annealz.load_model("mine.npz", map=names).name, annealz.load_model("mnist-pcd-20").name
    ('rbm-64x64', 'rbm-20x784')
    """
    return read_model(MappedFile.of(str(name), map))[0]


def model_record(name: str | Path) -> dict[str, Any]:
    """Return what is known of such a model: at least its "name".

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
    """Return a model and its record; a `MappedFile` says what its arrays are called."""
    packaged, text = packaged_models(), str(name)
    names = parse_map(name.map) if isinstance(name, MappedFile) else None
    is_object = is_import_path(text) and not Path(name).exists()
    if names and (text in packaged or is_object):
        raise InputError("map", f"gives the names of arrays in a file, and {name} is not one")
    if is_object:
        from annealz.models.log_density import LogDensity

        model = load_object(text)  # its function is evaluated by those who check it
        is_density = isinstance(model, LogDensity)  # its own name is often that of a function
        called = text.rpartition(":")[2] if is_density else model.name
        return model, {"name": called, "source": text}
    if text in packaged:
        model, meta = _packaged(packaged[text])
        return model, dict(meta)
    path, part = Path(name), None
    if path.parent.is_file():  # which has no files in it
        path, part = path.parent, path.name
    module = module_of(text)
    if module is not None:
        raise ValueError(without_name(text, module))
    if not path.exists():
        if path.suffix or "/" in text or os.sep in text:
            raise ValueError(f"no such file: {name}.")
        raise ValueError(
            f"unknown model {text!r}: give a file, module:name of a Python object, or one of "
            f"{', '.join(packaged)}."
        )
    return _from_file(path, part, names)


@functools.cache
def _packaged(path: Path) -> tuple[AbstractModel, dict[str, Any]]:
    """Read a packaged model once a process: what is prepared for its arrays is then found again."""
    return _from_file(path, None, None)


def load_binary(name: str | Path) -> tuple[RBM, dict[str, Any]]:
    """Return a model and its record, if it is an RBM of binary units."""
    model, meta = read_model(name)
    if not isinstance(model, RBM):
        raise ValueError(
            f"{name} must be an RBM of binary units here, got a {type(model).__name__}."
        )
    return model, meta


def load_trajectory(path: str | Path) -> list[RBM]:
    """Return the RBMs of a training in the order of their updates: a file of rbms, or a folder of npz.

    The folder is what `annealz train --series` leaves, files that are named by the number of updates.

    Examples
    --------
    >>> import annealz
    >>> from pathlib import Path
    >>> from annealz.testing import random_rbm
    >>> Path("series").mkdir()
    >>> annealz.save_rbm("series/100.npz", random_rbm(4, 6))
    >>> [model.name for model in annealz.load_trajectory("series")]
    ['rbm-4x6']
    """
    from annealz.models.formats.hdf5 import updates_of

    path = Path(path)
    if path.is_dir():
        return [model for _, model in load_series(path)]
    return [load_binary(path / update)[0] for update in updates_of(path)]


def load_series(folder: str | Path) -> list[tuple[int, RBM]]:
    """Return the models that `annealz train --series` left, as (updates, model) in their order."""
    members = [file for file in Path(folder).glob("*.npz") if file.stem.isdecimal()]
    if not members:
        raise ValueError(f"{folder} holds no series of models: train with --series.")
    return [
        (int(file.stem), load_binary(file)[0])
        for file in sorted(members, key=lambda file: int(file.stem))
    ]


def _from_file(
    path: Path, part: str | None, names: Mapping[str, str] | None
) -> tuple[AbstractModel, dict[str, Any]]:
    try:
        model, meta = _read(path, part, names)
    except ValueError as error:
        if str(path) in str(error) or isinstance(error, InputError):
            raise
        raise ValueError(f"{path}: {error}") from error
    meta.pop("source", None)  # names code to import, which no file may
    if meta.get("digest") != model.digest:
        meta.pop("exact_log_z", None)
    return model, {"name": path.stem, **meta}


def _read(
    path: Path, part: str | None, names: Mapping[str, str] | None
) -> tuple[AbstractModel, dict[str, Any]]:
    with open_regular(path) as file:
        head = file.read(1024)
    if not head:
        raise ValueError(f"{path} is empty.")
    kind = FORMATS.of(path, head)
    if kind is None:
        is_pickle = head[:1] == b"\x80"
        what = "a pickle, which is never loaded" if is_pickle else "in an unknown format"
        known = ", ".join(map(str, FORMATS.usable()))
        rest = "".join(f"; {reason.rstrip('.')}" for reason in FORMATS.refusals())
        raise ValueError(f"{path} is {what}: give {known}{rest}.")
    if part is not None and not kind.has_parts:
        kinds = " or ".join(one.name for one in FORMATS.usable() if one.has_parts)
        raise ValueError(f"{path} is not an {kinds} file, so that it holds no {shown(part)}.")
    if names and not kind.takes_names:
        raise InputError("", f"{path} is a file of {kind.name}, whose arrays need no {{map}}")
    given = (path, *((part,) if kind.has_parts else ()), *((names,) if names else ()))
    found = call(kind.owner, kind.read, *given)
    if not kind.package:
        return found
    match found:
        case (AbstractModel() as model, dict() as record):
            model.check()
            return model, MODEL.check(record, path)
    raise ValueError(f"{kind.owner} must give a model and a record, got a {type(found).__name__}.")
