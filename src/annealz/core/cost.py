"""Cost: what a computation took, in sweeps, evaluations of the density, and seconds.

Costs of stages add up. Evaluations are counted of models whose cost they are; of others they are 0.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Cost:
    """Sweeps, evaluations and seconds, which add up."""

    sweeps: int = 0
    """Applications of a kernel to one chain."""
    evaluations: int = 0
    """Of the density, with or without its gradient."""
    seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.sweeps + other.sweeps,
            self.evaluations + other.evaluations,
            self.seconds + other.seconds,
        )
