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

from annealz.core.arrays import on_device
from annealz.core.rectified_units import DReLUUnits, ReLUUnits
from annealz.core.units import GaussianUnits
from annealz.io.reading import listed, shown
from annealz.models.abstract import AbstractModel
from annealz.models.layered_rbm import LayeredRBM
from annealz.models.rbm import RBM, real_array
from annealz.models.softmax_rbm import SoftmaxRBM

__all__ = ["HEADER", "model_of_julia"]

HEADER = "rbm_hdf5_file_format_version"
_VERSION = "1.0.0"
_RBM_TYPES = ("RBM", "CenteredRBM", "StandardizedRBM")
_PARAMETERS = {
    "Binary": 1,
    "Spin": 1,
    "Potts": 1,
    "PottsGumbel": 1,
    "Gaussian": 2,
    "ReLU": 2,
    "dReLU": 4,
    "pReLU": 4,
    "xReLU": 4,
    "nsReLU": 3,
}
_VISIBLE = ("Binary", "Spin", "Potts", "PottsGumbel", "Gaussian")
_HIDDEN = ("Binary", "Spin", "Gaussian", "ReLU", "dReLU", "pReLU", "xReLU", "nsReLU")
_NAMES = {"Binary": "binary", "Spin": "spin", "Potts": "softmax", "PottsGumbel": "softmax"}


def model_of_julia(contents: Mapping[str, Any], where: object) -> AbstractModel:
    """The model of the arrays and texts of a file; a ValueError in one sentence."""
    version = contents.get(HEADER)
    if version != _VERSION:
        raise ValueError(
            f"{where} is a file of RestrictedBoltzmannMachines.jl in format {shown(version)}: format "
            f"{_VERSION} is read."
        )
    try:
        return _model(contents)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _model(contents: Mapping[str, Any]) -> AbstractModel:
    rbm_type = _text(contents, "rbm_type", _RBM_TYPES)
    visible_type = _text(contents, "visible_type", _VISIBLE)
    hidden_type = _text(contents, "hidden_type", _HIDDEN)
    visible_par = _layer(contents, "visible_par", visible_type)
    hidden_par = _layer(contents, "hidden_par", hidden_type)
    is_potts = _NAMES.get(visible_type) == "softmax"
    if is_potts and visible_par.ndim < 3:
        raise ValueError(
            f"visible_par of Potts units must be (units, states, 1), got {visible_par.shape}."
        )
    shape = (*hidden_par.shape[:-1], *visible_par.shape[:-1])
    weights = _array(contents, "weights")
    if weights.shape != shape:
        raise ValueError(
            f"weights must be (hidden, visible) = {shape} by the layers (axes as HDF5 has them), got "
            f"{weights.shape}."
        )
    count = hidden_par[..., 0].size
    weights = weights.reshape(count, -1)
    offsets = {
        name: np.zeros(par.shape[:-1])
        if rbm_type == "RBM"
        else _offset(contents, name, par.shape[:-1])
        for name, par in (("offset_v", visible_par), ("offset_h", hidden_par))
    }
    if rbm_type == "StandardizedRBM":
        scales = _scale(contents, "scale_h", hidden_par), _scale(contents, "scale_v", visible_par)
        weights = weights / scales[0][:, None] / scales[1]
    offset_v, offset_h = offsets["offset_v"].ravel(), offsets["offset_h"].ravel()
    visible = visible_par.reshape(-1, visible_par.shape[-1])
    hidden = hidden_par.reshape(count, -1)
    hidden_shift, visible_shift = -(weights @ offset_v), -(offset_h @ weights)
    constant = float(offset_h @ weights @ offset_v)
    visible_bias = visible[:, 0] + visible_shift
    hidden_bias, hidden_units = _units(hidden_type, hidden)
    hidden_bias = hidden_bias + hidden_shift
    units: Any = _NAMES.get(visible_type)
    if is_potts:
        states = visible_par.shape[-2]
        visible_bias = visible_bias.reshape(-1, states)
        weights = weights.reshape(count, -1, states)
    elif units is None:
        units = _units(visible_type, visible)[1]
    if hidden_type == "Binary" and constant == 0 and isinstance(units, str) and units != "spin":
        made = RBM.checked if units == "binary" else SoftmaxRBM
        return made(weights, hidden_bias, visible_bias)
    return LayeredRBM(weights, hidden_bias, visible_bias, units, hidden_units, offset=constant)


def _units(kind: str, par: np.ndarray) -> tuple[np.ndarray, Any]:
    """The bias of a layer, and its units by name or themselves."""
    if kind in _NAMES:
        return par[:, 0], _NAMES[kind]
    if kind in ("Gaussian", "ReLU"):
        made = GaussianUnits if kind == "Gaussian" else ReLUUnits
        return par[:, 0], made(on_device(_width(par[:, 1])))
    if kind == "dReLU":
        above, below, high, low = par.T
    else:
        if kind == "nsReLU":
            theta, delta, third = par.T
            gamma, eta = np.ones_like(theta), third / (1 + np.abs(third))
        else:
            theta, gamma, delta, third = par.T
            eta = third / (1 + np.abs(third)) if kind == "xReLU" else third
        if not (np.abs(eta) < 1).all():
            raise ValueError("eta of pReLU units must lie between -1 and 1.")
        high, low = gamma / (1 + eta), gamma / (1 - eta)
        above, below = theta + delta / (1 + eta), theta - delta / (1 - eta)
    sides = (above, below, _width(high), _width(low))
    return np.zeros(len(par)), DReLUUnits(*(on_device(side) for side in sides))


def _width(gamma: np.ndarray) -> np.ndarray:
    """1 / sqrt |gamma|."""
    if not np.abs(gamma).all():
        raise ValueError("gamma of a layer must not be zero.")
    return np.abs(gamma) ** -0.5


def _text(contents: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    found = contents.get(name)
    if found not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {shown(found)}.")
    return str(found)


def _array(contents: Mapping[str, Any], name: str) -> np.ndarray:
    if not isinstance(contents.get(name), np.ndarray):
        raise ValueError(f"it lacks {name}: it holds {listed(contents)}.")
    real_array(name, contents[name])
    return np.asarray(contents[name], np.float64)


def _layer(contents: Mapping[str, Any], name: str, kind: str) -> np.ndarray:
    """The parameters of a layer, (units..., parameters)."""
    par = _array(contents, name)
    if par.ndim < 2 or par.shape[-1] != _PARAMETERS[kind] or 0 in par.shape:
        raise ValueError(
            f"{name} of {kind} units must have {_PARAMETERS[kind]} parameters for each, the last axis in "
            f"HDF5, got shape {par.shape}."
        )
    return par


def _offset(contents: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> np.ndarray:
    found = _array(contents, name)
    if found.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, as its layer, got {found.shape}.")
    return found


def _scale(contents: Mapping[str, Any], name: str, par: np.ndarray) -> np.ndarray:
    found = _offset(contents, name, par.shape[:-1])
    if not found.all():
        raise ValueError(f"{name} must not hold zeros.")
    return found.ravel()
