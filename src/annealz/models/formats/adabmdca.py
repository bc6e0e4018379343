"""Potts models as text, as adabmDCA writes them: a line for every coupling and every field.

    J i j a b value         of sites i < j, numbered from 0, in the states a and b
    h i a value             of site i in the state a

    log p*(x) = sum_{i<j} J_ij(x_i, x_j) + sum_i h_i(x_i)

States are letters, or numbers from 0 as in files of before version 2. Couplings that were pruned are left
out and are zero; every field is there. The letters of the fields are the alphabet: those of proteins, RNA
and DNA come in the order of adabmDCA, any others in the order in which the file names them first. Lines
that begin with # are comments. A coupling that is given twice is refused, since programs differ in what
they make of both triangles: some take the sum, some the last one.
"""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from annealz.io.reading import Budget, listed, open_regular, shown
from annealz.models.potts import Potts

ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "rna": "-ACGU", "dna": "-ACGT"}

_HEAD = re.compile(rb"\s*(#[^\n]*\n\s*)*(J\s+\d+\s+\d+(\s+\S+){3}|h\s+\d+(\s+\S+){2})\s")
_SITE, _STATE, _VALUE = (
    rb"\s+\d{1,9}",
    rb"\s+\S{1,40}",
    rb"\s+[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?",
)
_LINE = re.compile(rb"\s*(J%b%b|h%b%b)%b\s*" % (_SITE * 2, _STATE * 2, _SITE, _STATE, _VALUE))
_COUPLING = np.dtype([("kind", "S1"), ("sites", "i8", 2), ("states", "S40", 2), ("value", "f8")])
_FIELD = np.dtype([("kind", "S1"), ("sites", "i8", 1), ("states", "S40", 1), ("value", "f8")])
_MOST_STATES, _MOST_LETTERS = 256, 2**16


def is_adabmdca(head: bytes) -> bool:
    """Check whether a file that begins so is one."""
    return _HEAD.match(head) is not None


def load_adabmdca(path: Path) -> tuple[Potts, dict[str, Any]]:
    """Return the model of a file, and a record of its alphabet where states are letters."""
    budget, lines = Budget(path), []
    with open_regular(path) as file:
        budget.take("lines", (os.fstat(file.fileno()).st_size,), 1)
        couplings = _columns(_couplings(file, lines), _COUPLING)
    if not lines:
        raise ValueError("it holds no fields: every site and state needs a line h i a value.")
    fields = _columns(iter(lines), _FIELD)
    names = _alphabet(fields["states"][:, 0])
    shape = int(fields["sites"].max()) + 1, len(names)
    biases = _fields(fields, names, shape)
    budget.take("couplings", shape * 2, 4)
    model = Potts(_table(couplings, names, shape), fields=biases)
    return model, {} if names[0].isdecimal() else {"alphabet": "".join(names)}


def _columns(lines: Iterator[bytes], kind: np.dtype) -> np.ndarray:
    first = next(lines, None)
    if first is None:  # NumPy warns of an empty file
        return np.zeros(0, kind)
    return np.loadtxt(itertools.chain([first], lines), kind, comments=None, ndmin=1)


def _couplings(file: BinaryIO, fields: list[bytes]) -> Iterator[bytes]:
    """Yield the lines of couplings, and keep those of fields."""
    number = 0
    while line := file.readline(_MOST_LETTERS):
        number += 1
        if _LINE.fullmatch(line):
            if line.lstrip().startswith(b"J"):
                yield line
            else:
                fields.append(line)
        elif line.strip() and not line.lstrip().startswith(b"#"):
            text = shown(line.decode(errors="backslashreplace").strip())
            raise ValueError(
                f"line {number}: a coupling is written J i j a b value and a field h i a value, sites as "
                f"whole numbers from 0 and a finite value, got {text!r}."
            )


