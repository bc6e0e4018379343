"""The mixing schedule: least variance for chains that remember.

With g tau instead of g (`terrain.py`), the optimum is crossed at constant speed in √(g tau):

    m = dt/dbeta ∝ √(g tau),      K Var[log w] -> (∫ √(g tau) dbeta)^2

For perfect transitions tau = 1, and this is VAROPT. It needs no largest step: where chains are slow, so is
the schedule. Where the pilot only bounded tau from below, a twentieth of the time is spread evenly, so
that no stretch depends on that bound alone.
"""

import numpy as np

from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import cross, even_times, from_increments, normalised
from annealz.schedules.terrain import Terrain

_EVEN_SHARE = 0.05


def mixing(terrain: Terrain, num_steps: int) -> Schedule:
    """The schedule of constant speed in √(g tau).

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> betas = np.linspace(0, 1, 5)
    >>> flat, slow_end = np.ones(5), 1 + 9 * betas**4
    >>> terrain = annealz.Terrain(betas, mean=betas, variance=flat, ess=100 * flat, tau=slow_end)
    >>> annealz.mixing(terrain, 4).betas.round(3).tolist()  # small steps where chains remember
    [0.0, 0.378, 0.667, 0.86, 1.0]
    """
    times = even_times(num_steps)
    grid, friction = terrain.on_grid(with_memory=True)
    is_bound = bool(np.any(terrain.tau_is_bound))
    dwell = normalised(grid, np.sqrt(friction))
    if is_bound:
        dwell = (1 - _EVEN_SHARE) * dwell + _EVEN_SHARE
    betas = cross(grid, dwell, times)
    provenance = {
        **terrain.provenance,
        **terrain.spent,
        "predicted_variance": float(np.trapezoid(friction / dwell, grid)) / num_steps,
        "tau_is_bound": is_bound,
        "largest_tau": float(np.max(np.asarray(terrain.tau))),
    }
    return from_increments(np.diff(betas), "mixing", provenance, terrain)
