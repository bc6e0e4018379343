"""Examples of a model's visible variables, from arrays and files: of zeros and ones, of states, of reals.

units of 2 states      zeros and ones; values between them are probabilities, drawn once
units of q states      0 .. q - 1, or sequences in FASTA (`training/data.py`)
real variables         numbers
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from annealz.core.errors import InputError
from annealz.models.abstract import AbstractModel, visible_of
from annealz.models.density import check_density
from annealz.training.data import DataSource, check_rows, is_fasta, read_array, read_fasta


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
    """Return the examples of a data set by name, or of a file, as this model takes them."""
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
    is_drawn = visible.num_states == 2
    rows = source.examples() if path is None or is_drawn else read_array(path)
    return Examples(source.name, check_examples(rows, model, source.name))


def check_examples(data: np.ndarray, model: AbstractModel, name: str = "data") -> np.ndarray:
    """Return data as float32 (rows, units), as the model's visible units are."""
    check_density(model)
    visible = visible_of(model)
    rows = check_rows(data, name, are_intensities=visible.num_states == 2)
    if visible.num_units not in (None, rows.shape[1]):
        raise ValueError(
            f"{name} has {rows.shape[1]} units per row and the model {visible.num_units} visible units: "
            "give data of that width."
        )
    num_states = visible.num_states
    if num_states is None:
        return rows
    wrong = (rows < 0) | (rows >= num_states) | (rows != np.floor(rows))
    if not wrong.any():
        return rows
    wanted, remedy = f"states from 0 to {num_states - 1}", "count the states from 0"
    if num_states == 2:
        wanted, remedy = "zeros and ones", "draw them with annealz.training.data.binarise"
    raise ValueError(
        f"{name} must hold {wanted}, got {int(wrong.sum()):,} other values of {rows.size:,}, such as "
        f"{rows[wrong][0]:g}: {remedy}."
    )
