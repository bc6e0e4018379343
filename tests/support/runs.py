"""Runs compared bit by bit, and interrupted."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from annealz.engine.anneal import anneal
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.progress import Progress
from annealz.engine.run import Run
from annealz.schedules.rules import linear
from support.systems import true_code


class RunningSum(AbstractObserver):
    """Carries the sum of all states that were weighted, and how many they were."""

    def init(self, x, path):
        return {"sum": jnp.zeros_like(x), "count": jnp.zeros(x.shape[0], jnp.int32)}

    def update(self, carry, x, path, beta0, beta1):
        return {"sum": carry["sum"] + x, "count": carry["count"] + 1}

    def measure(self, carry, x, path, beta):
        return carry["sum"]


OBSERVERS = {"slope": Slope(), "sum": RunningSum()}


def assert_same_run(one: Run, two: Run) -> None:
    """Bit for bit: weights, states, every trace, every carry."""
    first, second = (
        (run.log_weights, run.states, run.carries, *vars(run.trace).values()) for run in (one, two)
    )
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def interrupt_at(*steps: int) -> Callable[[Progress], None]:
    """Raise KeyboardInterrupt at the first report at or after each of these steps."""
    waiting = sorted(steps)

    def on_progress(progress: Progress) -> None:
        if waiting and progress.step >= waiting[0]:
            del waiting[0]
            raise KeyboardInterrupt

    return on_progress


def stop_in(stage: str, step: int = 20):
    def stop(progress):
        if progress.stage == stage and progress.step >= step:
            raise KeyboardInterrupt

    return stop


def small_run(marginal: str = "visible", **options) -> Run:
    settings = {"num_chains": 37, "seed": 3, "record_every": 3, "observers": OBSERVERS}
    path, kernel = true_code(marginal)
    return anneal(path, kernel, options.pop("schedule", linear(100)), **{**settings, **options})


def log_mean(run: Run) -> float:
    return run.log_z0 + float(logsumexp(run.log_weights)) - np.log(run.num_chains)
