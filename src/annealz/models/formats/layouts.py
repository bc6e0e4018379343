"""The names under which programs keep the arrays of a model, and the model of named arrays.

    annealz             weights        (hidden, visible)   hidden_bias         visible_bias
    Salakhutdinov       vishid         (visible, hidden)   hidbiases           visbiases
    rbms                weight_matrix  (visible, hidden)   hbias               vbias
    scikit-learn        components_    (hidden, visible)   intercept_hidden_   intercept_visible_

A layout is recognised by its names in whatever container they lie; other names are given or guessed
(`naming.py`). Row and column vectors, which are all that MATLAB knows, count as vectors. Other families:

    rbms                weight_matrix  (visible, states, hidden), vbias (visible, states): a softmax RBM
                        of type BGRBM, IGRBM, IIRBM: units of other types (`LayeredRBM`), see below
    annealz             weights (hidden, visible, states), visible_bias (visible, states): a softmax RBM
    Salakhutdinov       hidpen (hidden, penultimate) and penbiases besides: a DBM of two hidden layers

Units coupled in pairs, Ising and Potts models:

    annealz     couplings (units, units)                          fields (units,), or none     Ising
                couplings (units, units)                          fields (units, states)       Potts
                couplings (units, states, units, states)          fields (units, states)       Potts
    adabmDCA    coupling_matrix (units, states, units, states)    bias (units, states)         Potts

`num_states` (one number) makes a Potts model of couplings without fields. `frequencies` (units, states) of
the states in the data, or `alignment` (rows, units), the data themselves, give a Potts model its base rate.

rbms' energy of Gaussian hidden units is E = -v.b - h.a - v.W h + (D / 2) h.h with D visible units: their
standard deviation is 1 / sqrt(D). Its Ising units are spins.

Families are imported where a file holds one: a first result waits for its imports.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from annealz.core.arrays import on_device
from annealz.core.errors import InputError
from annealz.core.units import GaussianUnits
from annealz.io.reading import listed, shown
from annealz.models.abstract import AbstractModel
from annealz.models.formats.naming import (
    KINDS,
    command,
    guess,
    map_text,
    unused_means,
    vector,
)
from annealz.models.rbm import RBM

RBMS_TYPES = {
    "BBRBM": None,
    "PBRBM": None,
    "BGRBM": ("binary", "gaussian"),
    "IGRBM": ("spin", "gaussian"),
    "IIRBM": ("spin", "spin"),
}
"""The types of the visible and hidden units of models of rbms, where shapes do not determine them."""
_PAIRS = (("couplings", "fields"), ("coupling_matrix", "bias"))
_MOST_STATES = 1000
_PARTS = ("weights", "hidden_bias", "visible_bias")


class _Layout(NamedTuple):
    """Who writes it, its names, and whether the matrix is (visible, hidden)."""

    program: str
    names: tuple[str, str, str]
    is_visible_first: bool

    def __str__(self) -> str:
        axes = "(visible, hidden)" if self.is_visible_first else "(hidden, visible)"
        weights, hidden_bias, visible_bias = self.names
        return f"{weights} {axes}, {hidden_bias} and {visible_bias} ({self.program})"


_LAYOUTS = (
    _Layout("annealz", _PARTS, False),
    _Layout("Salakhutdinov's code", ("vishid", "hidbiases", "visbiases"), True),
    _Layout("rbms", ("weight_matrix", "hbias", "vbias"), True),
    _Layout("scikit-learn", ("components_", "intercept_hidden_", "intercept_visible_"), False),
)


def read_layout(
    arrays: Mapping[str, np.ndarray],
    where: object,
    names: Mapping[str, str] | None = None,
    kind: str | None = None,
) -> tuple[AbstractModel, dict[str, Any]]:
    """Return the model of named arrays, and what its record should hold of them.

    Parameters
    ----------
    where : what messages call the file
    names : what its arrays are called (`naming.py`)
    kind : the type of a model of rbms
    """
    names = dict(names or {})
    units = RBMS_TYPES[kind] if kind and not names else None
    if set(KINDS) & names.keys():
        units = tuple(names.get(layer, "binary") for layer in KINDS)
    sources = _sources(arrays, {key: name for key, name in names.items() if key not in KINDS})
    parts = {target: _array(arrays, where, name, target) for target, name in sources.items()}
    if "couplings" in parts:
        return _coupled_model({**arrays, **parts}), {}
    if "hidpen" in arrays and not names:
        return _dbm_of(arrays), {}
    record = {}
    if any(target not in parts for target in _PARTS):
        others = {name for layout in _LAYOUTS[1:] for name in layout.names}
        guessed = (
            guess(arrays, where, sources) if not others & arrays.keys() - sources.keys() else None
        )
        if guessed is None:
            raise ValueError(_lacks(arrays, where))
        said = {target: shown(name) for target, name in {**guessed, **names}.items()}
        record, sources = {"guessed_names": map_text(said)}, {**sources, **guessed}
        parts |= {target: _array(arrays, where, name, target) for target, name in guessed.items()}
    weights, hidden_bias, visible_bias = (parts[target] for target in _PARTS)
    if weights.ndim != 3:
        visible_bias = vector(visible_bias)
    try:
        model = _rbm(weights, vector(hidden_bias), visible_bias, parts, units, kind is not None)
    except ValueError as error:
        if weights.shape != (*np.shape(visible_bias), *vector(hidden_bias).shape):
            raise
        turned = sources["weights"]
        turned = turned.removesuffix(".T") if turned.endswith(".T") else f"{turned}.T"
        typed = command(where, {**names, "weights": turned})
        words = f"{where}: {str(error).rstrip('.')}; they fit the other way round: type {typed}."
        raise ValueError(words) from error
    if isinstance(model, RBM) and model.visible_means is None:
        biases = np.asarray(model.visible_bias), np.asarray(model.hidden_bias)
        record |= unused_means(arrays, *biases)
    return model, record


def _sources(arrays: Mapping[str, np.ndarray], names: Mapping[str, str]) -> dict[str, str]:
    """Return what the arrays are called under annealz's names: as the user says, or as a program does."""
    sources = dict(names)
    for layout in _LAYOUTS:
        for target, name in zip(_PARTS, layout.names, strict=True):
            if target not in sources and name in arrays:
                is_turned = target == "weights" and layout.is_visible_first
                sources[target] = f"{name}.T" if is_turned else name
    for target in ("visible_means", "scale"):
        if target not in sources and target in arrays and (target != "scale" or names):
            sources[target] = target
    for couplings, fields in _PAIRS:
        if "couplings" not in sources and couplings in arrays:
            sources["couplings"] = couplings
            sources |= {"fields": fields} if fields in arrays and "fields" not in sources else {}
    return sources


