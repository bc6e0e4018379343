"""LINEAR: beta_k = k / K."""

import numpy as np

from annealz.schedules.schedule import Schedule


def linear(num_steps: int) -> Schedule:
    """Equal steps.

    Examples
    --------
    >>> import annealz
    >>> annealz.linear(4).betas.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return Schedule(np.linspace(0.0, 1.0, num_steps + 1), "linear")
