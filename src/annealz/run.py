"""What the engine returns: log weights, traces along the path, and what they cost.

    log w_i = sum_k log p*_{beta_k}(v_{k-1}) - log p*_{beta_{k-1}}(v_{k-1}),   log Z = log Z_A + log mean w

The trace holds on-the-fly statistics at the recorded steps k: `log_z` estimates log Z of
p*_{beta_k}, `ess` is (sum w)^2 / sum w^2 = N / (1 + s^2), s^2 the variance of N w / sum w.
"""

import dataclasses
from typing import Any

import numpy as np

from annealz.schedules.schedule import Schedule

__all__ = ["Run", "Trace"]


@dataclasses.dataclass(frozen=True)
class Trace:
    """On-the-fly statistics at the recorded steps; `means` and `variances` by observer name."""

    steps: np.ndarray
    betas: np.ndarray
    log_z: np.ndarray
    ess: np.ndarray
    means: dict[str, np.ndarray]
    variances: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Run:
    """One annealing of `num_chains` independent chains over a frozen schedule."""

    log_weights: np.ndarray
    """(chains,), float64: log w, so that E[w] = Z_B / Z_A."""
    log_z0: float
    """log Z_A, exact."""
    schedule: Schedule
    seed: int
    purpose: str
    trace: Trace
    states: np.ndarray
    """(chains, …): where the chains ended, after the last move."""
    carries: dict[str, Any]
    """What each observer carried to the end, chain axis first."""
    seconds: float
    messages: tuple[str, ...] = ()

    @property
    def num_chains(self) -> int:
        return self.log_weights.size

    @property
    def num_steps(self) -> int:
        return self.schedule.num_steps

    @property
    def sweeps(self) -> int:
        """Applications of the kernel to one chain."""
        return self.num_steps * self.num_chains
