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
from annealz.models.formats.layouts import read_layout
from annealz.models.rbm import RBM

MODEL = Record(
    "the model's record",
    {},
    {"name": line, "exact_log_z": finite, "digest": text, "stored": table},
)

_FOUND = ("guessed_names", "unused_means")  # seen in arrays, and never what a file says


def is_npz(head: bytes) -> bool:
    """Check whether a file that begins so may be one: a zip archive, which may be empty."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def load_npz(
    path: str | Path, names: Mapping[str, str] | None = None
) -> tuple[AbstractModel, dict[str, Any]]:
    """Return the model of an npz file, and its record (empty for a plain file)."""
    arrays, meta = load_archive(path, need_checksum=False)
    meta = {name: value for name, value in MODEL.check(meta, path).items() if name not in _FOUND}
    record = meta.pop("stored", None)
    if record is None or names:
        model, more = read_layout(arrays, path, names)
        return model, {**meta, **more}
    model = restore(arrays, record)
    if not isinstance(model, AbstractModel):
        raise ValueError(f"it holds a {type(model).__name__}, which is not a model.")
    model.check()
    return model, meta


def save_model(path: str | Path, model: AbstractModel, meta: dict[str, Any] | None = None) -> None:
    """Write a model of annealz atomically, with a checksum and this record.

    Examples
    --------
    >>> import annealz
    >>> annealz.save_model("lattice.npz", annealz.Ising.square(4, 0.3))
    >>> model = annealz.load_model("lattice.npz")  # or annealz estimate lattice.npz
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


def save_rbm(path: str | Path, model: RBM, meta: dict[str, Any] | None = None) -> None:
    """Write the RBM atomically, with a checksum and this record.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> annealz.save_rbm("model.npz", random_rbm(4, 6), {"note": "not trained"})
    >>> annealz.model_record("model.npz")["note"]
    'not trained'
    """
    arrays = {name: getattr(model, name) for name in RBM.__dataclass_fields__}
    given = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    save_archive(path, given, meta or {})
