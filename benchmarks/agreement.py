"""That the racers are correct programs: their log Z of one model, against each other and the truth.

All run the same algorithm with the same chains and schedule, so that one standard error (that of
the log weights of annealz) serves also the contestant that reports none. Agreement: every estimate
within `_LIMIT` standard errors of the exact log Z (enumeration of 2^20 hidden states), and of each
other estimate within `_LIMIT` standard errors of their difference.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from annealz.models.exact import exact_log_z
from annealz.models.rbm import RBM
from race import Contestant

__all__ = ["agreement"]

_LIMIT = 4.0


def agreement(
    model: RBM, contestants: Sequence[Contestant], num_steps: int, seed: int = 1
) -> dict[str, Any]:
    """log Z and standard error by contestant, the exact value, and whether they agree."""
    timings = {c.name: c(num_steps, seed) for c in contestants}
    shared = next(t.std_err for t in timings.values() if t.std_err is not None)
    estimates = {name: (t.log_z, t.std_err or shared) for name, t in timings.items()}
    exact = exact_log_z(model)
    rows = [*estimates.items(), ("exact", (exact, 0.0))]
    z_scores = {
        f"{name} - {other}": (log_z - other_log_z) / math.hypot(error, other_error)
        for (name, (log_z, error)), (other, (other_log_z, other_error)) in combinations(rows, 2)
    }
    return {
        "num_steps": num_steps,
        "exact_log_z": exact,
        "log_z": {name: log_z for name, (log_z, _) in estimates.items()},
        "std_err": {name: timings[name].std_err for name in estimates},
        "z_scores": z_scores,
        "agree": all(abs(z) < _LIMIT for z in z_scores.values()),
    }
