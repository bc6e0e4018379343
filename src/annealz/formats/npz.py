"""RBMs as npz files: `weights` (hidden, visible), `hidden_bias`, `visible_bias`.

The names of other programs are read as well (`layouts.py`). `visible_means` (the data's base rate) is
optional. A plain `np.savez` of the three arrays loads; files written here carry a checksum and a JSON
record (name, training settings, exact log Z).
"""

from pathlib import Path
from typing import Any

import numpy as np

from annealz.formats.archive import load_archive, save_archive
from annealz.formats.layouts import rbm_of
from annealz.models.rbm import RBM

__all__ = ["load_rbm", "save_rbm"]

_REQUIRED = ("weights", "hidden_bias", "visible_bias")


def load_rbm(path: str | Path) -> tuple[RBM, dict[str, Any]]:
    """The RBM of an npz file, and its record (empty for a plain file)."""
    arrays, meta = load_archive(path, need_checksum=False)
    return rbm_of(arrays, path), meta


def save_rbm(path: str | Path, model: RBM, meta: dict[str, Any] | None = None) -> None:
    """Write the RBM atomically, with a checksum and this record."""
    arrays = {name: np.asarray(getattr(model, name)) for name in _REQUIRED}
    if model.visible_means is not None:
        arrays["visible_means"] = np.asarray(model.visible_means)
    save_archive(path, arrays, meta or {})
