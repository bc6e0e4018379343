"""The names under which programs keep the arrays of a model, and the order of their axes.

    annealz             weights        (hidden, visible)   hidden_bias         visible_bias
    Salakhutdinov       vishid         (visible, hidden)   hidbiases           visbiases
    rbms                weight_matrix  (visible, hidden)   hbias               vbias
    scikit-learn        components_    (hidden, visible)   intercept_hidden_   intercept_visible_

A layout is recognised by its names in whatever container they lie; other names are given or guessed
(`naming.py`). Row and column vectors, which are all that MATLAB knows, count as vectors. Other families:

    rbms                weight_matrix  (visible, states, hidden), vbias (visible, states): a softmax RBM
                        of type BGRBM, IGRBM, IIRBM: units of other kinds (`LayeredRBM`), see below
    annealz             weights (hidden, visible, states), visible_bias (visible, states): a softmax RBM
    Salakhutdinov       hidpen (hidden, penultimate) and penbiases besides: a DBM of two hidden layers

Units coupled in pairs have names of their own (`pair_layouts.py`).

rbms' energy of Gaussian hidden units is E = -v.b - h.a - v.W h + (D / 2) h.h with D visible units: their
standard deviation is 1 / sqrt(D). Its Ising units are spins.

Families are imported where a file holds one: a first result waits for its imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from annealz.core.arrays import on_device
from annealz.core.units import GaussianUnits
from annealz.io.reading import listed, shown
from annealz.models.abstract import AbstractModel
from annealz.models.formats.naming import (
    command,
    guess,
    map_text,
    renamed,
    unused_means,
    vector,
)
from annealz.models.formats.pair_layouts import coupled_model, is_coupled
from annealz.models.rbm import RBM

if TYPE_CHECKING:
    from annealz.models.dbm import DBM
    from annealz.models.layered_rbm import LayeredRBM
    from annealz.models.softmax_rbm import SoftmaxRBM

__all__ = ["LAYOUTS", "RBMS_TYPES", "Layout", "model_of", "rbm_of", "read_layout"]

RBMS_TYPES = {
    "BBRBM": ("binary", "binary"),
    "PBRBM": ("softmax", "binary"),
    "BGRBM": ("binary", "gaussian"),
    "IGRBM": ("spin", "gaussian"),
    "IIRBM": ("spin", "spin"),
}
"""The kinds of the visible and hidden units of the models of rbms."""


class Layout(NamedTuple):
    """Who writes it, its names, and whether the matrix is (visible, hidden)."""

    program: str
    weights: str
    hidden_bias: str
    visible_bias: str
    is_visible_first: bool

    @property
    def names(self) -> tuple[str, str, str]:
        return self.weights, self.hidden_bias, self.visible_bias

    def __str__(self) -> str:
        axes = "(visible, hidden)" if self.is_visible_first else "(hidden, visible)"
        return f"{self.weights} {axes}, {self.hidden_bias} and {self.visible_bias}"


LAYOUTS = (
    Layout("annealz", "weights", "hidden_bias", "visible_bias", False),
    Layout("Salakhutdinov's code", "vishid", "hidbiases", "visbiases", True),
    Layout("rbms", "weight_matrix", "hbias", "vbias", True),
    Layout("scikit-learn", "components_", "intercept_hidden_", "intercept_visible_", False),
)


def read_layout(
    arrays: Mapping[str, np.ndarray],
    where: object,
    names: Mapping[str, str] | None = None,
    kind: str | None = None,
) -> tuple[AbstractModel, dict[str, Any]]:
    """The model of named arrays, and what its record should hold of them."""
    model = model_of(arrays, where, names, kind)
    if not isinstance(model, RBM):
        return model, {}
    given = arrays if not names else _completed(renamed(arrays, names, where))
    guessed = _guessed(given, where, names)
    record = {}
    if guessed is not None:
        words = {target: shown(name) for target, name in {**guessed, **(names or {})}.items()}
        record = {"guessed_names": map_text(words)}
    if model.visible_means is not None:
        return model, record
    biases = np.asarray(model.visible_bias), np.asarray(model.hidden_bias)
    return model, {**record, **unused_means(arrays, *biases)}


def model_of(
    arrays: Mapping[str, np.ndarray],
    where: object,
    names: Mapping[str, str] | None = None,
    kind: str | None = None,
) -> AbstractModel:
    """The model of named arrays, of the family that their names show.

    Parameters
    ----------
    where : what messages call the file
    names : what its arrays are called (`naming.py`)
    kind : the type of a model of rbms
    """
    names = names or {}
    if names:
        arrays = _completed(renamed(arrays, names, where))
    try:
        if kind is not None and kind not in ("BBRBM", "PBRBM") and not names:
            return _layered(arrays, where, *RBMS_TYPES[kind], rbms=True)
        if "visible" in names or "hidden" in names:
            kinds = names.get("visible", "binary"), names.get("hidden", "binary")
            return _layered(arrays, where, *kinds, names=names)
        if {"weight_matrix", "vbias", "hbias"} <= arrays.keys() and arrays[
            "weight_matrix"
        ].ndim == 3:
            weights = np.moveaxis(arrays["weight_matrix"], -1, 0)
            return _softmax(weights, arrays["hbias"], arrays["vbias"])
        if {"weights", "hidden_bias", "visible_bias"} <= arrays.keys():
            parts = [arrays[name] for name in ("weights", "hidden_bias", "visible_bias")]
            if np.ndim(parts[0]) == 3:
                return _softmax(*parts)
            if "scale" in names:
                from annealz.models.gaussian_rbm import GaussianRBM

                scale = vector(arrays["scale"])
                return GaussianRBM(parts[0], vector(parts[1]), vector(parts[2]), scale)
        if {"hidpen", "penbiases", "vishid", "hidbiases", "visbiases"} <= arrays.keys():
            return _dbm_of(arrays)
        if is_coupled(arrays):
            return coupled_model(arrays)
    except ValueError as error:
        if str(error).startswith(str(where)):
            raise
        raise ValueError(f"{where}: {error}") from error
    if "hidpen" in arrays:  # an RBM's names are there too, and mean a part of the model only
        raise ValueError(
            f"{where} holds hidpen, as a DBM does, which needs vishid, hidbiases, visbiases and penbiases "
            f"too: this one holds {listed(arrays)}."
        )
    return rbm_of(arrays, where, names)


def _completed(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With what the user did not name under annealz's names too, where a program has a name for it."""
    for layout in LAYOUTS[1:]:
        for target, name in zip(LAYOUTS[0].names, layout.names, strict=True):
            if target not in arrays and name in arrays:
                turned = target == "weights" and layout.is_visible_first
                arrays[target] = np.asarray(arrays[name]).T if turned else arrays[name]
    return arrays


