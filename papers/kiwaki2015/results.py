"""The raw results: one row per replicate of a cell, in one checksummed archive.

A cell is (model, base, schedule, K). Its row of each replicate holds

    log_z       log Z_A + log mean w                std_err   its standard error
    low, high   95 % interval of log Z              ess       effective sample size
    mean        mean of log w, plus log Z_A         variance  Var[log w]
    pareto_k    of the largest weights              is_ok     whether the status is ok

and beside them the cell keeps, over all its chains, the ESS as the run went on. A (model, base) keeps
its pilot's g(beta) and every schedule at the largest K. The archive's record holds the settings, the
versions, the device, and the identity of every model.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annealz.io.archive import load_archive, save_archive

__all__ = ["COLUMNS", "Cell", "Key", "Results"]

COLUMNS = ("log_z", "std_err", "low", "high", "ess", "mean", "variance", "pareto_k", "is_ok")
_SEPARATOR = "|"


class Key(NamedTuple):
    """Which run."""

    model: str
    base: str
    schedule: str
    num_steps: int


@dataclasses.dataclass(frozen=True)
class Cell:
    """What came out of it."""

    rows: np.ndarray
    """(replicates, COLUMNS)."""
    trace: np.ndarray
    """(2, records): k / K, and the ESS at step k as a share of the chains."""
    seconds: float

    def __getitem__(self, column: str) -> np.ndarray:
        """One column over the replicates."""
        return self.rows[:, COLUMNS.index(column)]


@dataclasses.dataclass
class Results:
    """All cells so far, the curves of every (model, base), and the record."""

    record: dict[str, Any]
    cells: dict[Key, Cell]
    curves: dict[str, np.ndarray]
    """By "kind|model|base" or "kind|model|base|schedule"."""

    @property
    def num_chains(self) -> int:
        """Chains per replicate."""
        return self.record["settings"]["num_chains"]

    @property
    def largest(self) -> int:
        """The largest K."""
        return max(key.num_steps for key in self.cells)

    def exact_log_z(self, model: str) -> float | None:
        """log Z, where it could be computed."""
        return self.record["models"][model]["exact_log_z"]

    def curve(self, kind: str, *words: str) -> np.ndarray:
        return self.curves[_SEPARATOR.join((kind, *words))]

    def set_curve(self, kind: str, *words: str, values: np.ndarray) -> None:
        self.curves[_SEPARATOR.join((kind, *words))] = np.asarray(values, np.float32)

    def save(self, path: Path) -> None:
        arrays = {f"curve:{name}": values for name, values in self.curves.items()}
        keys = list(self.cells)
        if keys:
            arrays["rows"] = np.stack([self.cells[key].rows for key in keys])
            arrays["seconds"] = np.array([self.cells[key].seconds for key in keys])
            arrays["trace"] = np.concatenate([self.cells[k].trace for k in keys], 1)
            arrays["trace_sizes"] = np.array([self.cells[k].trace.shape[1] for k in keys])
        save_archive(path, arrays, {**self.record, "columns": COLUMNS, "cells": keys})

    @classmethod
    def load(cls, path: Path) -> "Results":
        arrays, record = load_archive(path)
        keys = [Key(*key) for key in record.pop("cells")]
        del record["columns"]
        cells = {}
        if keys:
            ends = np.cumsum(arrays["trace_sizes"])
            traces = np.split(arrays["trace"], ends[:-1], axis=1)
            cells = {
                key: Cell(rows, trace, float(seconds))
                for key, rows, trace, seconds in zip(
                    keys, arrays["rows"], traces, arrays["seconds"], strict=True
                )
            }
        curves = {
            name.removeprefix("curve:"): values
            for name, values in arrays.items()
            if name.startswith("curve:")
        }
        return cls(record, cells, curves)
