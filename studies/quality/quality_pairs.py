"""Pairs of runs of one seed, before and after a change, and whether what came after is worse.

    d_i = loss after - loss before of seed i          H0: each d_i is as likely as -d_i

p        one-sided, of the mean of d under changes of its signs: all of them, or 100,000 drawn where there
         are more. Exact for any distribution of the losses and any dependence within a pair, so for runs
         that share most of their bits as well
ratio    of two positive measures: exp of the mean of log after - log before, with Student's 95 % interval
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy import stats

__all__ = ["Pairs", "Ratio", "log_ratio", "made_on", "worse_p"]

_NUM_RESAMPLES = 100_000


class Ratio(NamedTuple):
    """After over before, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high == 1.0:
            return "1"
        if np.isnan(self.low):  # of a single pair
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"


def made_on(row: dict) -> tuple[str, str]:
    """JAX and device of a run."""
    return row["versions"]["jax"], row["versions"]["device"]


class Pairs(NamedTuple):
    """Rows of the same seeds, in the same order."""

    before: list[dict]
    after: list[dict]

    @classmethod
    def match(cls, before: Iterable[dict], after: Iterable[dict]) -> "Pairs":
        """Those that both have; a run that one of them lacks is left out."""
        first, second = ({row["index"]: row for row in rows} for rows in (before, after))
        both = sorted(first.keys() & second.keys())
        for index in both:
            if made_on(first[index]) != made_on(second[index]):
                raise ValueError(
                    f"run {index} was made on {made_on(first[index])} before, on {made_on(second[index])} "
                    "after: run both on one machine."
                )
        return cls([first[index] for index in both], [second[index] for index in both])

    def values(self, measure: Callable[[dict], float]) -> tuple[np.ndarray, np.ndarray]:
        """A measure of all rows, before and after."""
        return tuple(np.array([measure(row) for row in rows], float) for rows in self)  # pyright: ignore[reportReturnType]

    @property
    def size(self) -> int:
        return len(self.before)

    def num_same(self, measure: Callable[[dict], float]) -> int:
        """Pairs in which it has the same bits."""
        before, after = self.values(measure)
        return int((before == after).sum())


def worse_p(before: np.ndarray, after: np.ndarray) -> float:
    """p that the loss is no larger after; 1 where nothing differs."""
    with np.errstate(invalid="ignore"):
        difference = np.where(before == after, 0.0, after - before)
    if not difference.any():
        return 1.0
    if difference.size == 1:
        return 0.5 if difference[0] > 0 else 1.0
    if not np.isfinite(difference).all():  # an unknown error on one side: ranks stand in for it
        difference = np.sign(difference) * stats.rankdata(np.abs(difference))
    found = stats.permutation_test(
        (difference, np.zeros_like(difference)),
        lambda x, y, axis: (x - y).mean(axis),
        permutation_type="samples",
        alternative="greater",
        n_resamples=_NUM_RESAMPLES,
        vectorized=True,
        batch=2000,
        rng=0,
    )
    return float(found.pvalue)


def log_ratio(before: np.ndarray, after: np.ndarray) -> Ratio:
    """Of two positive measures, by pairs."""
    logs = np.log(after) - np.log(before)
    logs = logs[np.isfinite(logs)]
    if logs.size < 2:
        value = float(np.exp(logs.mean())) if logs.size else np.nan
        return Ratio(value, np.nan, np.nan)
    half = stats.t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / np.sqrt(logs.size)
    return Ratio(*(float(np.exp(logs.mean() + h)) for h in (0.0, -half, half)))