def _softmax(weights: np.ndarray, hidden_bias: np.ndarray, visible_bias: np.ndarray) -> SoftmaxRBM:
    from annealz.models.softmax_rbm import SoftmaxRBM

    return SoftmaxRBM(weights, hidden_bias, visible_bias)


def _dbm_of(arrays: Mapping[str, np.ndarray]) -> DBM:
    if "labpen" in arrays:
        raise ValueError("a DBM with units for labels (labpen) is not read: leave the labels out.")
    from annealz.models.dbm import DBM

    weights = [np.asarray(arrays[name]).T for name in ("vishid", "hidpen")]
    names = ("visbiases", "hidbiases", "penbiases")
    return DBM(weights, [vector(np.asarray(arrays[name])) for name in names])


def _layered(
    arrays: Mapping[str, np.ndarray],
    where: object,
    visible: str,
    hidden: str,
    rbms: bool = False,
    names: Mapping[str, str] | None = None,
) -> LayeredRBM:
    """An RBM with units of these kinds."""
    from annealz.models.layered_rbm import LayeredRBM

    weights, hidden_bias, visible_bias = _parts(arrays, where, names)
    units: Any = hidden
    if rbms and hidden == "gaussian":
        units = GaussianUnits(on_device(np.full(hidden_bias.shape, len(visible_bias) ** -0.5)))
    return LayeredRBM(weights, hidden_bias, visible_bias, visible, units)


