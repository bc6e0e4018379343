"""A schedule: 0 = beta_0 < beta_1 < … < beta_K = 1, validated, with its provenance.

The engine runs on the betas rounded to float32, and takes its increments between the rounded
values, so that a schedule of any length is annealed exactly as rounded.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from annealz.diagnostics.sheet import Sheet, Shown, View, data_frame
from annealz.io.archive import load_npy
from annealz.io.files import write_atomic
from annealz.io.reading import parse_json, read_small, told
from annealz.io.records import Record, line, numbers, optional, table, text
from annealz.schedules.terrain import TERRAIN, Terrain

_RECORD = Record(
    "the schedule",
    {"name": line, "digest": text, "provenance": table, "betas": numbers},
    {"terrain": optional(TERRAIN.within)},
)

_FORMAT = "annealz-schedule-1"
_KEYS = {"betas", "name", "provenance", "digest"}


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule(Shown):
    """Annealing schedule of K steps.

    Parameters
    ----------
    betas : (K + 1,), strictly increasing from exactly 0 to exactly 1
    name : the rule that made it
    provenance : what the rule was given, as JSON values
    terrain : what the rule saw of the path, where it had a pilot

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> schedule = annealz.Schedule(np.linspace(0, 1, 11) ** 2)
    >>> schedule.num_steps, schedule.digest[:8]
    (10, '0d4e5f38')
    """

    betas: np.ndarray
    name: str = "custom"
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)
    terrain: Terrain | None = None

    def __post_init__(self):
        betas = np.array(self.betas)
        if betas.dtype.kind not in "fiu":
            raise ValueError(f"betas must be real numbers, got dtype {betas.dtype}.")
        betas = betas.astype(np.float64)
        if betas.ndim != 1 or betas.size < 2:
            raise ValueError(
                f"betas must be a vector of at least 0 and 1, got shape {betas.shape}."
            )
        if not np.isfinite(betas).all():
            where = int(np.argmin(np.isfinite(betas)))
            raise ValueError(f"betas must be finite, got {betas[where]} at position {where}.")
        if betas[0] != 0 or betas[-1] != 1:
            raise ValueError(
                f"betas must start at 0 and end at 1, got a start of {betas[0]} and an end of "
                f"{betas[-1]}."
            )
        if not (np.diff(betas) > 0).all():
            where = int(np.argmin(np.diff(betas) > 0))
            raise ValueError(
                f"betas must increase strictly, got {betas[where]} then "
                f"{betas[where + 1]} at positions {where} and {where + 1}."
            )
        betas.flags.writeable = False
        object.__setattr__(self, "betas", betas)

    def __repr__(self) -> str:
        return f"Schedule({self.name}, num_steps={self.num_steps}, digest={self.digest[:12]})"

    def sheet(self) -> Sheet:
        """Return what it shows."""
        known = self.provenance
        rows = [
            ("steps", f"{self.num_steps:,}"),
            ("largest step", f"{np.diff(self.betas).max():.3g}"),
        ]
        if "predicted_variance" in known:
            rows.append(("predicted variance of log w", f"{known['predicted_variance']:.3g}"))
        if "predicted_gain" in known:
            rows.append(("predicted gain on linear", f"{known['predicted_gain']:.2f} ×"))
        if "pilot_sweeps" in known:
            rows.append(("pilot", f"{known['pilot_sweeps']:,} sweeps"))
        rows.append(("digest", self.digest[:12]))
        curves = [("β(t)", self.betas)]
        return self.described(("schedule", self.name), rows, curves=curves)

    def to_pandas(self):
        """Return the betas as a pandas table, one row per step."""
        return data_frame({"beta": self.betas}, index="step")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and np.array_equal(self.betas, other.betas)

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def num_steps(self) -> int:
        """K."""
        return self.betas.size - 1

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of the betas."""
        return hashlib.sha256(self.betas.astype("<f8").tobytes()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write as JSON, atomically; betas keep every bit."""
        write_atomic(path, json.dumps(self.to_record()))

    def to_record(self) -> dict[str, Any]:
        """Return JSON values that hold every bit."""
        record: dict[str, Any] = {
            "format": _FORMAT,
            "name": self.name,
            "num_steps": self.num_steps,
            "digest": self.digest,
            "provenance": self.provenance,
            "betas": self.betas.tolist(),
        }
        if self.terrain is not None:
            record["terrain"] = self.terrain.to_record()
        return record

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a saved schedule, or betas from a JSON list, .npy, .txt or .csv file."""
        path = Path(path)
        try:
            if path.suffix == ".npy":
                return cls(load_npy(path, "betas"), path.stem)
            raw = read_small(path)
            if path.suffix in (".txt", ".csv"):
                words = raw.decode().replace(",", " ").split()
                return cls(np.fromiter(map(float, words), np.float64, len(words)), path.stem)
            record = parse_json(raw)
            is_list = isinstance(record, list)
            return cls(np.array(record), path.stem) if is_list else cls.from_record(record)
        except (ValueError, OverflowError) as error:
            reason = told(error).removeprefix(f"cannot read {path}: ").replace(f"{path} ", "it ")
            raise ValueError(f"schedule file {path}: {reason}.") from error

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Return the schedule of such a record."""
        if not isinstance(record, dict) or record.get("format") != _FORMAT or _KEYS - record.keys():
            raise ValueError("it is neither a saved schedule nor a list of betas")
        record = _RECORD.check(record)
        seen = record.get("terrain")
        terrain = None if seen is None else Terrain.from_record(seen)
        schedule = cls(np.array(record["betas"]), record["name"], record["provenance"], terrain)
        if schedule.digest != record["digest"]:
            raise ValueError("it was altered or damaged: its digest does not match its betas")
        return schedule

    plot = View("plots.schedule.plot_schedule")
    """Draw beta against the fraction of steps; return the matplotlib axes."""

    def plot_dwell(self, ax=None, *, terrain: Terrain | None = None):
        """Draw the time spent at each beta, over the terrain: the rule's own, or another one."""
        from annealz.views.plots.schedule import plot_dwell

        return plot_dwell(self, self.terrain if terrain is None else terrain, ax)
