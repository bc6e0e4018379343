"""What can be written into a folder and read again by name: built-in models, bases and kernels.

A thing is stored as the name of its family, its arrays and its plain fields, and never as code. One that
holds a Python function, or is of a class that is not listed here, is not stored: it has to be given again
to resume its run.
"""

import dataclasses
import importlib
from types import UnionType
from typing import Any, Union, get_args, get_origin

import jax
import numpy as np

from annealz.core.arrays import on_device
from annealz.io.archive import real_numbers
from annealz.io.reading import shown
from annealz.io.records import Record, line, table, table_of, whole

STORED = Record(
    "what is stored",
    {"family": line, "plain": table, "lengths": table_of(whole), "parts": table},
)

FAMILIES = {
    "rbm": "annealz.models.rbm:RBM",
    "ising": "annealz.models.ising:Ising",
    "square-ising": "annealz.models.ising_lattice:SquareIsing",
    "binary-quadratic": "annealz.models.binary_quadratic:BinaryQuadratic",
    "potts": "annealz.models.potts:Potts",
    "factors": "annealz.models.factor_graph:FactorGraph",
    "dbm": "annealz.models.dbm:DBM",
    "gaussian-rbm": "annealz.models.layered:GaussianRBM",
    "softmax-rbm": "annealz.models.layered:SoftmaxRBM",
    "layered-rbm": "annealz.models.layered_rbm:LayeredRBM",
    "bernoulli": "annealz.bases.bernoulli:BernoulliBase",
    "categorical": "annealz.bases.categorical:CategoricalBase",
    "mixture": "annealz.bases.mixture:MixtureBase",
    "bernoulli-units": "annealz.core.units:BernoulliUnits",
    "softmax-units": "annealz.core.units:SoftmaxUnits",
    "mixed-units": "annealz.core.mixed_units:MixedUnits",
    "gaussian-units": "annealz.core.units:GaussianUnits",
    "relu-units": "annealz.core.rectified_units:ReLUUnits",
    "drelu-units": "annealz.core.rectified_units:DReLUUnits",
    "block-gibbs": "annealz.kernels.gibbs:BlockGibbs",
    "clusters": "annealz.kernels.clusters:Clusters",
    "colour-gibbs": "annealz.kernels.colours:ColourGibbs",
    "unit-gibbs": "annealz.kernels.unit_gibbs:UnitGibbs",
    "gradient-gibbs": "annealz.kernels.unit_gibbs:GradientGibbs",
    "gaussian": "annealz.bases.gaussian:GaussianBase",
    "gaussian-mixture": "annealz.bases.gaussian_mixture:GaussianMixtureBase",
    "warp": "annealz.bases.warped:Warp",
    "warped": "annealz.bases.warped:WarpedBase",
    "hmc": "annealz.kernels.hmc:HMC",
    "mala": "annealz.kernels.hmc:MALA",
    "random-walk": "annealz.kernels.hmc:RandomWalk",
    "hais": "annealz.kernels.hmc:HAIS",
    "tuning": "annealz.kernels.adaptation:Tuning",
}

_Plain = str | int | float | bool | None


def store(thing: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Its arrays and its record (family and plain fields), or None where it cannot be stored."""
    here = f"{type(thing).__module__}:{type(thing).__qualname__}"
    family = next((name for name, where in FAMILIES.items() if where == here), None)
    if family is None:
        return None
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    parts: dict[str, Any] = {}
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        if isinstance(value, jax.Array | np.ndarray):
            arrays[field.name] = np.asarray(value)
        elif isinstance(value, tuple) and all(isinstance(v, jax.Array) for v in value):
            arrays |= {f"{field.name}.{i}": np.asarray(v) for i, v in enumerate(value)}
            lengths[field.name] = len(value)
        elif isinstance(value, _Plain):
            plain[field.name] = value
        else:
            part = store(value)
            if part is None:
                return None
            arrays |= {f"{field.name}.{key}": array for key, array in part[0].items()}
            parts[field.name] = part[1]
    return arrays, {"family": family, "plain": plain, "lengths": lengths, "parts": parts}


def restore(arrays: dict[str, np.ndarray], record: dict[str, Any]) -> Any:
    """What was stored; a ValueError where a field is not what its class declares."""
    record = STORED.check(record)
    if record["family"] not in FAMILIES:
        raise ValueError(
            f"this version of annealz knows no {record['family']!r}: take a later one."
        )
    module, name = FAMILIES[record["family"]].split(":")
    kind = getattr(importlib.import_module(module), name)
    thing = object.__new__(kind)
    for field in dataclasses.fields(kind):
        if field.name in record["plain"]:
            value = record["plain"][field.name]
        elif field.name in record["lengths"]:
            count = min(record["lengths"][field.name], len(arrays) + 1)
            value = tuple(_array(arrays, f"{field.name}.{i}") for i in range(count))
        elif field.name in record["parts"]:
            start = f"{field.name}."
            own = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            value = restore(own, record["parts"][field.name])
        elif field.name not in arrays and field.default is not dataclasses.MISSING:
            value = field.default  # a field that is newer than the file
        else:
            value = _array(arrays, field.name)
        if not _fits(value, field.type):
            raise ValueError(
                f"{field.name} of the stored {record['family']} is damaged: got {_kind(value)}."
            )
        object.__setattr__(thing, field.name, value)
    return thing


def _array(arrays: dict[str, np.ndarray], name: str) -> jax.Array:
    stored = real_numbers(arrays, name, "what is stored")
    return on_device(stored, jax.dtypes.canonicalize_dtype(stored.dtype))


def _fits(value: Any, declared: Any) -> bool:
    """Whether a value is what the class declares of its field: kind, and axes of an array."""
    if get_origin(declared) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(declared))
    if get_origin(declared) is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(declared)[0]) for one in value)
    if declared in (int, float) and isinstance(value, bool):
        return False
    if declared is float:
        return isinstance(value, int | float) and abs(value) < float("inf")
    if declared is int:
        return isinstance(value, int) and abs(value) < 2**31
    return isinstance(value, declared)


def _kind(value: Any) -> str:
    return f"shape {value.shape}" if isinstance(value, jax.Array) else shown(repr(value))
