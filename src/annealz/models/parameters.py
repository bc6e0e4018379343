"""The parameters of a density in their own space: by name, and positive or bounded where the model says so.

    x (dim,) unconstrained   <->   {name: value}

log Z does not depend on them: they say how draws of the density are shown, and how a user's draws are read.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Names, and the way from rows of unconstrained variables to values by name, and back.

    Parameters
    ----------
    names : in the order in which they are shown
    constrain : rows (draws, dim) -> {name: (draws, ...)}
    unconstrain : {name: (draws, ...)} -> rows (draws, dim); None where there is no way back
    """

    names: tuple[str, ...]
    constrain: Callable[[np.ndarray], dict[str, np.ndarray]] = dataclasses.field(compare=False)
    unconstrain: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = dataclasses.field(
        default=None, compare=False
    )

    @classmethod
    def plain(cls, name: str, dim: int) -> "Parameters":
        """One vector of real variables, as it is."""
        return cls(
            (name,),
            lambda rows: {name: np.asarray(rows)},
            lambda values: np.asarray(values[name]).reshape(-1, dim),
        )
