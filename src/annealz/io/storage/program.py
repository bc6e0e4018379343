"""The identity of a function that JAX traces: SHA-256 of its program, of the constants in it, and of
the functions that it calls on the host.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from annealz.io.storage.fingerprint import fingerprint

__all__ = ["program_digest"]


def program_digest(words: str, *programs: Any) -> str:
    """Hexadecimal SHA-256 of these words and of programs that `jax.make_jaxpr` made."""
    hasher = hashlib.sha256()
    for program in programs:
        text = re.sub(r"0x[0-9a-f]+", "", str(program.jaxpr))
        hasher.update(f"{words} {text}".encode())
        for constant in _constants(program):
            if callable(constant):
                hasher.update(fingerprint(constant).encode())
                continue
            array = np.asarray(constant)
            hasher.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
    return hasher.hexdigest()


def _constants(program: Any) -> Iterator[Any]:
    """Those of a program and of the programs inside it."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        called = getattr(equation.params.get("callback"), "callback_func", None)
        if called is not None:
            yield called
        for node in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(node):
                yield from _constants(node)


def _is_program(node: Any) -> bool:
    return hasattr(node, "eqns") or hasattr(node, "jaxpr")
