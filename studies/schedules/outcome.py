"""What came out of the race, and how it is measured.

Of a cell's replicates r:

    mse             mean (log Z_r - log Z)^2           bias    mean log Z_r - log Z
    dissipation     log Z - mean log w                 variance, ess    their means

Standard errors are those of means over replicates. Where log Z is not known (500 units), a reference stands
in for it: Z = sum_s e_s Z_s / sum_s e_s over the schedules s at the largest K, Z_s the mean of exp log Z_r
over the schedule's replicates and e_s the mean of their ESS. Replicates of one schedule weigh the same: a
replicate's own ESS falls when it draws a large weight, and weighing it by that makes log Z too low. The
reference's error comes from the spread between replicates.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annealz.io.archive import load_archive
from race import COLUMNS, Key
from significance import std_err

__all__ = ["MEASURES", "Outcome", "Truth"]

MEASURES = ("mse", "dissipation", "variance", "ess")


class Truth(NamedTuple):
    """log Z, or what stands in for it."""

    log_z: float
    std_err: float
    is_exact: bool


@dataclasses.dataclass(frozen=True)
class Outcome:
    """All cells: (replicates, COLUMNS) by key; curves of beta at equal times."""

    record: dict[str, Any]
    cells: dict[Key, np.ndarray]
    curves: dict[Key, np.ndarray]

    @classmethod
    def load(cls, file: Path) -> "Outcome":
        arrays, record = load_archive(file)
        cells, curves = {}, {}
        for name, values in arrays.items():
            words = name.removeprefix("curve|").split("|")
            key = Key(words[0], words[1], words[2], int(words[3]))
            (curves if name.startswith("curve|") else cells)[key] = values
        order = list(record["exact_log_z"])
        keys = sorted(cells, key=lambda k: (k.base, order.index(k.model), k.num_steps))
        return cls(record, {key: cells[key] for key in keys}, curves)

    def column(self, key: Key, name: str) -> np.ndarray:
        """One number over the replicates."""
        return self.cells[key][:, COLUMNS.index(name)]

    def models(self, base: str) -> list[str]:
        return list(dict.fromkeys(key.model for key in self.cells if key.base == base))

    def steps(self, base: str) -> list[int]:
        return sorted({key.num_steps for key in self.cells if key.base == base})

    def truth(self, model: str) -> Truth:
        """The exact log Z where it is known, or the reference."""
        exact = self.record["exact_log_z"][model]
        if exact is not None:
            return Truth(exact, 0.0, True)
        largest = max(self.steps("base-rate"))
        keys = [k for k in self.cells if k[:2] == (model, "base-rate") and k.num_steps == largest]
        top = max(self.column(key, "log_z").max() for key in keys)
        z = [np.exp(self.column(key, "log_z") - top) for key in keys]
        shares = np.array([self.column(key, "ess").mean() for key in keys])
        shares /= shares.sum()
        mean = float(shares @ [values.mean() for values in z])
        error = float(np.sqrt(shares**2 @ [std_err(values) ** 2 for values in z]))
        return Truth(float(top + np.log(mean)), error / mean, False)

    def loss(self, key: Key, measure: str) -> np.ndarray:
        """A measure over the replicates, such that less is better."""
        if measure in ("mse", "dissipation"):
            log_z = self.truth(key.model).log_z
            if measure == "mse":
                return (self.column(key, "log_z") - log_z) ** 2
            return log_z - self.column(key, "mean")
        return -self.column(key, "ess") if measure == "ess" else self.column(key, "variance")
