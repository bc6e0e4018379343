"""A function with copies of the NumPy arrays that it reads.

JAX keeps what it made of a NumPy array for as long as a program uses it, and does not ask whether float64
was on: a program in float64 that reads the same array object as a program in float32 gets its float32
copy, or the other way round (seen in JAX 0.10.2). Arrays of its own keep the two apart. To copy the
constants of a program that was traced would be too late: they are those of the other precision already.

Looked through are closures, defaults, globals of users' modules, partials, methods, containers and the
attributes of objects.
"""

import copy
import functools
import operator
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

_LIBRARIES = {"annealz", "equinox", "jax", "jaxlib", "numpy", "numpyro", "pymc", "scipy"}
_JITTED = type(jax.jit(lambda: None))
_PLAIN = str | bytes | bool | int | float | complex | type | ModuleType | jax.Array | np.generic

_Rebuild = Callable[[Sequence[Any]], Any]


def with_own_arrays(function: Any) -> Any:
    """Return the same function, of copies of its arrays; itself where it reads none."""
    return _Copier().copied(function)


class _Copier:
    """Copies of what was met, by identity, so that shared and circular references stay so."""

    def __init__(self):
        self.made: dict[int, Any] = {}
        self.kept: list[Any] = []  # so that no identity is used twice

    def copied(self, thing: Any) -> Any:
        if thing is None or isinstance(thing, _PLAIN):
            return thing
        if id(thing) not in self.made:
            self.kept.append(thing)
            self.made[id(thing)] = thing  # for those that refer to themselves
            self.made[id(thing)] = self._new(thing)
        return self.made[id(thing)]

    def _new(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray):
            return thing.copy()
        old, rebuild = _parts(thing)
        new = [self.copied(part) for part in old]
        return thing if all(map(operator.is_, new, old)) else rebuild(new)


def _parts(thing: Any) -> tuple[Sequence[Any], _Rebuild]:
    """Return what a thing consists of, and what makes it of other parts."""
    if isinstance(thing, FunctionType):
        return _parts_of_function(thing)
    if isinstance(thing, _JITTED):
        wrapped = getattr(thing, "__wrapped__", None)
        return [wrapped], lambda new: new[0]
    if isinstance(thing, functools.partial):
        kind = type(thing)
        return [thing.func, thing.args, thing.keywords], lambda new: kind(new[0], *new[1], **new[2])
    if isinstance(thing, MethodType):
        return [thing.__self__], lambda new: MethodType(thing.__func__, new[0])
    if type(thing) in (list, tuple, set):
        return list(thing), type(thing)
    if type(thing) is dict:
        return list(thing.values()), lambda new: dict(zip(thing, new, strict=True))
    held = getattr(thing, "__dict__", None) or {}
    return list(held.values()), lambda new: _with_attributes(
        thing, dict(zip(held, new, strict=True))
    )


def _parts_of_function(function: FunctionType) -> tuple[Sequence[Any], _Rebuild]:
    cells, there = function.__closure__ or (), function.__globals__
    contents = [_content(cell) for cell in cells]
    is_users = (function.__module__ or "").partition(".")[0] not in _LIBRARIES
    read = {name: there[name] for name in _names(function.__code__) if is_users and name in there}

    def rebuild(new: Sequence[Any]) -> FunctionType:
        inside, defaults, keywords, globals_ = new
        closure = tuple(
            cell if one is other else CellType(one)
            for cell, one, other in zip(cells, inside, contents, strict=True)
        )
        where = there if globals_ is read else {**there, **globals_}
        made = FunctionType(function.__code__, where, function.__name__, defaults, closure)
        made.__kwdefaults__ = keywords
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        return made

    return [contents, function.__defaults__, function.__kwdefaults__, read], rebuild


def _with_attributes(thing: Any, attributes: dict[str, Any]) -> Any:
    """Return a copy with these attributes, or itself where it cannot have them."""
    try:
        new = copy.copy(thing)
        for name, value in attributes.items():
            if value is not thing.__dict__[name]:
                object.__setattr__(new, name, value)
    except (AttributeError, TypeError):
        return thing
    return new


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _names(code: CodeType) -> set[str]:
    """Return the names of globals that a function and those inside it may read."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
