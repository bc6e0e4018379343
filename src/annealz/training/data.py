"""Data by name: `mnist` (its training split), `mnist-test`, or a file; what it was, to be read again.

A file is .npy, .npz with one array, or IDX; its bytes become intensities in [0, 1]. The digest is that of
the values as training sees them, float32 in [0, 1] with their shape.

Aligned sequences come in FASTA: records of a line `>name` and lines of letters, all of one length.
The states of a unit are the places of its letters in an alphabet, counted from 0:

    protein   -ACDEFGHIKLMNPQRSTVWY   21 states        rna   -ACGU   5 states        dna   -ACGT   5 states

or any letters of the model's own, in the order of its states. Lower-case letters and dots, the insertions
of A2M and A3M files, are not columns of the alignment and must be removed before; other letters outside the
alphabet (B, X, Z, N) stand for no state. Both are refused with the name of the record.
"""

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.arrays import on_device
from annealz.core.errors import InputError
from annealz.core.random import Stream, derive_seed
from annealz.io.archive import load_archive, load_npy
from annealz.io.reading import Budget, Refusal, open_regular, shown
from annealz.io.records import TypedRecord, line, one_of, optional, text
from annealz.models.formats.adabmdca import ALPHABETS
from annealz.training.mnist import load_mnist as load_mnist
from annealz.training.mnist import read_idx as read_idx

_ROWS = 4096  # at a time
_ITEM = 4  # bytes of a value as float32
_ENDINGS = (".fasta", ".fa", ".faa", ".fna", ".fas", ".afa", ".a2m", ".a3m")
_MARK = b">"
_LETTER_BYTES = 5  # of a letter: itself, and as float32
_SPLITS = {"mnist": "train", "mnist-train": "train", "mnist-test": "test"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSource(TypedRecord):
    """Where rows of data come from."""

    what: ClassVar[str] = "the record of data"

    name: Annotated[str, line]
    kind: Annotated[str, one_of("mnist", "file")]
    path: Annotated[str | None, optional(text)] = None
    """The file, or the folder of the MNIST files; None for MNIST from the user's cache."""

    @classmethod
    def of(cls, data: str | Path, mnist: str | Path | None = None) -> Self:
        """Return the source of a name or a file; `mnist` is the folder of the MNIST files."""
        if str(data) in _SPLITS:
            folder = mnist or os.environ.get("ANNEALZ_MNIST")
            path = None if folder is None else str(Path(folder).absolute())
            return cls(name=str(data), kind="mnist", path=path)
        if mnist is not None:
            raise InputError(
                "mnist", f"is for the data set mnist, and the data are {data}: leave one out"
            )
        file = Path(data).absolute()
        return cls(name=file.name, kind="file", path=str(file))

    def rows(self) -> np.ndarray:
        """Return the rows (rows, units), float32 in [0, 1]."""
        if self.kind == "mnist":
            return load_mnist(self.path, _SPLITS[self.name])
        assert self.path is not None
        return check_rows(read_data(self.path), self.path)

    def examples(self) -> np.ndarray:
        """Return the rows as zeros and ones: intensities are drawn once, always by the same coins."""
        return binarise(self.rows(), derive_seed(0, "likelihood"))


def read_data(path: str | Path) -> np.ndarray:
    """Return rows of data (rows, units), or means (units,), as float32."""
    array = read_array(path)
    scale = 255 if array.dtype == np.uint8 and array.max(initial=0) > 1 else 1
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        array = array.astype(np.float32)
        array /= scale
    return array.reshape(len(array), int(np.prod(array.shape[1:]))) if array.ndim > 2 else array


def read_array(path: str | Path) -> np.ndarray:
    """Return the numbers of a file as they are."""
    path = Path(path)
    if not path.exists() or path.is_dir():
        what = f"{path} is a folder: give a file." if path.is_dir() else f"no data file {path}."
        raise ValueError(what)
    if path.suffix == ".npz":
        arrays, _ = load_archive(path, need_checksum=False)
        if len(arrays) != 1:
            raise ValueError(f"{path} holds {len(arrays)} arrays: give a file of one.")
        (array,) = arrays.values()
    elif path.suffix == ".npy":
        array = load_npy(path)
    else:
        array = read_idx(path, item_size=_ITEM)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold real numbers, got dtype {array.dtype}.")
    Budget(path).take("its array", array.shape, _ITEM)
    return array


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


def check_rows(data: np.ndarray, name: str = "data", *, are_intensities: bool = True) -> np.ndarray:
    """Return data as float32 (rows, units), further axes flattened; intensities lie in [0, 1]."""
    array = np.asarray(data)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must hold rows of units, at least one of each, got shape {array.shape}."
        )
    with np.errstate(over="ignore"):
        array = array.reshape(len(array), -1).astype(np.float32, copy=False)
    low, high = float(array.min()), float(array.max())
    if not np.isfinite([low, high]).all():
        wrong = int((~np.isfinite(array)).sum())
        raise ValueError(
            f"{name} must be finite, got {wrong} NaN or infinite of {array.size} values."
        )
    if are_intensities and (low < 0 or high > 1):
        raise ValueError(
            f"{name}: data must lie in [0, 1], got values from {low:g} to {high:g}: rescale them."
        )
    return array


def digest_rows(data: np.ndarray) -> str:
    """Return the hexadecimal SHA-256 of shape and values."""
    hasher = hashlib.sha256(f"rows {data.shape[0]} {data.shape[1]}".encode())
    hasher.update(np.ascontiguousarray(data, dtype="<f4").data)
    return hasher.hexdigest()


def binarise(data: np.ndarray, seed: int = 0) -> np.ndarray:
    """Draw every unit of data (rows, units) in [0, 1] once, as float32 zeros and ones.

    v_ij = 1 with probability x_ij. A unit's coin is a function of (seed, row, unit) alone, so that the
    first rows of a data set come out the same whatever follows them. Binary data come back as they are.
    """
    stream = Stream(seed, "binarise")
    out = np.empty(data.shape, np.float32)
    for start in range(0, len(data), _ROWS):
        block = on_device(data[start : start + _ROWS])
        out[start : start + _ROWS] = _draw(stream, block, start)
    return out


@jax.jit
def _draw(stream: Stream, block, start):
    bits = stream.at(0, start + jnp.arange(len(block)))
    coins = bits.uniforms(block.shape[1], draw=0)
    return (coins < block) | (block >= 1)  # a coin may be rounded up to 1
