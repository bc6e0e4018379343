"""A function with copies of the NumPy arrays that it reads.

JAX keeps what it made of a NumPy array for as long as a program uses it, and does not ask whether float64
was on: a program in float64 that reads the same array object as a program in float32 gets its float32
copy, or the other way round (seen in JAX 0.10.2). Arrays of its own keep the two apart.

Looked through are closures, defaults, globals of users' modules, partials, methods, containers and the
attributes of objects.
"""

import copy
import functools
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

_LIBRARIES = {"annealz", "equinox", "jax", "jaxlib", "numpy", "numpyro", "pymc", "scipy"}
_JITTED = type(jax.jit(lambda: None))
_PLAIN = str | bytes | bool | int | float | complex | type | ModuleType | jax.Array | np.generic


def with_own_arrays(function: Any) -> Any:
    """The same function, of copies of its arrays; itself where it reads none."""
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
        if isinstance(thing, FunctionType):
            return self._function(thing)
        if isinstance(thing, _JITTED):
            wrapped = getattr(thing, "__wrapped__", None)
            inner = self.copied(wrapped)
            return thing if inner is wrapped else inner
        if isinstance(thing, functools.partial):
            before = (thing.func, thing.args, thing.keywords)
            after = [self.copied(part) for part in before]
            if _are_same(after, before):
                return thing
            return type(thing)(after[0], *after[1], **after[2])
        if isinstance(thing, MethodType):
            owner = self.copied(thing.__self__)
            return thing if owner is thing.__self__ else MethodType(thing.__func__, owner)
        if type(thing) in (list, tuple, set):
            items = [self.copied(item) for item in thing]
            return thing if _are_same(items, thing) else type(thing)(items)
        if type(thing) is dict:
            values = {key: self.copied(value) for key, value in thing.items()}
            return thing if _are_same(values.values(), thing.values()) else values
        return self._object(thing)

    def _object(self, thing: Any) -> Any:
        before = getattr(thing, "__dict__", None)
        if not before:
            return thing
        after = {name: self.copied(value) for name, value in before.items()}
        changed = {name: value for name, value in after.items() if value is not before[name]}
        if not changed:
            return thing
        try:
            new = copy.copy(thing)
            for name, value in changed.items():
                object.__setattr__(new, name, value)
        except (AttributeError, TypeError):
            return thing
        return new

    def _function(self, function: FunctionType) -> FunctionType:
        cells = function.__closure__ or ()
        contents = [_content(cell) for cell in cells]
        inside = [self.copied(content) for content in contents]
        defaults, keywords = (
            self.copied(function.__defaults__),
            self.copied(function.__kwdefaults__),
        )
        there = function.__globals__
        read = {}
        if (function.__module__ or "").partition(".")[0] not in _LIBRARIES:
            read = {name: there[name] for name in _names(function.__code__) if name in there}
        found = {name: self.copied(value) for name, value in read.items()}
        changed = {name: value for name, value in found.items() if value is not read[name]}
        is_same = defaults is function.__defaults__ and keywords is function.__kwdefaults__
        if not changed and is_same and _are_same(inside, contents):
            return function
        new = FunctionType(
            function.__code__,
            {**there, **changed} if changed else there,
            function.__name__,
            defaults,
            tuple(
                cell if one is other else CellType(one)
                for cell, one, other in zip(cells, inside, contents, strict=True)
            ),
        )
        new.__kwdefaults__ = keywords
        new.__qualname__, new.__module__ = function.__qualname__, function.__module__
        return new


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _names(code: CodeType) -> set[str]:
    """Names of globals that a function and those inside it may read."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _are_same(new: Any, old: Any) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))
