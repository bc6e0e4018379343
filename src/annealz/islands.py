"""Can an estimate from islands be trusted?

Annealed SMC resamples the chains of an island, so that they are no longer independent. The mean weight
of an island is unbiased all the same, and islands are independent:

    log Z - log Z_A ~ log mean_i m_i,     SE = s(m) / (mean m sqrt(I)),     s with I - 1 below

Interval: Student's with I - 1 degrees of freedom. Measured coverage at nominal 0.95 of log-normal
island means of s.d. s (2000 sets each, 500 for the bootstraps):

                     I = 5                        I = 16                       I = 64
    s        0.1   0.3   0.6   1.0        0.1   0.3   0.6   1.0        0.1   0.3   0.6   1.0
    Student  0.95  0.94  0.92  0.89       0.94  0.95  0.93  0.90       0.95  0.95  0.95  0.92
    studentised
             0.94  0.92  0.92  0.90       0.94  0.94  0.93  0.90       0.95  0.93  0.94  0.92
    percentile
             0.84  0.82  0.81  0.69       0.91  0.90  0.87  0.83       0.93  0.94  0.94  0.90

Trusted from 5 islands on, where half of them or more are effective and Var[log m] <= 1. On 600 sets of
each of three laws (log-normal, two modes, means of 30 heavy weights) at I = 5 to 64:

    s <= 0.6    ok in 0.96 or more of the sets, which cover in 0.87 to 0.97 (two modes, I = 5: from 0.84)
    s = 2       log-normal: ok in 0.11, 0.03, 0.00 at I = 5, 8, 16; heavy weights: 0.56, 0.49, 0.34,
                0.18, 0.04 at I = 5, 8, 16, 32, 64, and these cover in 0.59 down to 0

so that few islands cannot tell a heavy tail: take 16 or more. The limits were chosen on these sets.
"""

import dataclasses

import numpy as np
from scipy.special import stdtrit

from annealz.estimators import delta_std_err, effective_sample_size, log_mean
from annealz.status import Findings, Message, Status, longer, status_of

__all__ = ["IslandJudgement", "judge_islands"]

_MIN_ISLANDS = 5
_MIN_SHARE = 0.5
_MAX_VARIANCE = 1.0


@dataclasses.dataclass(frozen=True)
class IslandJudgement:
    """The average over islands, and what to think of it."""

    island_log_means: np.ndarray
    log_mean: float
    std_err: float
    ess: float
    """Effective islands."""
    variance: float
    """Var[log m] over islands."""
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
        if self.island_log_means.size < 2:
            return -np.inf, np.inf
        half = float(stdtrit(self.island_log_means.size - 1, (1 + level) / 2)) * self.std_err
        return self.log_mean - half, self.log_mean + half


def judge_islands(island_log_means: np.ndarray, num_steps: int | None = None) -> IslandJudgement:
    """The average over independent islands, with its error and its status.

    Parameters
    ----------
    island_log_means : (islands,), log of the mean weight of every island
    num_steps : K, in which remedies are told
    """
    island_log_means = np.asarray(island_log_means, np.float64)
    size, ess = island_log_means.size, effective_sample_size(island_log_means)
    variance = float(np.var(island_log_means, ddof=1)) if size > 1 else np.inf
    findings: dict[Message, str] = {}
    if size < _MIN_ISLANDS:
        kind = Message.TOO_FEW_ISLANDS
        findings[kind] = kind.say(size=size, needed=_MIN_ISLANDS)
    elif ess < _MIN_SHARE * size:
        kind = Message.FEW_EFFECTIVE_ISLANDS
        needed = _MIN_SHARE * size
        findings[kind] = kind.say(ess=ess, size=size, needed=needed, longer=longer(num_steps))
    elif variance > _MAX_VARIANCE:
        kind = Message.WIDE_ISLANDS
        findings[kind] = kind.say(variance=variance, longer=longer(num_steps))
    unbiased = np.sqrt(size / (size - 1)) if size > 1 else 1.0
    return IslandJudgement(
        island_log_means=island_log_means,
        log_mean=log_mean(island_log_means),
        std_err=float(unbiased * delta_std_err(island_log_means)),
        ess=ess,
        variance=variance,
        findings=findings,
    )
