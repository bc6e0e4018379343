"""Schedules that need no pilot.

LINEAR: beta_k = k / K.

SM08: the hand-made schedule of Salakhutdinov & Murray (2008).

500 equal steps on [0, 0.5], 4,000 on [0.5, 0.9] and 10,000 on [0.9, 1] at K = 14,500; another K
keeps these proportions. A segment that gets no step at a small K is merged into the next.
"""

import numpy as np

from annealz.schedules.schedule import Schedule

_SEGMENTS = ((500, 0.5), (4500, 0.9), (14500, 1.0))  # of SM08: cumulative steps, beta reached


def linear(num_steps: int) -> Schedule:
    """Equal steps.

    Examples
    --------
    >>> import annealz
    >>> annealz.linear(4).betas.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return Schedule(np.linspace(0.0, 1.0, num_steps + 1), "linear")


def sm08(num_steps: int) -> Schedule:
    """Slow at the end, in the proportions 500 : 4,000 : 10,000.

    Examples
    --------
    >>> import annealz
    >>> schedule = annealz.sm08(14_500)
    >>> schedule.betas[[500, 4500]].tolist()
    [0.5, 0.9]
    """
    pieces, reached, done = [np.zeros(1)], 0.0, 0
    for cumulative, end in _SEGMENTS:
        until = (2 * num_steps * cumulative + 14500) // (2 * 14500)  # rounded to nearest
        if until > done:
            pieces.append(np.linspace(reached, end, until - done + 1)[1:])
            reached, done = end, until
    return Schedule(np.concatenate(pieces), "sm08")
