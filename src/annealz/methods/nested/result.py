"""What one run of a nested sampler left: every point with its likelihood at birth and at death."""

import dataclasses
import enum
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from annealz.io.archive import real_numbers
from annealz.io.records import TypedRecord, finite, number, one_of, whole


class Ending(enum.Enum):
    """Why a run ended."""

    DONE = "done"
    """What is left can hold no more than the tolerance."""
    PLATEAU = "plateau"
    """All live points have the same likelihood: what is left is known."""
    OUT_OF_EVALUATIONS = "out of evaluations"
    UNRESOLVED = "unresolved"
    """The likelihood still rises where float32 cannot resolve positions."""


@dataclasses.dataclass(frozen=True)
class NestedRun:
    """Dead points in the order of their deaths, then the live points that were left."""

    x: np.ndarray
    """(points, dim) positions, float32."""
    deaths: np.ndarray
    """(points,) log L of each, float64."""
    births: np.ndarray
    """(points,) the contour above which each was drawn; NaN of draws from the prior."""
    num_live: int
    ending: Ending
    top: float
    """The highest log L that was found uphill from live points; -inf if none was looked for."""
    share_left: float
    """What the live points held at the end, as a share of the evidence."""
    evaluations: int
    """Of the density, as they were made."""
    num_slices: int
    num_failed: int
    """Slices that found no point."""
    num_nan: int
    """Evaluations that gave NaN, counted as a likelihood of zero."""
    seconds: float

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the points as named arrays, and the rest as a JSON record."""
        numbers: dict[str, Any] = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(_RunRecord)
        }
        numbers["ending"] = self.ending.value
        record = _RunRecord(**numbers)
        return {name: getattr(self, name) for name in _ARRAYS}, record.to_dict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> Self:
        """Return the run that was stored."""
        numbers: dict[str, Any] = _RunRecord.read(record).to_dict()
        count = len(real_numbers(arrays, "deaths", _RunRecord.what, num_axes=1))
        numbers["ending"] = Ending(numbers["ending"])
        points = {n: real_numbers(arrays, n, _RunRecord.what, length=count) for n in _ARRAYS}
        return cls(**points, **numbers)


_ARRAYS = ("x", "deaths", "births")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RunRecord(TypedRecord):
    """The numbers of a run in a file."""

    what: ClassVar[str] = "a stored run of nested sampling"
    num_live: Annotated[int, whole]
    ending: Annotated[str, one_of(*(one.value for one in Ending))]
    top: Annotated[float, number]
    share_left: Annotated[float, finite]
    evaluations: Annotated[int, whole]
    num_slices: Annotated[int, whole]
    num_failed: Annotated[int, whole]
    num_nan: Annotated[int, whole]
    seconds: Annotated[float, finite]