def _alphabet(states: np.ndarray) -> list[str]:
    """Return the states with fields in order."""
    seen, first = np.unique(states, return_index=True)
    found = [state.decode(errors="backslashreplace") for state in seen[np.argsort(first)]]
    if len(found) > _MOST_STATES:
        raise ValueError(
            f"it holds more than {_MOST_STATES} states: it is damaged or of another kind."
        )
    if all(state.isdecimal() and state.isascii() for state in found):
        names = [str(k) for k in range(len(found))]
        if sorted(found) != sorted(names):
            raise ValueError(
                f"states must be the numbers from 0 to {len(found) - 1}, got "
                f"{listed(set(found) - set(names))} among {len(found)}."
            )
        return names
    wrong = [state for state in found if len(state) != 1]
    if wrong:
        raise ValueError(
            f"states must be single letters, or all of them numbers, got {listed(wrong)}."
        )
    known = (letters for letters in ALPHABETS.values() if set(letters) == set(found))
    return list(next(known, found))


def _places(states: np.ndarray, names: list[str]) -> np.ndarray:
    """Return the place of every state in the alphabet."""
    kinds, which = np.unique(states, return_inverse=True)
    places = {name.encode(): place for place, name in enumerate(names)}
    unknown = [kind for kind in kinds.tolist() if kind not in places]
    if unknown:
        letters = listed(kind.decode(errors="backslashreplace") for kind in unknown)
        raise ValueError(
            f"it holds couplings in the states {letters}, which have no field: "
            f"its alphabet is {shown(''.join(names))}."
        )
    return np.array([places[kind] for kind in kinds.tolist()], np.int64)[which].reshape(
        states.shape
    )


def _fields(rows: np.ndarray, names: list[str], shape: tuple[int, int]) -> np.ndarray:
    """Return (sites, states), each given once."""
    size = shape[0] * shape[1]
    if size > 2 * len(rows) + shape[1]:  # before anything of that size is made
        raise ValueError(
            f"it has fields of {shape[0]} sites and {shape[1]} states, which are {size}, and holds "
            f"{len(rows)}: some are missing."
        )
    where = rows["sites"][:, 0] * shape[1] + _places(rows["states"][:, 0], names)
    counts = np.bincount(where, minlength=size)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        site, state = divmod(int(wrong[0]), shape[1])
        what = f"{counts[wrong[0]]} fields" if counts[wrong[0]] else "no field"
        raise ValueError(
            f"it holds {what} of site {site} in state {shown(names[state])}: every site needs one for "
            f"each of its {shape[1]} states, {shown(''.join(names))}."
        )
    fields = np.zeros(size)
    fields[where] = rows["value"]
    return fields.reshape(shape)


def _table(rows: np.ndarray, names: list[str], shape: tuple[int, int]) -> np.ndarray:
    """Return (sites, states, sites, states), both triangles."""
    sites, places = rows["sites"], _places(rows["states"], names)
    wrong = (sites >= shape[0]).any(1) | (sites[:, 0] == sites[:, 1])
    if wrong.any():
        i, j = sites[wrong.argmax()].tolist()
        why = "a site with itself" if i == j else f"a site that has no field, of {shape[0]} sites"
        raise ValueError(f"it holds a coupling J {i} {j}, with {why}.")
    order = np.where(sites[:, :1] < sites[:, 1:], [[0, 1]], [[1, 0]])  # the lower site first
    (i, j), (a, b) = (np.take_along_axis(part, order, 1).T for part in (sites, places))
    where = np.ravel_multi_index((i, a, j, b), shape * 2)
    found, counts = np.unique(where, return_counts=True)
    if found.size < where.size:
        i, a, j, b = (int(k) for k in np.unravel_index(found[counts.argmax()], shape * 2))
        raise ValueError(
            f"it holds the coupling J {i} {j} {names[a]} {names[b]} twice: give each pair once, i < j."
        )
    table = np.zeros(shape * 2, np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        table.reshape(-1)[where] = rows["value"].astype(np.float32)
    return table + np.moveaxis(table, (2, 3), (0, 1))
