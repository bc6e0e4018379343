"""HDF5 files of RestrictedBoltzmannMachines.jl (`save_rbm`, format 1.0.0).

    rbm_hdf5_file_format_version   "1.0.0"
    rbm_type                       RBM, CenteredRBM or StandardizedRBM
    visible_type, hidden_type      Binary, Spin, Potts, PottsGumbel, Gaussian, ReLU, dReLU, pReLU, xReLU,
                                   nsReLU
    weights                        (visible..., hidden...)
    visible_par, hidden_par        (parameters, units...), parameters in the order below
    offset_v, offset_h             of centred and standardised RBMs, as the units
    scale_v, scale_h               of standardised ones

Julia's first axis is the last one in HDF5: what is read here is weights (hidden..., visible...) and
parameters (units..., parameters), and units of several axes come in Julia's order. Energies of a layer:

    Binary, Spin, Potts    -theta x                        theta
    Gaussian, ReLU         |gamma| x^2 / 2 - theta x       theta, gamma;  ReLU: x >= 0
    dReLU                  the same on each side of zero   theta+, theta-, gamma+, gamma-
    pReLU                  theta, gamma, Delta, eta:       gamma+- = gamma / (1 +- eta),
                                                           theta+- = theta +- Delta / (1 +- eta)
    xReLU                  theta, gamma, Delta, xi:        pReLU of eta = xi / (1 + |xi|)
    nsReLU                 theta, Delta, xi:               xReLU of gamma = 1

and of the whole E = E(v) + E(h) - ((v - o_v) / s_v).w ((h - o_h) / s_h). With W = w / (s_v s_h) this is the
plain RBM of W whose fields are less by W o_h and W^T o_v, with a constant -o_v.W o_h of E, which is kept:
log Z is that of the package.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from annealz.core.arrays import on_device, real_array
from annealz.core.rectified_units import DReLUUnits, ReLUUnits
from annealz.core.units import GaussianUnits
from annealz.io.reading import listed, shown
from annealz.models.abstract import AbstractModel
from annealz.models.layered import SoftmaxRBM
from annealz.models.layered_rbm import LayeredRBM
from annealz.models.rbm import RBM

HEADER = "rbm_hdf5_file_format_version"
_VERSION = "1.0.0"
_RBM_TYPES = ("RBM", "CenteredRBM", "StandardizedRBM")
_NAMES = {"Binary": "binary", "Spin": "spin", "Potts": "softmax", "PottsGumbel": "softmax"}
_COUNTS = {**dict.fromkeys(_NAMES, 1), "Gaussian": 2, "ReLU": 2, "nsReLU": 3}  # parameters; else 4
_VISIBLE = (*_NAMES, "Gaussian")
_HIDDEN = ("Binary", "Spin", "Gaussian", "ReLU", "dReLU", "pReLU", "xReLU", "nsReLU")


def model_of_julia(contents: Mapping[str, Any]) -> AbstractModel:
    """Return the model of the arrays and texts of a file."""
    version = contents.get(HEADER)
    if version != _VERSION:
        raise ValueError(
            f"it is a file of RestrictedBoltzmannMachines.jl in format {shown(version)}: format {_VERSION} "
            "is read."
        )
    rbm_type = _text(contents, "rbm_type", _RBM_TYPES)
    visible_type, visible, *visible_frame = _layer(contents, "visible", _VISIBLE, rbm_type)
    hidden_type, hidden, *hidden_frame = _layer(contents, "hidden", _HIDDEN, rbm_type)
    shape = (*hidden.shape[:-1], *visible.shape[:-1])
    (offset_v, scale_v), (offset_h, scale_h) = visible_frame, hidden_frame
    weights = _array(contents, "weights", shape).reshape(offset_h.size, offset_v.size)
    weights = weights / scale_h[:, None] / scale_v
    constant = float(offset_h @ weights @ offset_v)
    hidden_bias, hidden_units = _units(hidden_type, hidden.reshape(-1, hidden.shape[-1]))
    visible_bias, units = _units(visible_type, visible.reshape(-1, visible.shape[-1]))
    hidden_bias, visible_bias = hidden_bias - weights @ offset_v, visible_bias - offset_h @ weights
    if units == "softmax":
        visible_bias = visible_bias.reshape(-1, visible.shape[-2])
        weights = weights.reshape(len(weights), *visible_bias.shape)
    if hidden_units == "binary" and constant == 0 and units in ("binary", "softmax"):
        made = RBM.checked if units == "binary" else SoftmaxRBM
        return made(weights, hidden_bias, visible_bias)
    return LayeredRBM(weights, hidden_bias, visible_bias, units, hidden_units, offset=constant)


def _layer(contents: Mapping[str, Any], layer: str, types: tuple[str, ...], rbm_type: str):
    """Return the type of a layer, its parameters (units..., parameters), offsets and scales."""
    kind, name = _text(contents, f"{layer}_type", types), f"{layer}_par"
    par, count = _array(contents, name), _COUNTS.get(kind, 4)
    axes = 3 if _NAMES.get(kind) == "softmax" else 2
    if par.ndim < axes or par.shape[-1] != count or 0 in par.shape:
        raise ValueError(
            f"{name} of {kind} units must have {count} parameters for each, the last axis in HDF5, got "
            f"shape {par.shape}."
        )
    shape = par.shape[:-1]
    offset, scale = np.zeros(shape), np.ones(shape)
    if rbm_type != "RBM":
        offset = _array(contents, f"offset_{layer[0]}", shape)
    if rbm_type == "StandardizedRBM":
        scale = _array(contents, f"scale_{layer[0]}", shape)
    if not scale.all():
        raise ValueError(f"scale_{layer[0]} must not hold zeros.")
    return kind, par, offset.ravel(), scale.ravel()


def _units(kind: str, par: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the bias of a layer, and its units by name or themselves."""
    if kind in _NAMES:
        return par[:, 0], _NAMES[kind]
    if kind in ("Gaussian", "ReLU"):
        units = GaussianUnits if kind == "Gaussian" else ReLUUnits
        return par[:, 0], units(on_device(_width(par[:, 1])))
    if kind == "nsReLU":
        par = np.insert(par, 1, 1.0, axis=1)
    if kind in ("xReLU", "nsReLU"):
        par = np.column_stack([par[:, :3], par[:, 3] / (1 + np.abs(par[:, 3]))])
    if kind != "dReLU":
        theta, gamma, delta, eta = par.T
        if not (np.abs(eta) < 1).all():
            raise ValueError("eta of pReLU units must lie between -1 and 1.")
        above, below = theta + delta / (1 + eta), theta - delta / (1 - eta)
        par = np.column_stack([above, below, gamma / (1 + eta), gamma / (1 - eta)])
    above, below, high, low = par.T
    sides = (above, below, _width(high), _width(low))
    return np.zeros(len(par)), DReLUUnits(*(on_device(side) for side in sides))


def _width(gamma: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt |gamma|."""
    if not np.abs(gamma).all():
        raise ValueError("gamma of a layer must not be zero.")
    return np.abs(gamma) ** -0.5


def _text(contents: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = contents.get(name)
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {shown(value)}.")
    return value


def _array(
    contents: Mapping[str, Any], name: str, shape: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return an array in float64, of this shape if one is given."""
    array = contents.get(name)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"it lacks {name}: it holds {listed(contents)}.")
    real_array(name, array)
    if shape is not None and array.shape != shape:
        raise ValueError(
            f"{name} must have shape {shape} by the parameters of the layers (axes as HDF5 has them), got "
            f"{array.shape}."
        )
    return np.asarray(array, np.float64)
