"""Which stage of an estimate reports its progress.

    base       the base is fitted to the model        sizing     a small run finds the number of chains
    marginal   a layer is chosen                      timing     a few steps are timed
    tuning     the kernel is tuned                    run        the forward run, in parts or in one
    pilot      the path is surveyed                   draws      draws of the target, for the next
    schedule   the schedule is made                   reverse    the reverse run
    second     chains from a second base              probe      these, back along the first path

exchange, all rounds of replica exchange, and below, reverse annealing from examples
(`conservative.py`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from annealz.core import interrupts


class Progress(NamedTuple):
    """Where a run stands; `log_z` ends as the estimate of the target's log Z, in either direction.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> seen = []
    >>> _ = annealz.estimate_log_z(random_rbm(4, 6), on_progress=seen.append)
    >>> {now.stage for now in seen} >= {"pilot", "schedule", "run"}
    True
    """

    step: int
    num_steps: int
    log_z: float
    ess: float
    stage: str = "run"
    """What the run is for: pilot, sizing, run, reverse and others."""
    part: int = 1
    """Which run of its stage, from 1."""
    num_parts: int = 1
    """How many the stage is foreseen to have; 0 where that is not known."""
    num_chains: int = 0
    """Of which `ess` counts the effective ones; 0 where there is no ESS."""


OnProgress = Callable[[Progress], None]


def in_stage(
    on_progress: OnProgress | None, stage: str, part: int = 1, num_parts: int = 1
) -> OnProgress | None:
    """The same callback for a run that is this stage, or this part of it."""
    if on_progress is None:
        return None
    return lambda now: on_progress(now._replace(stage=stage, part=part, num_parts=num_parts))


def begin(
    on_progress: OnProgress | None, stage: str, part: int = 1, num_parts: int = 1
) -> OnProgress | None:
    """Report that a stage begins, and return the callback of its run.

    It is reported as nothing done of one step: how many it has may not be known yet.
    """
    interrupts.check()
    if on_progress is not None:
        on_progress(Progress(0, 1, np.nan, np.nan, stage, part, num_parts))
    return in_stage(on_progress, stage, part, num_parts)
