"""How log Z settled as chains were added: the estimate from the first n of them.

Chains are independent, so the first n are as good as any n. Forward

    log Z_n = log Z_A + log mean_{i <= n} w_i,      SE_n = sqrt(1 / ESS_n - 1 / n)

from cumulative sums of w and w^2; of a resampled run the same over islands, with n - 1 below. From two
sides BAR of the first n of each. While large weights are still to come log Z_n rises in jumps, and no
band covers where it ends; a curve that remains inside its own last band has settled.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from annealz.diagnostics.ancestry import related_std_err
from annealz.diagnostics.bar import bar

if TYPE_CHECKING:
    from annealz.engine.run import Run

_NUM_POINTS = 40
_FIRST, _FEW = 10, 100  # chains to begin with; of fewer than these, 2


@dataclasses.dataclass(frozen=True)
class Convergence:
    """log Z from the first chains, and its standard error."""

    num_chains: np.ndarray
    log_z: np.ndarray
    std_err: np.ndarray
    """Infinite if it is unknown, as for one chain."""


def log_z_by_chains(run: "Run", reverse: "Run | None" = None) -> Convergence:
    """log Z from the first few chains up to all, at equal ratios; with a reverse run, of each side."""
    size = run.island_size or 1
    counts = _counts(run.num_chains // size)
    if reverse is None:
        log_ratio, std_err = _averages(run.island_log_means, counts, is_corrected=size > 1)
    else:
        joined = [bar(run.work[:n], reverse.work[:n]) for n in counts]
        log_ratio = np.array([one.log_ratio for one in joined])
        std_err = np.array([one.std_err for one in joined])
        if reverse.ancestors is not None and std_err[-1] > 0:  # wider, as that of all chains is
            whole = related_std_err(run.work, reverse.work, reverse.ancestors)
            std_err *= max(1.0, whole / std_err[-1])
    return Convergence(counts * size, run.log_z0 + log_ratio, std_err)


def _counts(num: int) -> np.ndarray:
    points = np.geomspace(min(_FIRST if num >= _FEW else 2, num), num, _NUM_POINTS)
    return np.unique(np.append(np.round(points[:-1]).astype(int), num))


def _averages(
    log_weights: np.ndarray, counts: np.ndarray, is_corrected: bool
) -> tuple[np.ndarray, np.ndarray]:
    log_sum, log_squares = (np.logaddexp.accumulate(p * log_weights)[counts - 1] for p in (1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.exp(log_squares - 2 * log_sum) - 1 / counts  # 1 / ESS - 1 / n
        std_err = np.sqrt(np.maximum(spread, 0) * (counts / (counts - 1) if is_corrected else 1))
    std_err = np.where(counts > 1, std_err, np.inf)
    return log_sum - np.log(counts), std_err
