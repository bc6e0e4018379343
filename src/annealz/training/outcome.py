"""What a training to a file ends in: a record for programs, a table for people.

Log-likelihoods are means over the training data, in nats per example. Intensities are binarised once
for them, from the seed of the training.
"""

import dataclasses
from typing import Any

import numpy as np

from annealz.core.random import derive_seed
from annealz.models.density import log_densities
from annealz.models.exact import exact_log_z
from annealz.models.rbm import RBM
from annealz.training.data.binarise import binarise

__all__ = ["Outcome", "exact_values"]

_EXACT_UNITS = 20  # of the smaller layer: an enumeration of seconds


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The figures of a trained model, and where it is."""

    file: str
    name: str
    num_hidden: int
    num_visible: int
    data: dict[str, str]
    """name and digest"""
    num_updates: int
    reconstruction_error: float
    pseudo_log_likelihood: float
    exact_log_z: float | None
    log_likelihood: float | None
    """exact, where log Z is"""
    seconds: float
    digest: str
    series: str | None
    """the folder of the series"""
    messages: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `annealz train --json` prints."""
        return {**dataclasses.asdict(self), "messages": list(self.messages)}

    def rows(self) -> list[tuple[str, str]]:
        """The outcome as label and value, for people."""
        rows = [
            ("model", self.file),
            ("size", f"{self.num_hidden} hidden, {self.num_visible} visible units"),
            ("data", self.data["name"]),
            ("updates", f"{self.num_updates:,}"),
            ("reconstruction error", f"{self.reconstruction_error:.5f} a unit"),
            ("pseudo-likelihood", f"{self.pseudo_log_likelihood:.2f} nats per example"),
        ]
        if self.exact_log_z is not None:
            rows.append(("exact log Z", f"{self.exact_log_z:.4f}"))
        if self.log_likelihood is not None:
            rows.append(("log-likelihood", f"{self.log_likelihood:.2f} nats per example, exact"))
        if self.series is not None:
            rows.append(("series", self.series))
        rows += [("time", f"{self.seconds:.1f} s"), ("next", f"annealz estimate {self.file}")]
        return rows


def exact_values(model: RBM, data: np.ndarray, seed: int) -> tuple[float | None, float | None]:
    """(log Z, mean log-likelihood of the data), exact; None for models too large to enumerate."""
    if min(model.num_hidden, model.num_visible) > _EXACT_UNITS:
        return None, None
    log_z = exact_log_z(model)
    rows = binarise(data, derive_seed(seed, "likelihood"))
    return log_z, float(log_densities(model, rows).mean() - log_z)
