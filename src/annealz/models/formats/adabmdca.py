"""Potts models as text, as adabmDCA writes them: a line for every coupling and every field.

    J i j a b value         of sites i < j, numbered from 0, in the states a and b
    h i a value             of site i in the state a

    log p*(x) = sum_{i<j} J_ij(x_i, x_j) + sum_i h_i(x_i)

States are letters, or numbers from 0 as in files of before version 2. Couplings that were pruned are left
out and are zero; every field is there. The letters of the fields are the alphabet: those of proteins, RNA
and DNA come in the order of adabmDCA, any others in the order in which the file names them first. Lines
that begin with # are comments. A coupling that is given twice is refused, since programs differ in what
they make of both triangles: some take the sum, some the last one.

A file is read in pieces and never as a whole: a protein of 100 sites has two million lines.
"""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from annealz.io.reading import Budget, Refusal, listed, open_regular, shown
from annealz.models.potts import Potts

__all__ = ["ALPHABETS", "is_adabmdca", "load_adabmdca"]

ALPHABETS = {"protein": "-ACDEFGHIKLMNPQRSTVWY", "rna": "-ACGU", "dna": "-ACGT"}

_HEAD = re.compile(rb"\s*(#[^\n]*\n\s*)*(J\s+\d+\s+\d+(\s+\S+){3}|h\s+\d+(\s+\S+){2})\s")
_PIECE, _LONGEST_WORD, _MOST_STATES = 4 * 2**20, 40, 256
_KINDS = {b"J": ("a coupling", "J i j a b value"), b"h": ("a field", "h i a value")}


