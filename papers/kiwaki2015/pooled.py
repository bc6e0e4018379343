"""The replicates of a cell taken together, as one run of R N chains.

    Z-hat = mean_r Z_r           1 / ESS = sum_r u_r^2 / ESS_r,   u_r = Z_r / sum_s Z_s
    log Z-hat = log mean exp_r log Z_r           SE(log Z-hat) = sqrt(1 / ESS - 1 / (R N))

These are identities, not approximations: sum w of a replicate is N Z_r / Z_A and its sum w^2 is
(sum w)^2 / ESS_r, so both are the log mean weight and its delta-method error over all R N weights,
the spread between replicates included. log Z-hat is biased low, as for one run.
"""

from typing import NamedTuple

import numpy as np

from annealz.core.weights import log_mean
from results import Cell

__all__ = ["Pooled", "pool"]


class Pooled(NamedTuple):
    """log Z of all chains of a cell, and its standard error."""

    log_z: float
    std_err: float


def pool(cell: Cell, num_chains: int) -> Pooled:
    """The cell's estimate, from replicates of `num_chains` chains each."""
    log_z, ess = cell["log_z"], cell["ess"]
    if not np.isfinite(log_z).all():
        return Pooled(np.nan, np.nan)
    shares = np.exp(log_z - log_z.max())
    shares /= shares.sum()
    error_squared = (shares**2 / ess).sum() - 1 / (log_z.size * num_chains)
    return Pooled(log_mean(log_z), float(np.sqrt(max(error_squared, 0.0))))
