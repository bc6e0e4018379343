"""The names under which units coupled in pairs are kept: Ising and Potts models.

    annealz     couplings (units, units)                          fields (units,), or none     Ising
                couplings (units, units)                          fields (units, states)       Potts
                couplings (units, states, units, states)          fields (units, states)       Potts
    adabmDCA    coupling_matrix (units, states, units, states)    bias (units, states)         Potts

`num_states` (one number) makes a Potts model of couplings without fields. `frequencies` (units, states) of
the states in the data, or `alignment` (rows, units), the data themselves, give a Potts model its base rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from annealz.io.reading import listed, shown

if TYPE_CHECKING:
    from annealz.models.ising import Ising
    from annealz.models.potts import Potts

__all__ = ["coupled_model", "is_coupled"]

_MOST_STATES = 1000
_NAMES = (("couplings", "fields"), ("coupling_matrix", "bias"))


def is_coupled(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether these arrays are those of units coupled in pairs."""
    return any(couplings in arrays for couplings, _ in _NAMES)


def coupled_model(arrays: Mapping[str, np.ndarray]) -> Ising | Potts:
    """The model of these arrays; a ValueError says what is wrong with them."""
    from annealz.models.ising import Ising
    from annealz.models.potts import Potts

    name, fields_name = next(names for names in _NAMES if names[0] in arrays)
    couplings, fields = np.asarray(arrays[name]), arrays.get(fields_name)
    fields = None if fields is None else np.asarray(fields)
    num_states = _num_states(arrays)
    is_matrix = fields is not None and fields.ndim == 2 and 1 not in fields.shape
    if couplings.ndim != 4 and num_states is None and not is_matrix:
        if couplings.ndim != 2:
            raise ValueError(
                f"{name} must be (units, units) or (units, states, units, states), got shape "
                f"{shown(couplings.shape)}: this file holds {listed(arrays)}."
            )
        return Ising(couplings, None if fields is None else fields.reshape(-1))
    model = Potts(couplings, num_states, fields)
    return Potts(couplings, num_states, fields, _frequencies(arrays, model))


def _num_states(arrays: Mapping[str, np.ndarray]) -> int | None:
    if "num_states" not in arrays:
        return None
    given = np.asarray(arrays["num_states"])
    if given.size != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"num_states must be one whole number, got {shown(given)}.")
    count = int(given.reshape(()))
    if count > _MOST_STATES:  # fields of that size would be made
        raise ValueError(f"num_states of a file must be at most {_MOST_STATES:,}, got {count:,}.")
    return count


def _frequencies(arrays: Mapping[str, np.ndarray], model: Potts) -> np.ndarray | None:
    """Of the states in the data, where the file has them."""
    from annealz.bases.categorical import CategoricalBase

    if "alignment" in arrays:
        rows = np.asarray(arrays["alignment"])
        if rows.ndim != 2 or rows.shape[1] != model.num_units:
            raise ValueError(
                f"alignment must be (rows, {model.num_units}), got shape {shown(rows.shape)}."
            )
        return np.exp(np.asarray(CategoricalBase.from_data(rows, model.num_states).logits))
    return arrays.get("frequencies")
