"""log Z from the sums over a round: Bennett's acceptance ratio between neighbouring betas.

For any constant C (Bennett 1976), with s the logistic function and W as in `advance.py`,

    Z_{r+1} / Z_r = e^C E_r[s(W - C)] / E_{r+1}[s(C - W)]

holds exactly, and the variance is least where C is log Z_{r+1} / Z_r itself. C is fixed before the round,
from the rounds before it, so that sums are all that is kept. Sums are pooled over ensembles before the
logarithm:

    log Z = log Z_A + sum_r [C_r + log A_r - log B_r]

Ensembles are independent, sweeps and betas of one ensemble are not. So the error is the jackknife's over
ensembles, with the pseudo-values p_e = E log Z - (E - 1) log Z without ensemble e. The bias is of the order
of the error squared. A pair without any overlap (sums that underflow) gets half the sum of its mean works,
which is not an estimate: no replica passes such a pair and the round has no round trips.
"""

import numpy as np

from annealz.methods.exchange.advance import ABOVE, BELOW, WORK_DOWN, WORK_UP


def log_ratios(sums: np.ndarray, constants: np.ndarray, num_terms: float) -> np.ndarray:
    """log Z_{r+1} / Z_r of every pair from sums (..., pairs, 5) of so many terms each."""
    above, below = sums[..., ABOVE], sums[..., BELOW]
    meet = (above > 0) & (below > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = constants + np.log(above) - np.log(below)
    return np.where(meet, ratios, middles(sums, num_terms))


def middles(sums: np.ndarray, num_terms: float) -> np.ndarray:
    """Half the sum of the mean works of every pair: near log Z_{r+1} / Z_r where the works are Gaussian."""
    return (sums[..., WORK_UP] + sums[..., WORK_DOWN]) / (2 * num_terms)


def log_z_of(sums: np.ndarray, constants: np.ndarray, num_sweeps: int) -> float:
    """log Z_B / Z_A from sums (ensembles, pairs, 5) over so many sweeps."""
    return float(log_ratios(sums.sum(0), constants, len(sums) * num_sweeps).sum())


def pseudo_values(sums: np.ndarray, constants: np.ndarray, num_sweeps: int) -> np.ndarray:
    """(ensembles,): the jackknife's values of log Z_B / Z_A, one per ensemble; of a single one itself."""
    count = len(sums)
    whole = log_z_of(sums, constants, num_sweeps)
    if count == 1:
        return np.array([whole])
    others = sums.sum(0) - sums
    without = log_ratios(others, constants, (count - 1) * num_sweeps).sum(-1)
    return count * whole - (count - 1) * without
