"""Which stage of an estimate reports its progress.

    base       the base is fitted to the model        sizing     a small run finds the number of chains
    marginal   a layer is chosen                      timing     a few steps are timed
    tuning     the kernel is tuned                    run        the forward run, in parts or in one
    pilot      the path is surveyed                   draws      draws of the target, for the next
    schedule   the schedule is made                   reverse    the reverse run
    second     chains from a second base              probe      these, back along the first path

exchange, all rounds of replica exchange (`replicas/`), and below, reverse annealing from examples
(`conservative.py`).
"""

from collections.abc import Callable

import numpy as np

from annealz.engine.anneal import Progress

__all__ = ["OnProgress", "begin", "in_stage"]

OnProgress = Callable[[Progress], None]


def in_stage(
    on_progress: OnProgress | None, stage: str, part: int = 1, num_parts: int = 1
) -> OnProgress | None:
    """The same callback for a run that is this stage, or this part of it."""
    if on_progress is None:
        return None
    return lambda now: on_progress(now._replace(stage=stage, part=part, num_parts=num_parts))


def begin(on_progress: OnProgress | None, stage: str, part: int = 1, num_parts: int = 1) -> None:
    """Report that a stage begins, as nothing done of one step: how many it has may not be known yet."""
    if on_progress is not None:
        on_progress(Progress(0, 1, np.nan, np.nan, stage, part, num_parts))
