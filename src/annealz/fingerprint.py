"""The identity of a pytree: SHA-256 of its structure, its arrays, and the code of functions in it.

Of a function names, instructions, constants and what it closes over count, and not where it lies, so that
another process comes to the same digest.
"""

import functools
import hashlib
from types import CodeType
from typing import Any

import jax
import numpy as np

__all__ = ["fingerprint"]


def fingerprint(tree: Any, words: str = "") -> str:
    """Hexadecimal SHA-256 of a pytree and these words."""
    leaves, structure = jax.tree.flatten(tree)
    hasher = hashlib.sha256(f"{words} {structure}".encode())
    for leaf in leaves:
        _hash(hasher, leaf)
    return hasher.hexdigest()


def _hash(hasher, leaf: Any) -> None:
    leaf = getattr(leaf, "__wrapped__", leaf)  # jitted functions
    if isinstance(leaf, jax.Array | np.ndarray):
        array = np.asarray(leaf)
        hasher.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
    elif isinstance(leaf, functools.partial):
        for part in (leaf.func, *leaf.args, *(x for item in leaf.keywords.items() for x in item)):
            _hash(hasher, part)
    elif hasattr(leaf, "__code__"):
        _hash_code(hasher, leaf.__code__)
        for cell in getattr(leaf, "__closure__", None) or ():
            for inner in jax.tree.leaves(cell.cell_contents):
                if inner is not leaf:  # a function that calls itself
                    _hash(hasher, inner)
    elif isinstance(leaf, str | bytes | bool | int | float | complex):
        hasher.update(repr(leaf).encode())
    else:
        hasher.update(getattr(leaf, "__qualname__", type(leaf).__qualname__).encode())


def _hash_code(hasher, code: CodeType) -> None:
    hasher.update(f"{code.co_qualname} {code.co_names}".encode() + code.co_code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _hash_code(hasher, constant)
        else:
            hasher.update(repr(constant).encode())
