"""The names under which programs keep the three arrays of an RBM, and the order of their axes.

    annealz             weights        (hidden, visible)   hidden_bias         visible_bias
    Salakhutdinov       vishid         (visible, hidden)   hidbiases           visbiases
    rbms                weight_matrix  (visible, hidden)   hbias               vbias
    scikit-learn        components_    (hidden, visible)   intercept_hidden_   intercept_visible_

A layout is recognised by its names in whatever container they lie. Row and column vectors, which are all
that MATLAB knows, count as vectors. Two of these programs have models that are not RBMs of binary units:

    rbms                weight_matrix  (visible, states, hidden), vbias (visible, states): a softmax RBM
    Salakhutdinov       hidpen (hidden, penultimate) and penbiases besides: a DBM of two hidden layers

Units coupled in pairs have names of their own (`pair_layouts.py`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from annealz.core.reading.words import listed
from annealz.models.abstract import AbstractModel
from annealz.models.dbm import DBM
from annealz.models.formats.pair_layouts import coupled_model, is_coupled
from annealz.models.rbm import RBM
from annealz.models.softmax_rbm import SoftmaxRBM

__all__ = ["LAYOUTS", "Layout", "model_of", "rbm_of"]


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


def model_of(arrays: Mapping[str, np.ndarray], where: object) -> AbstractModel:
    """The model of named arrays, of the family that their names show."""
    try:
        if {"weight_matrix", "vbias", "hbias"} <= arrays.keys() and arrays[
            "weight_matrix"
        ].ndim == 3:
            weights = np.moveaxis(arrays["weight_matrix"], -1, 0)
            return SoftmaxRBM(weights, arrays["hbias"], arrays["vbias"])
        if {"hidpen", "penbiases", "vishid", "hidbiases", "visbiases"} <= arrays.keys():
            return _dbm_of(arrays)
        if is_coupled(arrays):
            return coupled_model(arrays)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if "hidpen" in arrays:  # an RBM's names are there too, and mean a part of the model only
        raise ValueError(
            f"{where} holds hidpen, as a DBM does, which needs vishid, hidbiases, visbiases and penbiases "
            f"too: this one holds {listed(arrays)}."
        )
    return rbm_of(arrays, where)


def _dbm_of(arrays: Mapping[str, np.ndarray]) -> DBM:
    if "labpen" in arrays:
        raise ValueError("a DBM with units for labels (labpen) is not read: leave the labels out.")
    weights = [np.asarray(arrays[name]).T for name in ("vishid", "hidpen")]
    names = ("visbiases", "hidbiases", "penbiases")
    return DBM(weights, [_vector(np.asarray(arrays[name])) for name in names])


def rbm_of(arrays: Mapping[str, np.ndarray], where: object) -> RBM:
    """The RBM of named arrays; a ValueError reports the keys found and the keys wanted.

    `where` is what the message calls the file.
    """
    layout = max(LAYOUTS, key=lambda layout: sum(name in arrays for name in layout.names))
    missing = [name for name in layout.names if name not in arrays]
    found = listed(arrays)
    if len(missing) == len(layout.names):
        wanted = "; or ".join(f"{layout} ({layout.program})" for layout in LAYOUTS)
        raise ValueError(
            f"{where} lacks {', '.join(missing)}: it holds {found}, and an RBM file holds {wanted}."
        )
    if missing:
        raise ValueError(
            f"{where} lacks {', '.join(missing)}: an RBM file holds {layout} ({layout.program}), "
            f"this one holds {found}."
        )
    weights, hidden_bias, visible_bias = (np.asarray(arrays[name]) for name in layout.names)
    means = arrays.get("visible_means")
    try:
        return RBM.checked(
            weights.T if layout.is_visible_first else weights,
            _vector(hidden_bias),
            _vector(visible_bias),
            None if means is None else _vector(np.asarray(means)),
        )
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _vector(array: np.ndarray) -> np.ndarray:
    """A row or column vector as a vector; anything else as it is."""
    return array.ravel() if array.ndim == 2 and 1 in array.shape else array
