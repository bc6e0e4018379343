"""The problem that every contestant solves: log Z of a random binary RBM, from its visible bias.

    W_ij ~ N(0, 0.05^2),   a_i ~ N(0, 0.1^2),   b_j ~ N(-1, 1)

in float32, with D = 784 visible units and N = 1000 chains. The base is the product of Bernoullis
with the model's own visible bias, the schedule is linear and a step is one block Gibbs sweep: what
the package rbms does, so that all contestants run one algorithm.
"""

from typing import NamedTuple

import numpy as np

from annealz.models.rbm import RBM

__all__ = ["NUM_CHAINS", "NUM_HIDDEN", "NUM_VISIBLE", "Timing", "random_rbm", "standard_error"]

NUM_VISIBLE = 784
NUM_HIDDEN = (20, 500)
NUM_CHAINS = 1000


class Timing(NamedTuple):
    """Wall-clock seconds of one call, and the estimate that it gave, where it gives one."""

    seconds: float
    log_z: float | None = None
    std_err: float | None = None


def random_rbm(num_hidden: int, num_visible: int = NUM_VISIBLE, seed: int = 0) -> RBM:
    """The same RBM on every machine."""
    generator = np.random.default_rng([seed, num_hidden])
    return RBM(
        generator.normal(0, 0.05, (num_hidden, num_visible)),
        generator.normal(0, 0.1, num_hidden),
        generator.normal(-1, 1, num_visible),
    )


def standard_error(log_weights: np.ndarray) -> float:
    """Standard error of log mean w: the coefficient of variation of w over sqrt(N)."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.std() / weights.mean() / np.sqrt(weights.size))
