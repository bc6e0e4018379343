"""Models as npz files; RBMs as `weights` (hidden, visible), `hidden_bias`, `visible_bias`.

The names of other programs, and couplings and fields, are read as well (`layouts.py`). `visible_means` (the
data's base rate) is optional. A plain `np.savez` of the arrays loads; files written here carry a checksum
and a JSON record (name, training settings, exact log Z). Models of other families are written under the
name of their family (`annealz.io.serialise`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from annealz.io.archive import load_archive, save_archive
from annealz.io.records import Record, finite, line, table, text
from annealz.io.serialise import restore, store
from annealz.models.abstract import AbstractModel
from annealz.models.formats.layouts import rbm_of, read_layout
from annealz.models.rbm import RBM

__all__ = ["is_npz", "load_npz", "load_rbm", "save_model", "save_rbm"]

MODEL = Record(
    "the model's record",
    {},
    {"name": line, "exact_log_z": finite, "digest": text, "stored": table},
)

_FOUND = (
    "guessed_names",
    "unused_means",
)  # in a record what is seen in arrays, and never what a file says
_REQUIRED = ("weights", "hidden_bias", "visible_bias")


def is_npz(head: bytes) -> bool:
    """Whether a file that begins so may be one: a zip archive, which may be empty."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def load_npz(
    path: str | Path, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """The model of an npz file, and its record (empty for a plain file)."""
    arrays, meta = _load(path)
    record = meta.pop("stored", None)
    if record is None or names:
        model, more = read_layout(arrays, path, names)
        return model, {**meta, **more}
    try:
        model = restore(arrays, record)
        if not isinstance(model, AbstractModel):
            raise ValueError(f"it holds a {type(model).__name__}, which is not a model.")
        model.check()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return model, meta


def save_model(path: str | Path, model: AbstractModel, meta: dict[str, Any] | None = None) -> None:
    """Write a model of annealz atomically, with a checksum and this record.

    Examples
    --------
    >>> import annealz
    >>> annealz.save_model(
    ...     "lattice.npz", annealz.Ising.square(4, 0.3)
    ... )  # annealz estimate lattice.npz
    >>> model = annealz.load_model("lattice.npz")
    >>> model.name, annealz.model_record("lattice.npz")["name"]
    ('ising-4x4', 'lattice')
    """
    if isinstance(model, RBM):
        save_rbm(path, model, meta)
        return
    stored = store(model)
    if stored is None:
        raise ValueError(f"a {type(model).__name__} cannot be written to a file: it may hold code.")
    save_archive(path, stored[0], {**(meta or {}), "stored": stored[1]})


def load_rbm(path: str | Path) -> tuple[RBM, dict[str, Any]]:
    """The RBM of an npz file, and its record (empty for a plain file)."""
    arrays, meta = _load(path)
    return rbm_of(arrays, path), meta


def save_rbm(path: str | Path, model: RBM, meta: dict[str, Any] | None = None) -> None:
    """Write the RBM atomically, with a checksum and this record.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> annealz.save_rbm("model.npz", model, {"note": "not trained"})
    >>> loaded = annealz.load_model("model.npz")
    >>> loaded.digest == model.digest, annealz.model_record("model.npz")["note"]
    (True, 'not trained')
    """
    arrays = {name: np.asarray(getattr(model, name)) for name in _REQUIRED}
    if model.visible_means is not None:
        arrays["visible_means"] = np.asarray(model.visible_means)
    save_archive(path, arrays, meta or {})


def _load(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    arrays, meta = load_archive(path, need_checksum=False)
    meta = MODEL.check(meta, path)
    return arrays, {name: value for name, value in meta.items() if name not in _FOUND}
