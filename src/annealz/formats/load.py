"""A model by its packaged name, by the import path of a Python object, or from a file of any format.

The format is told by the file's first bytes:

    PK                              npz: np.savez, or annealz's own (`npz.py`)
    MATLAB 5.0, or .mat             MATLAB up to version 7 (`mat.py`)
    HDF, or MATLAB 7.3              HDF5: a training of rbms, MATLAB 7.3, plain datasets (`hdf5.py`)
    length, then {                  safetensors (`safetensors.py`)

The names of the arrays tell the layout (`layouts.py`).
"""

from pathlib import Path
from typing import Any

from annealz.formats.hdf5 import HDF5_MAGIC, read_hdf5, read_updates
from annealz.formats.layouts import model_of, rbm_of
from annealz.formats.mat import MAT_MAGIC, read_mat
from annealz.formats.npz import load_npz
from annealz.formats.python_object import is_import_path, load_object
from annealz.formats.safetensors import is_safetensors, read_safetensors
from annealz.models.abstract import AbstractModel
from annealz.models.rbm import RBM
from annealz.names import packaged_models
from annealz.reading.regular import open_regular

__all__ = ["load_binary", "load_model", "load_trajectory"]


def load_model(name: str | Path) -> tuple[AbstractModel, dict[str, Any]]:
    """The model of a packaged name, a file, or the import path of a Python object, and its record.

    The record holds at least "name"; "exact_log_z" only where it was recorded for these very
    parameters. Of a training of rbms the last update is taken, or the one that is named after the file:
    `training.h5/update_100`.

    Examples
    --------
    >>> import annealz
    >>> model, record = annealz.load_model("mnist-pcd-20")
    >>> model.num_hidden, model.num_visible, round(record["exact_log_z"], 4)
    (20, 784, 201.7465)
    """
    packaged = packaged_models()
    if is_import_path(str(name)) and not Path(name).exists():
        found = load_object(str(name))
        found.check()
        return found, {"name": found.name, "source": str(name)}
    path, update = packaged.get(str(name), Path(name)), None
    if not path.exists() and path.parent.is_file():
        path, update = path.parent, path.name
    if not path.exists():
        raise ValueError(
            f"unknown model {str(name)!r}: give a file, module:name of a Python object, or one of "
            f"{', '.join(packaged)}."
        )
    model, meta = _read(path, update)
    meta.pop("source", None)  # names code to import, which no file may
    if meta.get("digest") != model.digest:
        meta.pop("exact_log_z", None)
    return model, {"name": path.stem, **meta}


def load_binary(name: str | Path) -> tuple[RBM, dict[str, Any]]:
    """The same for what takes RBMs of binary units only."""
    model, meta = load_model(name)
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
    path = Path(path)
    if path.is_dir():
        members = [file for file in path.glob("*.npz") if file.stem.isdecimal()]
        if not members:
            raise ValueError(f"{path} holds no models along a training: train with --series.")
        return [load_binary(file)[0] for file in sorted(members, key=lambda f: int(f.stem))]
    return [rbm_of(arrays, f"{path}/update_{number}") for number, arrays in read_updates(path)]


def _read(path: Path, update: str | None) -> tuple[AbstractModel, dict[str, Any]]:
    head = _head(path)
    if HDF5_MAGIC in (head[:8], head[512:520]):
        arrays, update = read_hdf5(path, update)
        name = {"name": f"{path.stem}/{update}"} if update else {}
        return model_of(arrays, path), name
    if update is not None:
        raise ValueError(f"{path} is no HDF5 file, so that it holds no {update}.")
    if head.startswith(MAT_MAGIC) or path.suffix == ".mat":
        return model_of(read_mat(path), path), {}
    if is_safetensors(head):
        return model_of(read_safetensors(path), path), {}
    return load_npz(path)


def _head(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(1024)
