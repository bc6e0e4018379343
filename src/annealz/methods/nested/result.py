"""What one run of a nested sampler left: every point with its likelihood at birth and at death."""

import dataclasses
import enum
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from annealz.io.archive import real_numbers
from annealz.io.records import TypedRecord, finite, number, one_of, whole


class Ending(enum.StrEnum):
    """Why a run ended."""

    DONE = "done"
    """What is left can hold no more than the tolerance."""
    PLATEAU = "plateau"
    """All live points have the same likelihood: what is left is known."""
    OUT_OF_EVALUATIONS = "out of evaluations"
    UNRESOLVED = "unresolved"
    """The likelihood still rises where float32 cannot resolve positions."""

    @classmethod
    def read(cls, value: Any) -> Self:
        """Convert a text of a record."""
        return cls(one_of(*cls)(value))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedRun(TypedRecord):
    """Dead points in the order of their deaths, then the live points that were left."""

    what: ClassVar[str] = "a stored run of nested sampling"

    x: np.ndarray
    """(points, dim) positions, float32."""
    deaths: np.ndarray
    """(points,) log L of each, float64."""
    births: np.ndarray
    """(points,) the contour above which each was drawn; NaN of draws from the prior."""
    num_live: Annotated[int, whole]
    ending: Annotated[Ending, Ending.read]
    top: Annotated[float, number]
    """The highest log L that was found uphill from live points; -inf if none was looked for."""
    share_left: Annotated[float, finite]
    """What the live points held at the end, as a share of the evidence."""
    evaluations: Annotated[int, whole]
    """Of the density, as they were made."""
    num_slices: Annotated[int, whole]
    num_failed: Annotated[int, whole]
    """Slices that found no point."""
    num_nan: Annotated[int, whole]
    """Evaluations that gave NaN, counted as a likelihood of zero."""
    seconds: Annotated[float, finite]

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the points as named arrays, and the rest as a JSON record."""
        return {"x": self.x, "deaths": self.deaths, "births": self.births}, self.to_dict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> Self:
        """Return the run that was stored."""
        count = len(real_numbers(arrays, "deaths", cls.what, num_axes=1))
        names = ("x", "deaths", "births")
        points = {name: real_numbers(arrays, name, cls.what, length=count) for name in names}
        return cls.read(record, **points)