def _array(arrays: Mapping[str, np.ndarray], where: object, name: str, target: str) -> np.ndarray:
    """Return the array of this name; of weights with .T the last axis, hidden units, first."""
    if name in arrays:
        return np.asarray(arrays[name])
    bare = name.removesuffix(".T")
    if bare == name or bare not in arrays:
        raise InputError(
            "",
            f"{where} holds no {shown(name)}, which {{map}} gives as {target}",
            remedy=f"it holds {listed(arrays)}",
        )
    array = np.asarray(arrays[bare])
    return np.moveaxis(array, -1, 0) if array.ndim else array


def _rbm(weights, hidden_bias, visible_bias, parts, units, is_rbms: bool) -> AbstractModel:
    """Return the RBM of these arrays, of the family that their shapes and the types of units show."""
    if units is not None:
        from annealz.models.layered_rbm import LayeredRBM

        visible, hidden = units
        if is_rbms and hidden == "gaussian":
            scale = np.full(hidden_bias.shape, len(visible_bias) ** -0.5)
            hidden = GaussianUnits(on_device(scale))
        return LayeredRBM(weights, hidden_bias, visible_bias, visible, hidden)
    if weights.ndim == 3:
        from annealz.models.layered import SoftmaxRBM

        return SoftmaxRBM(weights, hidden_bias, visible_bias)
    if "scale" in parts:
        from annealz.models.layered import GaussianRBM

        return GaussianRBM(weights, hidden_bias, visible_bias, vector(parts["scale"]))
    means = parts.get("visible_means")
    return RBM.checked(weights, hidden_bias, visible_bias, None if means is None else vector(means))


def _dbm_of(arrays: Mapping[str, np.ndarray]) -> AbstractModel:
    names = ("vishid", "hidpen", "visbiases", "hidbiases", "penbiases")
    if not arrays.keys() >= set(names):  # an RBM's names, if there, mean a part of the model only
        raise ValueError(
            f"it holds hidpen, as a DBM does, which needs vishid, hidbiases, visbiases and penbiases "
            f"too: this one holds {listed(arrays)}."
        )
    if "labpen" in arrays:
        raise ValueError("a DBM with units for labels (labpen) is not read: leave the labels out.")
    from annealz.models.dbm import DBM

    first, second, *biases = (np.asarray(arrays[name]) for name in names)
    return DBM([first.T, second.T], [vector(bias) for bias in biases])


def _coupled_model(arrays: Mapping[str, np.ndarray]) -> AbstractModel:
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
    """Return the number of states that a file gives by itself."""
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


def _lacks(arrays: Mapping[str, np.ndarray], where: object) -> str:
    """Return what to do about arrays that are not there."""
    layout = max(_LAYOUTS, key=lambda layout: sum(name in arrays for name in layout.names))
    lacks = ", ".join(name for name in layout.names if name not in arrays)
    if any(name in arrays for name in layout.names):
        return (
            f"{where} lacks {lacks}: an RBM file holds {layout}, this one holds {listed(arrays)}."
        )
    if "fields" in arrays or "J" in arrays:
        return (
            f"{where} lacks couplings: a file of an Ising or Potts model holds couplings (units, units) "
            f"and fields (units,) or (units, states), this one holds {listed(arrays)}; say what is what "
            "by --map couplings=J,fields=h."
        )
    wanted = "; or ".join(map(str, _LAYOUTS))
    return (
        f"{where} lacks {lacks}: it holds {listed(arrays)}, and an RBM file holds {wanted}; other names "
        "are read with --map weights=W,hidden_bias=h,visible_bias=v, and W.T where rows are visible units."
    )
