"""Examples of a model's visible variables, from arrays and files: of zeros and ones, of states, of reals.

units of 2 states      zeros and ones; values between them are probabilities, drawn once
units of q states      0 .. q - 1, or sequences in FASTA (`training/data/fasta.py`)
real variables         numbers
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from annealz.core.errors import InputError
from annealz.models.abstract import AbstractModel
from annealz.models.density import check_density
from annealz.models.visible import Visible, visible_of
from annealz.training.data.array import read_array
from annealz.training.data.fasta import is_fasta, read_fasta
from annealz.training.data.source import DataSource, check_rows

__all__ = ["Examples", "check_examples", "read_examples"]


class Examples(NamedTuple):
    """Rows of a data set."""

    name: str
    rows: np.ndarray
    """(examples, units), float32."""
    labels: tuple[str, ...] | None = None
    """Of every example, where the file has them."""


def read_examples(
    data: str | Path,
    model: AbstractModel,
    *,
    alphabet: str | None = None,
    mnist: str | Path | None = None,
) -> Examples:
    """The examples of a data set by name, or of a file, as this model takes them."""
    check_density(model)
    visible, source = visible_of(model), DataSource.of(data, mnist)
    path = source.path if source.kind == "file" else None
    if path is not None and is_fasta(path):
        if visible.num_states is None:
            raise ValueError(
                f"{source.name} holds sequences, and {model.name} has real variables: give rows of numbers."
            )
        found = read_fasta(path, visible.num_states, alphabet)
        return Examples(source.name, check_examples(found.rows, model, source.name), found.names)
    if alphabet is not None:
        raise InputError(
            "alphabet",
            f"is for sequences in FASTA, and the data are {data}",
            remedy="leave one out",
        )
    if path is None or visible.num_states == 2:
        return Examples(source.name, check_examples(source.examples(), model, source.name))
    return Examples(source.name, check_examples(read_array(path), model, source.name))


def check_examples(data: np.ndarray, model: AbstractModel, name: str = "data") -> np.ndarray:
    """The data as float32 (rows, units) of the model's kind; a ValueError says what is wrong."""
    check_density(model)
    visible = visible_of(model)
    rows = check_rows(data, name) if visible.num_states == 2 else _check_numbers(data, name)
    if visible.num_units not in (None, rows.shape[1]):
        raise ValueError(
            f"{name} has {rows.shape[1]} units per row and the model {visible.num_units} visible units: "
            "give data of that width."
        )
    if visible.num_states == 2:
        _check_bits(rows, name)
    elif visible.num_states is not None:
        _check_states(rows, name, visible)
    return rows


def _check_numbers(data: np.ndarray, name: str) -> np.ndarray:
    array = np.asarray(data)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{name} must hold rows of units, at least one of each, got shape {array.shape}."
        )
    with np.errstate(over="ignore"):
        rows = array.reshape(len(array), -1).astype(np.float32)
    if not np.isfinite(rows).all():
        raise ValueError(
            f"{name} must be finite, got {int((~np.isfinite(rows)).sum())} NaN or infinite of "
            f"{rows.size} values."
        )
    return rows


def _check_bits(rows: np.ndarray, name: str) -> None:
    wrong = (rows != 0) & (rows != 1)
    if wrong.any():
        raise ValueError(
            f"{name} must hold zeros and ones, got {int(wrong.sum()):,} other values of {rows.size:,}, "
            f"such as {rows[wrong][0]:g}: draw them with annealz.training.data.binarise."
        )


def _check_states(rows: np.ndarray, name: str, visible: Visible) -> None:
    assert visible.num_states is not None
    wrong = (rows < 0) | (rows >= visible.num_states) | (rows != np.floor(rows))
    if wrong.any():
        raise ValueError(
            f"{name} must hold states from 0 to {visible.num_states - 1}, got {int(wrong.sum()):,} other "
            f"values of {rows.size:,}, such as {rows[wrong][0]:g}: count the states from 0."
        )
