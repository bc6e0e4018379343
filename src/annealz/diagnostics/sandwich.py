"""The sandwich: means of forward and reverse work bound log Z_B / Z_A.

    E_F[W] <= log Z_B / Z_A <= E_R[W],     gap = E_R[W] - E_F[W] >= 0

by Jensen's inequality on either side. The bounds are of expectations: each mean has a standard error.
The gap is the sum of two relative entropies (Grosse, Ancha & Roy 2016), about Var[W] for slow annealing.
A gap that is negative beyond its noise cannot be, unless the reverse draws are not from the target.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Sandwich:
    """Lower and upper bound of log Z_B / Z_A in expectation, with their standard errors."""

    lower: float
    lower_std_err: float
    upper: float
    upper_std_err: float

    @property
    def gap(self) -> float:
        return self.upper - self.lower

    @property
    def gap_std_err(self) -> float:
        return float(np.hypot(self.lower_std_err, self.upper_std_err))


def sandwich(forward: np.ndarray, reverse: np.ndarray) -> Sandwich:
    """Means of the work of forward and of reverse chains."""
    return Sandwich(*_mean(forward), *_mean(reverse))


def _mean(work) -> tuple[float, float]:
    """Mean and its standard error; infinite for one chain."""
    work = np.asarray(work, np.float64)
    std_err = work.std(ddof=1) / np.sqrt(work.size) if work.size > 1 else np.inf
    return float(work.mean()), float(std_err)
