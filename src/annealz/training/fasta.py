"""Aligned sequences in FASTA: records of a line `>name` and lines of letters, all of one length.

The states of a unit are the places of its letters in an alphabet, counted from 0:

    protein   -ACDEFGHIKLMNPQRSTVWY   21 states        rna   -ACGU   5 states        dna   -ACGT   5 states

or any letters of the model's own, in the order of its states. Lower-case letters and dots, the insertions
of A2M and A3M files, are not columns of the alignment and must be removed before; other letters outside the
alphabet (B, X, Z, N) stand for no state. Both are refused with the name of the record.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annealz.io.reading import Budget, Refusal, open_regular, shown
from annealz.models.formats.adabmdca import ALPHABETS

_ENDINGS = (".fasta", ".fa", ".faa", ".fna", ".fas", ".afa", ".a2m", ".a3m")
_MARK = b">"
_LETTER_BYTES = 5  # of a letter: itself, and as float32


class Sequences(NamedTuple):
    """Records of a file."""

    names: tuple[str, ...]
    rows: np.ndarray
    """(records, columns), uint8: places in the alphabet."""
    alphabet: str


def is_fasta(path: str | Path) -> bool:
    """Check whether a file is one by its ending or by its first byte."""
    path = Path(path)
    if str(path).lower().removesuffix(".gz").endswith(_ENDINGS):
        return True
    if not path.is_file():
        return False
    with open_regular(path) as file:
        return file.read(1) == _MARK


def read_fasta(
    path: str | Path, num_states: int | None = None, alphabet: str | None = None
) -> Sequences:
    """Return the sequences of a file.

    Parameters
    ----------
    num_states : of the model, which the alphabet must have
    alphabet : protein, rna, dna, or the letters in the order of their states; by default that of 21 or 5
        states
    """
    names, sequences = _records(path)
    letters = b"".join(sequences)
    alphabet = _alphabet(alphabet, num_states, letters)
    places = np.full(256, 255, np.uint8)
    places[np.frombuffer(alphabet.encode(), np.uint8)] = np.arange(len(alphabet), dtype=np.uint8)
    found = places[np.frombuffer(letters, np.uint8)]
    lengths = np.array([len(sequence) for sequence in sequences])
    wrong = np.flatnonzero(found == 255)
    if wrong.size:
        starts = np.cumsum(lengths) - lengths
        record = int(np.searchsorted(starts, wrong[0], side="right")) - 1
        column = int(wrong[0] - starts[record]) + 1
        raise _unknown(path, names[record], chr(letters[wrong[0]]), column, alphabet)
    ragged = np.flatnonzero(lengths != lengths[0])
    if ragged.size:
        name, length = names[ragged[0]], lengths[ragged[0]]
        raise Refusal(
            f"{path} must hold aligned sequences of one length, got {length} letters in '{shown(name)}' "
            f"and {lengths[0]} in the first record: align them."
        )
    return Sequences(tuple(names), found.reshape(len(sequences), -1), alphabet)


def _records(path: str | Path) -> tuple[list[str], list[bytes]]:
    """Return names and letters of every record."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        Budget(path).take("its letters", (size,), _LETTER_BYTES)
        raw = file.read(size)
    if raw[:2] == b"\x1f\x8b":
        raise Refusal(f"{path} is compressed: unpack it first, with gunzip.")
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
    if not raw.strip():
        raise Refusal(f"{path} is empty.")
    if not raw.startswith(_MARK):
        raise Refusal(f"{path} is not a FASTA file: its first line must begin with >.")
    names, sequences = [], []
    for i, record in enumerate(raw[1:].replace(b"\r\n", b"\n").split(b"\n>"), 1):
        head, *lines = record.split(b"\n")
        words = head.decode("utf-8", "replace").split()
        names.append(words[0] if words else f"record {i}")
        sequences.append(b"".join(line.strip() for line in lines))
        if not sequences[-1]:
            raise Refusal(
                f"{path} is truncated or damaged: the record '{shown(names[-1])}' has no letters."
            )
    return names, sequences


def _alphabet(given: str | None, num_states: int | None, letters: bytes) -> str:
    """Return the letters in the order of their states, if they are as many as the model has."""
    if given is None:
        known = {21: "protein", 5: "dna" if b"T" in letters and b"U" not in letters else "rna"}
        if num_states not in known:
            raise ValueError(
                f"alphabet is missing: the model has {num_states} states per unit, so give their letters "
                "in order, such as -ACGU; protein (21 letters), rna and dna (5) are known by name."
            )
        given = known[num_states]
    alphabet = ALPHABETS.get(given.lower(), given)
    if len({*alphabet}) < len(alphabet) or not alphabet.isascii() or not alphabet.isprintable():
        raise ValueError(
            f"alphabet must be {', '.join(ALPHABETS)} or letters that differ, got '{shown(given)}'."
        )
    if " " in alphabet or ">" in alphabet:
        raise ValueError(f"alphabet must have neither blanks nor >, got '{shown(given)}'.")
    if num_states is not None and len(alphabet) != num_states:
        raise ValueError(
            f"alphabet must have a letter for each of the model's {num_states} states, got "
            f"{len(alphabet)}: {shown(alphabet)}."
        )
    return alphabet


def _unknown(path: str | Path, name: str, letter: str, column: int, alphabet: str) -> Refusal:
    where = f"{path} has the letter '{shown(letter)}' at place {column} of '{shown(name)}'"
    if letter == "." or letter.islower():
        return Refusal(
            f"{where}: dots and lower-case letters are insertions, as in A3M files; remove them with "
            f"sed '/^>/!s/[a-z.]//g', or write letters of the alignment as capitals."
        )
    return Refusal(
        f"{where}, which is not one of {alphabet}: leave the record out, or write a letter of these."
    )
