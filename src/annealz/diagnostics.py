"""Can this estimate be trusted?

Importance weights fail silently: when their tail is heavy, the few weights that make the mean are
rarely drawn, and both the mean and its apparent error come out too small. Read from the weights:

    Pareto k-hat     of the largest weights (PSIS; Vehtari et al. 2024), trusted below
                     min(1 - 1 / log10 N, 0.7)
    ESS              at least 25; at least 100 where k-hat is 0.5 or more, because the variance of
                     such weights is infinite and a few of them tell too little
    Var[log w]       up to 1 the delta method's interval covers; above, the studentised bootstrap's

A failure of the first two makes the estimate a likely lower bound. A large variance alone is only
mentioned: chains left behind with small weights widen log w and cost nothing but their own work.
No symptom shows a region that no chain has reached.
"""

import dataclasses

import numpy as np
from arviz_stats.base.array import array_stats

from annealz.estimators import (
    bootstrap_interval,
    delta_interval,
    delta_std_err,
    effective_sample_size,
    log_mean,
)
from annealz.status import Findings, Message, Status, longer, status_of

__all__ = ["Judgement", "judge", "pareto_k", "pareto_k_limit"]

_MIN_CHAINS = 25
_MIN_ESS = 25
_MIN_ESS_OF_HEAVY_TAILS = 100
_HEAVY_TAIL = 0.5
_MAX_DELTA_VARIANCE = 1.0


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The importance average of a set of weights, and what to think of it."""

    log_weights: np.ndarray
    log_mean: float
    std_err: float
    ess: float
    variance: float
    """Var[log w]."""
    pareto_k: float
    findings: Findings

    @property
    def status(self) -> Status:
        return status_of(self.findings)

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(self.findings.values())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the log of the mean weight."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}.")
        is_light = self.pareto_k < pareto_k_limit(self.log_weights.size) and self.ess >= _MIN_ESS
        if self.variance <= _MAX_DELTA_VARIANCE and is_light:
            return delta_interval(self.log_weights, level)
        return bootstrap_interval(self.log_weights, level)


def judge(log_weights: np.ndarray, num_steps: int | None = None) -> Judgement:
    """The importance average with its error and its status; remedies are told in `num_steps`."""
    size = log_weights.size
    ess, k = effective_sample_size(log_weights), pareto_k(log_weights)
    limit, variance = pareto_k_limit(size), float(np.var(log_weights))
    advice = longer(num_steps)
    findings: dict[Message, str] = {}
    if size < _MIN_CHAINS and np.isnan(k):
        kind = Message.TOO_FEW_CHAINS
        findings[kind] = kind.say(size=size, needed=_MIN_CHAINS, chains=4 * _MIN_CHAINS)
    elif not k < limit:
        kind = Message.HEAVY_TAIL
        findings[kind] = kind.say(k=k, limit=limit, longer=advice)
    needed = _MIN_ESS_OF_HEAVY_TAILS if k >= _HEAVY_TAIL else _MIN_ESS
    if ess < needed <= size:
        kind = Message.FEW_EFFECTIVE_CHAINS
        findings[kind] = kind.say(ess=ess, size=size, needed=needed, longer=advice)
    if not findings and variance > _MAX_DELTA_VARIANCE:
        kind = Message.WIDE_WEIGHTS
        findings[kind] = kind.say(variance=variance, longer=advice)
    return Judgement(
        log_weights=log_weights,
        log_mean=log_mean(log_weights),
        std_err=delta_std_err(log_weights),
        ess=ess,
        variance=variance,
        pareto_k=k,
        findings=findings,
    )


def pareto_k(log_weights: np.ndarray) -> float:
    """Shape of the generalised Pareto distribution fitted to the largest weights.

    NaN where there are too few chains to fit one; -inf for weights that are all equal.
    """
    log_weights = np.asarray(log_weights, np.float64)
    if log_weights.size > 1 and np.ptp(log_weights) == 0:
        return -np.inf
    if log_weights.size < _MIN_CHAINS:
        return np.nan
    try:
        with np.errstate(all="ignore"):
            return float(array_stats.psislw(log_weights.max() - log_weights)[1])  # takes -log w
    except ValueError:  # the largest weights are all equal: a bounded tail
        return -np.inf


def pareto_k_limit(num_chains: int) -> float:
    """Largest k-hat at which the mean of this many weights is trusted."""
    return min(1 - 1 / np.log10(max(num_chains, 2)), 0.7)
