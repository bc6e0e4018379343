"""The names under which units coupled in pairs are kept: Ising and Potts models.

    annealz     couplings (units, units)                          fields (units,), or none     Ising
                couplings (units, units)                          fields (units, states)       Potts
                couplings (units, states, units, states)          fields (units, states)       Potts
    adabmDCA    coupling_matrix (units, states, units, states)    bias (units, states)         Potts

`num_states` (one number) makes a Potts model of couplings without fields. `frequencies` (units, states) of
the states in the data, or `alignment` (rows, units), the data themselves, give a Potts model its base rate.
"""

from collections.abc import Mapping

import numpy as np

from annealz.io.reading import listed, shown
from annealz.models.abstract import AbstractModel

_MOST_STATES = 1000
PAIRS = (("couplings", "fields"), ("coupling_matrix", "bias"))


def coupled_model(arrays: Mapping[str, np.ndarray]) -> AbstractModel:
    """Return the Ising or Potts model of arrays under annealz's names."""
    from annealz.models.ising import Ising
    from annealz.models.potts import Potts

    couplings, fields = arrays["couplings"], arrays.get("fields")
    num_states = _num_states(arrays)
    is_matrix = fields is not None and fields.ndim == 2 and 1 not in fields.shape
    if couplings.ndim != 4 and num_states is None and not is_matrix:
        if couplings.ndim != 2:
            raise ValueError(
                f"couplings must be (units, units) or (units, states, units, states), got shape "
                f"{shown(couplings.shape)}: this file holds {listed(arrays)}."
            )
        return Ising(couplings, None if fields is None else fields.reshape(-1))
    model = Potts(couplings, num_states, fields)
    return Potts(couplings, num_states, fields, _frequencies(arrays, *model.fields.shape))


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


def _frequencies(
    arrays: Mapping[str, np.ndarray], num_units: int, num_states: int
) -> np.ndarray | None:
    """Return those of the states in the data, where the file has them."""
    from annealz.bases.categorical import CategoricalBase

    if "alignment" not in arrays:
        return arrays.get("frequencies")
    rows = np.asarray(arrays["alignment"])
    if rows.ndim != 2 or rows.shape[1] != num_units:
        raise ValueError(f"alignment must be (rows, {num_units}), got shape {shown(rows.shape)}.")
    return np.exp(np.asarray(CategoricalBase.from_data(rows, num_states).logits))