def is_adabmdca(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return _HEAD.match(head) is not None


def load_adabmdca(path: Path) -> tuple[Potts, dict[str, Any]]:
    """The model of a file, and a record of its alphabet where states are letters."""
    lines = _Lines(path)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        budget = Budget(path)
        budget.take("lines", (size,), 1)
        rest = b""
        while piece := file.read(_PIECE):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            if len(rest) > _PIECE:
                raise Refusal(f"{path} holds a line of more than {_PIECE} bytes: it is damaged.")
            lines.add(whole + newline)
        lines.add(rest)
    sites, codes, values = lines.columns(b"h")
    if not len(values):
        raise Refusal(f"{path} holds no fields: every site and state needs a line h i a value.")
    seen, first = np.unique(codes[:, 0], return_index=True)
    named = [lines.states[code] for code in seen[np.argsort(first)]]  # in the order of the file
    names, order = _alphabet(path, named, lines.states)
    num_sites, num_states = int(sites.max()) + 1, len(names)
    fields = _fields(path, order[codes], sites[:, 0], values, num_sites, names)
    budget.take("couplings", (num_sites, num_states) * 2, 4)
    couplings = _couplings(path, lines, order, num_sites, names)
    try:
        model = Potts(couplings, fields=fields)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return model, {} if names[0].isdecimal() else {"alphabet": "".join(names)}


class _Lines:
    """The columns of the lines read so far: sites, states by number, values."""

    def __init__(self, path: Path):
        self.path = path
        self.states: list[str] = []
        self.number = 0
        self._codes: dict[bytes, int] = {}
        self._parts: dict[bytes, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
            b"J": [],
            b"h": [],
        }

    def add(self, piece: bytes) -> None:
        """Whole lines."""
        lines = piece.split(b"\n")
        kinds: dict[bytes, list[bytes]] = {b"J": [], b"h": []}
        for at, line in enumerate(lines, self.number + 1):
            kind = line.lstrip()[:1]
            if kind in kinds:
                kinds[kind].append(line)
            elif kind not in (b"", b"#"):
                raise self._refusal(at, line)
        for kind, width in ((b"J", 6), (b"h", 4)):
            if kinds[kind]:
                words = b"\n".join(kinds[kind]).split()
                is_regular = len(words) == width * len(kinds[kind])
                if not is_regular or not all(word == kind for word in words[::width]):
                    self._find(lines, kind, width)
                self._parts[kind].append(self._columns(words, kind, width, lines))
        self.number += max(len(lines) - 1, 0)

    def columns(self, kind: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sites (lines, 1 or 2), states (lines, 1 or 2) by their numbers in `states`, and values."""
        parts = self._parts[kind]
        count = 2 if kind == b"J" else 1
        if not parts:
            nothing = np.zeros((0, count), np.int64)
            return nothing, nothing, np.zeros(0)
        sites, states, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        return sites, states, values

    def _columns(self, words: list[bytes], kind: bytes, width: int, lines: list[bytes]):
        longest = max(map(len, words))
        if longest > _LONGEST_WORD:
            raise Refusal(f"{self.path} holds a word of {longest} letters: it is damaged.")
        count = (width - 2) // 2
        try:
            sites = np.stack(
                [np.array(words[1 + k :: width]).astype(np.int32) for k in range(count)], 1
            )
            values = np.array(words[width - 1 :: width]).astype(np.float64)
        except (ValueError, OverflowError):
            raise self._bad_number(lines, kind, width) from None
        if (sites < 0).any() or not np.isfinite(values).all():
            raise self._bad_number(lines, kind, width)
        states = np.stack([self._coded(words[1 + count + k :: width]) for k in range(count)], 1)
        return sites, states, values

    def _coded(self, words: list[bytes]) -> np.ndarray:
        found, which = np.unique(np.array(words), return_inverse=True)
        for word in found.tolist():
            if word not in self._codes:
                self._codes[word] = len(self._codes)
                self.states.append(word.decode(errors="backslashreplace"))
        if len(self._codes) > _MOST_STATES:
            raise Refusal(
                f"{self.path} holds more than {_MOST_STATES} states: it is damaged or of another kind."
            )
        return np.array([self._codes[word] for word in found.tolist()], np.int16)[which.ravel()]

    def _find(self, lines: list[bytes], kind: bytes, width: int) -> None:
        """Refuse the first line of this kind with another number of words."""
        for at, line in enumerate(lines, self.number + 1):
            words = line.split()
            if words and words[0][:1] == kind and (len(words) != width or words[0] != kind):
                raise self._refusal(at, line)

    def _bad_number(self, lines: list[bytes], kind: bytes, width: int) -> Refusal:
        for at, line in enumerate(lines, self.number + 1):
            words = line.split()
            if words[:1] == [kind] and not _has_numbers(words, width):
                return self._refusal(at, line, ", sites as whole numbers from 0 and a finite value")
        return Refusal(f"{self.path} is damaged: its numbers cannot be read.")

    def _refusal(self, at: int, line: bytes, rest: str = "") -> Refusal:
        text = line.decode(errors="backslashreplace").strip()
        known = _KINDS.get(line.lstrip()[:1])
        wanted = (
            f"{known[0]} is written {known[1]}{rest}"
            if known
            else " and ".join(f"{what} is written {how}" for what, how in _KINDS.values())
        )
        return Refusal(f"{self.path}, line {at}: {wanted}, got {shown(text)!r}.")


def _has_numbers(words: list[bytes], width: int) -> bool:
    try:
        sites = [int(word) for word in words[1 : width // 2]]
        return all(0 <= site < 2**31 for site in sites) and bool(np.isfinite(float(words[-1])))
    except ValueError:
        return False


def _alphabet(path: Path, found: list[str], states: list[str]) -> tuple[list[str], np.ndarray]:
    """The states with fields in order, and the place of each of `states` there, -1 where it has none."""
    if all(state.isdecimal() and state.isascii() for state in found):
        names = [str(k) for k in range(len(found))]
        if sorted(found) != sorted(names):
            raise Refusal(
                f"{path}: states must be the numbers from 0 to {len(found) - 1}, got "
                f"{listed(set(found) - set(names))} among {len(found)}."
            )
    elif all(len(state) == 1 for state in found):
        known = (letters for letters in ALPHABETS.values() if set(letters) == set(found))
        names = list(next(known, found))
    else:
        wrong = [state for state in found if len(state) != 1 and not state.isdecimal()]
        raise Refusal(
            f"{path}: states must be single letters, or all of them numbers, got "
            f"{listed(wrong or found)}."
        )
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(state, -1) for state in states])


def _fields(path: Path, places, sites, values, num_sites: int, names: list[str]) -> np.ndarray:
    """(sites, states), each given once."""
    num_states = len(names)
    if (
        num_sites * num_states > 2 * len(values) + num_states
    ):  # before anything of that size is made
        raise Refusal(
            f"{path} has fields of {num_sites} sites and {num_states} states, which are "
            f"{num_sites * num_states}, and holds {len(values)}: some are missing."
        )
    counts = np.bincount(sites * num_states + places[:, 0], minlength=num_sites * num_states)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        site, state = divmod(int(wrong[0]), num_states)
        what = "no field" if counts[wrong[0]] == 0 else f"{counts[wrong[0]]} fields"
        raise Refusal(
            f"{path} holds {what} of site {site} in state {shown(names[state])}: every site needs one for "
            f"each of its {num_states} states, {shown(''.join(names))}."
        )
    fields = np.zeros(num_sites * num_states)
    fields[sites * num_states + places[:, 0]] = values
    return fields.reshape(num_sites, num_states)


def _couplings(path: Path, lines: _Lines, order, num_sites: int, names: list[str]) -> np.ndarray:
    """(sites, states, sites, states), both triangles."""
    sites, codes, values = lines.columns(b"J")
    places = order[codes]
    if (places < 0).any():
        unknown = {lines.states[code] for code in np.unique(codes[places < 0])}
        raise Refusal(
            f"{path} holds couplings in the states {listed(unknown)}, which have no field: its alphabet is "
            f"{shown(''.join(names))}."
        )
    wrong = (sites >= num_sites).any(1) | (sites[:, 0] == sites[:, 1])
    if wrong.any():
        i, j = sites[wrong.argmax()].tolist()
        why = "a site with itself" if i == j else f"a site that has no field, of {num_sites} sites"
        raise Refusal(f"{path} holds a coupling J {i} {j}, with {why}.")
    size = (num_sites, len(names)) * 2
    first = np.where(sites[:, :1] < sites[:, 1:], [[0, 1]], [[1, 0]])  # the lower site first
    sites, places = (np.take_along_axis(part, first, 1) for part in (sites, places))
    where = np.ravel_multi_index((sites[:, 0], places[:, 0], sites[:, 1], places[:, 1]), size)
    found, counts = np.unique(where, return_counts=True)
    if found.size < where.size:
        i, a, j, b = (int(k) for k in np.unravel_index(found[counts.argmax()], size))
        raise Refusal(
            f"{path} holds the coupling J {i} {j} {names[a]} {names[b]} twice: give each pair once, i < j."
        )
    couplings = np.zeros(size, np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        couplings.reshape(-1)[where] = values.astype(np.float32)
    return couplings + np.moveaxis(couplings, (2, 3), (0, 1))