def rbm_of(
    arrays: Mapping[str, np.ndarray], where: object, names: Mapping[str, str] | None = None
) -> RBM:
    """The RBM of named arrays; a ValueError reports the keys found and the keys wanted.

    `where` is what the message calls the file, `names` what the user said of its arrays.
    """
    parts = _parts(arrays, where, names)
    means = arrays.get("visible_means")
    try:
        return RBM.checked(*parts, None if means is None else vector(np.asarray(means)))
    except ValueError as error:
        remedy = _turn(parts, arrays, where, names)
        words = f"{str(error).rstrip('.')}{remedy}." if remedy else error
        raise ValueError(f"{where}: {words}") from error


def _parts(
    arrays: Mapping[str, np.ndarray], where: object, names: Mapping[str, str] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """weights (hidden, visible), hidden bias and visible bias, under the names of a layout or a guess."""
    layout = _layout(arrays)
    missing = [name for name in layout.names if name not in arrays]
    if missing:
        found = _guessed(arrays, where, names)
        if found is None:
            raise ValueError(_lacks(arrays, where, layout, missing))
        arrays, layout = renamed(arrays, found, where), LAYOUTS[0]
    weights, hidden_bias, visible_bias = (np.asarray(arrays[name]) for name in layout.names)
    weights = weights.T if layout.is_visible_first else weights
    return weights, vector(hidden_bias), vector(visible_bias)


def _layout(arrays: Mapping[str, np.ndarray]) -> Layout:
    """Of which the most names are there."""
    return max(LAYOUTS, key=lambda layout: sum(name in arrays for name in layout.names))


def _guessed(
    arrays: Mapping[str, np.ndarray], where: object, names: Mapping[str, str] | None
) -> dict[str, str] | None:
    """What arrays are called where no program's names say it, and nothing else can be meant."""
    if all(name in arrays for name in _layout(arrays).names) or _other_program(arrays):
        return None
    return guess(arrays, where, names or {})


def _other_program(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether names are those of a program except annealz, so that what lacks is missing, not renamed."""
    return any(name in arrays for layout in LAYOUTS[1:] for name in layout.names)


def _lacks(
    arrays: Mapping[str, np.ndarray], where: object, layout: Layout, missing: list[str]
) -> str:
    found = listed(arrays)
    if len(missing) < len(layout.names):
        return (
            f"{where} lacks {', '.join(missing)}: an RBM file holds {layout} ({layout.program}), "
            f"this one holds {found}."
        )
    if "fields" in arrays or "J" in arrays:
        return (
            f"{where} lacks couplings: a file of an Ising or Potts model holds couplings (units, units) "
            f"and fields (units,) or (units, states), this one holds {found}; say what is what by --map "
            "couplings=J,fields=h."
        )
    wanted = "; or ".join(f"{layout} ({layout.program})" for layout in LAYOUTS)
    return (
        f"{where} lacks {', '.join(missing)}: it holds {found}, and an RBM file holds {wanted}; other "
        "names are read with --map weights=W,hidden_bias=h,visible_bias=v, and W.T where rows are visible "
        "units."
    )


def _turn(
    parts: tuple[np.ndarray, ...],
    arrays: Mapping[str, np.ndarray],
    where: object,
    names: Mapping[str, str] | None,
) -> str:
    """What to type where biases fit only the other way round."""
    weights, hidden, visible = parts
    if weights.ndim != 2 or weights.shape != (*visible.shape, *hidden.shape):
        return ""
    named = next((one for one in LAYOUTS if one.weights in arrays), LAYOUTS[0])
    given = (names or {}).get("weights", named.weights)
    turned = given.removesuffix(".T") if given.endswith(".T") else f"{given}.T"
    if given not in arrays and given == named.weights:
        return ""
    if named.is_visible_first:  # the mapped name is read as (hidden, visible)
        turned = given
    typed = command(where, {**(names or {}), "weights": turned})
    return f"; they fit the other way round: type {typed}"
