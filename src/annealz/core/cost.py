"""Cost: what a computation took, in sweeps, evaluations of the density, and seconds.

Costs of stages add up. Evaluations are counted of densities only, whose cost they are; they are None where
some were made that nobody counted, and None plus a number is None.
"""

import dataclasses

__all__ = ["Cost"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """Sweeps, evaluations and seconds, which add up.

    Examples
    --------
    >>> from annealz.core.cost import Cost
    >>> Cost(sweeps=100, evaluations=200, seconds=0.5) + Cost(sweeps=10, seconds=0.25)
    Cost(sweeps=110, evaluations=200, seconds=0.75)
    """

    sweeps: int = 0
    """Applications of a kernel to one chain."""
    evaluations: int | None = 0
    """Of the density, with or without its gradient; None where they are not counted."""
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        evaluations = None
        if self.evaluations is not None and other.evaluations is not None:
            evaluations = self.evaluations + other.evaluations
        seconds = self.seconds + other.seconds
        return Cost(self.sweeps + other.sweeps, evaluations, seconds)

    def __radd__(self, other: int) -> "Cost":
        """Return this cost where `sum` begins with 0."""
        return self
