"""The identity of a pytree: SHA-256 of its structure, its arrays, and the code of functions in it.

The identity of a function that JAX traces is that of its program, of the constants in it, and of the
functions that it calls on the host.

Of a function names, instructions, constants, defaults, what it closes over and what it reads of its module
count, and not where it lies, so that another process comes to the same digest. Of any other object its
class and its attributes do, or only `__fingerprint__` where its class has that property.
"""

import functools
import hashlib
import re
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

import jax
import numpy as np

from annealz.core.programs import programs_in

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # NumPy writes it in capitals


def fingerprint(tree: Any, words: str = "", structure: str | None = None) -> str:
    """Return the hexadecimal SHA-256 of a pytree and these words.

    `structure` replaces that of the tree, for a class that has more fields than its identity.
    """
    leaves, own = jax.tree.flatten(tree)
    written = _ADDRESS.sub("", str(own)) if structure is None else structure
    hasher = hashlib.sha256(f"{words} {written}".encode())
    seen: set[int] = set()
    for leaf in leaves:
        _hash(hasher, leaf, seen)
    return hasher.hexdigest()


def _hash(hasher, leaf: Any, seen: set[int]) -> None:
    leaf = getattr(leaf, "__wrapped__", leaf)  # jitted functions
    if isinstance(leaf, jax.Array | np.ndarray | np.generic):
        array = np.asarray(leaf)
        hasher.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
        return
    if isinstance(leaf, str | bytes | bool | int | float | complex | None):
        hasher.update(repr(leaf).encode())
        return
    if id(leaf) in seen:  # what refers to itself
        return
    seen.add(id(leaf))
    if hasattr(type(leaf), "__fingerprint__"):  # of what it is, where its attributes say too much
        _hash_all(hasher, (type(leaf).__qualname__, leaf.__fingerprint__), seen)
        return
    if isinstance(leaf, functools.partial):
        _hash_all(hasher, (leaf.func, leaf.args, sorted(leaf.keywords.items())), seen)
    elif hasattr(leaf, "__func__"):  # a method of an object
        _hash_all(hasher, (leaf.__func__, leaf.__self__), seen)
    elif hasattr(leaf, "__code__"):
        _hash_function(hasher, leaf, seen)
    elif isinstance(leaf, type | ModuleType | BuiltinFunctionType) or not hasattr(leaf, "__dict__"):
        name = getattr(leaf, "__qualname__", getattr(leaf, "__name__", None))
        hasher.update(_ADDRESS.sub("", name or repr(leaf)).encode())
    else:
        hasher.update(type(leaf).__qualname__.encode())
        _hash_all(hasher, sorted(vars(leaf).items()), seen)


def _hash_all(hasher, tree: Any, seen: set[int]) -> None:
    for leaf in jax.tree.leaves(tree, is_leaf=lambda node: node is None):
        _hash(hasher, leaf, seen)


def _hash_function(hasher, function: Any, seen: set[int]) -> None:
    code: CodeType = function.__code__
    _hash_code(hasher, code)
    _hash_all(hasher, (function.__defaults__, function.__kwdefaults__), seen)
    for cell in function.__closure__ or ():
        _hash_all(hasher, cell.cell_contents, seen)
    there = function.__globals__
    for name in code.co_names:
        value = there.get(name)
        if not isinstance(value, type | ModuleType):
            _hash_all(hasher, value, seen)


def _hash_code(hasher, code: CodeType) -> None:
    hasher.update(f"{code.co_qualname} {code.co_names}".encode() + code.co_code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _hash_code(hasher, constant)
        else:
            hasher.update(repr(constant).encode())


def program_digest(words: str, *programs: Any) -> str:
    """Return the hexadecimal SHA-256 of these words and of programs that `jax.make_jaxpr` made."""
    hasher = hashlib.sha256()
    for program in programs:
        text = re.sub(r"0x[0-9a-f]+", "", str(program.jaxpr))
        hasher.update(f"{words} {text}".encode())
        for constant in _constants(program):
            if callable(constant):
                hasher.update(fingerprint(constant).encode())
            else:
                _hash(hasher, np.asarray(constant), set())
    return hasher.hexdigest()


def _constants(program: Any) -> Iterator[Any]:
    """Yield the constants of a program and of the programs inside it."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        called = getattr(equation.params.get("callback"), "callback_func", None)
        if called is not None:
            yield called
        for inside in programs_in(equation):
            yield from _constants(inside)
