"""Can an estimate from islands be trusted?

Annealed SMC resamples the chains of an island, so that they are no longer independent. The mean weight
of an island is unbiased all the same, and islands are independent:

    log Z - log Z_A ~ log mean_i m_i,     SE = s(m) / (mean m sqrt(I)),     s with I - 1 below

Interval. Island means are skewed to the right: a run that lacks the large ones is low, and thinks that its
error is small. So the upper end is the larger of Student's with I - 1 degrees of freedom and that of a
log-normal mean (Zou, Taleban & Huo 2009, "MOVER"), with y and v the mean and variance of log m,

    y + v/2 + sqrt(z^2 v/I + (v/2)^2 ((I-1)/chi2 - 1)^2),       z, chi2 the quantiles of the level

and the lower end is Student's. Measured coverage at nominal 0.95, 10,000 sets of I log-normal means of
s.d. s; and of real runs of 20 islands, with the share of them that is ok and their coverage (random RBMs,
100,000 chains each, K = 2 to 16; the rule and its limit were chosen on these, `studies/two_sides` holds
runs of other models that test it):

                     I = 5               I = 20              I = 64            s       real, I = 20
    s          0.3   0.6   1.0     0.3   0.6   1.0     0.3   0.6   1.0     of log m   all   ok    and cover
    Student    0.94  0.93  0.89    0.95  0.93  0.90    0.95  0.94  0.92    0.5        0.94  0.99  0.94
                                                                           0.7        0.91  0.84  0.89
                                                                           0.8        0.91  0.51  0.84
                                                                           1.1 - 1.3  0.78  0.04  0.19
    this one   0.95  0.95  0.96    0.95  0.95  0.96    0.95  0.96  0.96    0.5        0.95  0.99  0.95
                                                                           0.7        0.94  0.84  0.93
                                                                           0.8        0.94  0.51  0.91
                                                                           1.1 - 1.3  0.90  0.04  0.34

Trusted from 5 islands on, where half of them or more are effective and Var[log m] <= 0.7. In the last row
that leaves 4 % of the runs ok; most of these miss, and nothing in them shows it. (The limit 1 left
12 %.) Few islands cannot show a heavy tail: take 16 or more.
"""

import dataclasses

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from annealz.core.weights import delta_std_err, effective_sample_size, log_mean
from annealz.diagnostics.findings import Finding, Findings, Kind, by_kind
from annealz.diagnostics.status import Found, check_level

_MIN_ISLANDS = 5
_MIN_SHARE = 0.5
_MAX_VARIANCE = 0.7


@dataclasses.dataclass(frozen=True)
class IslandJudgement(Found):
    """The average over islands, and what to think of it."""

    island_log_means: np.ndarray
    log_mean: float
    std_err: float
    ess: float
    """Effective islands."""
    variance: float
    """Var[log m] over islands."""
    findings: Findings

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the log of the mean weight."""
        check_level(level)
        size = self.island_log_means.size
        if size < 2:
            return -np.inf, np.inf
        half = float(stdtrit(size - 1, (1 + level) / 2)) * self.std_err
        high = _log_normal_high(self.island_log_means.mean(), self.variance, size, level)
        return self.log_mean - half, max(self.log_mean + half, high)


def judge_islands(island_log_means: np.ndarray) -> IslandJudgement:
    """The average over independent islands, with its error and its status.

    Parameters
    ----------
    island_log_means : (islands,), log of the mean weight of every island

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> log_means = np.random.default_rng(0).normal(-0.02, 0.2, 20)  # the mean of e^x is 1
    >>> judged = annealz.judge_islands(log_means)
    >>> judged.status.value, abs(judged.log_mean) < 4 * judged.std_err
    ('ok', True)
    """
    island_log_means = np.asarray(island_log_means, np.float64)
    size, ess = island_log_means.size, effective_sample_size(island_log_means)
    variance = float(np.var(island_log_means, ddof=1)) if size > 1 else np.inf
    found: list[Finding] = []
    if size < _MIN_ISLANDS:
        found.append(Finding.of(Kind.TOO_FEW_ISLANDS, size=size, needed=_MIN_ISLANDS))
    elif ess < _MIN_SHARE * size:
        needed = _MIN_SHARE * size
        found.append(Finding.of(Kind.FEW_EFFECTIVE_ISLANDS, ess=ess, size=size, needed=needed))
    elif variance > _MAX_VARIANCE:
        found.append(Finding.of(Kind.WIDE_ISLANDS, variance=variance, limit=_MAX_VARIANCE))
    unbiased = np.sqrt(size / (size - 1)) if size > 1 else 1.0
    return IslandJudgement(
        island_log_means=island_log_means,
        log_mean=log_mean(island_log_means),
        std_err=float(unbiased * delta_std_err(island_log_means)),
        ess=ess,
        variance=variance,
        findings=by_kind(found),
    )


def _log_normal_high(mean: float, variance: float, size: int, level: float) -> float:
    """Upper end of the interval of the log of a log-normal mean."""
    freedom = size - 1
    chi_square = 2 * gammaincinv(freedom / 2, (1 - level) / 2)
    normal = ndtri((1 + level) / 2) ** 2 * variance / size
    spread = variance / 2 * (freedom / chi_square - 1)
    return float(mean + variance / 2 + np.sqrt(normal + spread**2))
