"""GMS13: steps shared out among the segments between knots (Grosse, Maddison & Salakhutdinov 2013).

    c_j = (b_{j+1} - b_j) (E_{b_{j+1}}[U] - E_{b_j}[U]),     steps of segment j ∝ √c_j, linear inside it

With many knots √c_j -> √(dE[U]/dbeta) dbeta. Where U does not depend on beta this derivative is g,
and the schedule tends to VAROPT: the two differ by the number of knots, not in their aim. With a
latent layer summed out, dE[U]/dbeta = g + E[dU/dbeta] >= g, and a difference remains.
"""

import numpy as np

from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import even_times, from_increments
from annealz.schedules.terrain import Terrain

_LEAST_SHARE = 1e-3  # of the mean: a segment whose noisy cost is zero or negative still gets steps


def gms13(terrain: Terrain, num_steps: int) -> Schedule:
    """The schedule of the means at the terrain's betas, taken as knots.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> betas = np.linspace(0, 1, 5)
    >>> terrain = annealz.Terrain(betas, mean=betas**2, variance=2 * betas, ess=np.full(5, 100.0))
    >>> annealz.gms13(terrain, 10).betas.round(3).tolist()
    [0.0, 0.19, 0.325, 0.435, 0.535, 0.62, 0.705, 0.784, 0.856, 0.928, 1.0]
    """
    times = even_times(num_steps)
    knots, mean = terrain.betas, terrain.mean
    if knots[0] > 0:
        knots, mean = np.append(0.0, knots), np.append(mean[0], mean)
    if knots[-1] < 1:
        knots, mean = np.append(knots, 1.0), np.append(mean, mean[-1])
    widths = np.diff(knots)
    shares = np.sqrt(widths * np.maximum(np.diff(mean), 0))
    shares = np.maximum(shares, _LEAST_SHARE * (shares.sum() or 1.0) * widths)
    clock = np.concatenate([[0], np.cumsum(shares)])
    betas = np.interp(times, clock / clock[-1], knots)
    provenance = {**terrain.provenance, **terrain.spent}
    return from_increments(np.diff(betas), "gms13", provenance, terrain)
