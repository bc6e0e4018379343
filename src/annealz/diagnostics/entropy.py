"""The entropy of a target, from the weights and the last states of forward chains.

    S  = log Z - E[g],                    g(x) = log p*(x)
    S^ = log Z_A + log mean w - m,        m = sum_i W_i g_i,    W_i = w_i / sum_j w_j

The last states have made their last move at beta = 1, so that W weighs them (`methods/posterior.py`).
Both terms come from the same chains, and their errors are not independent. To first order chain i moves

    log mean w  by  (N W_i - 1) / N           m  by  W_i (g_i - m)

and so S^ by psi_i / N, from which the error of the joint estimator follows (the delta method):

    psi_i = N W_i (1 - (g_i - m)) - 1,        sum_i psi_i = 0,        SE^2 = sum_i psi_i^2 / (N (N - 1))

Over islands, which were resampled, psi is the mean over each and N their number. The two errors may add up
or cancel; that of the mean is mostly the larger one, by sqrt(Var[g] / ESS_g) below.

Bias: of order 1 / ESS, -(1/ESS - 1/N) / 2 from log Z and + sum_i W_i^2 (g_i - m) from the mean; small
beside the error from 25 effective chains on.

Interval: the studentised bootstrap over chains, t* = (S* - S^) / SE*, widened on both sides by
sqrt(ESS / predicted ESS) where the bulk of the weights predicts fewer effective chains than were drawn
(`diagnostics.py`); normal from 1000 effective chains on; Student's over islands.

The mean has an ESS of its own, the number of draws from the target whose mean of g has the same error,

    ESS_g = Var_W[g] / SE(m)^2,       Var_W[g] = sum_i W_i (g_i - m)^2,    at least 25

and the terms w |g - m| a tail of their own, k-hat of which must lie below 0.7. g alone has a light one, for
P(g < -t) falls like e^-t; the limit of the weights' k-hat, which is lower for few chains, would refuse 27 %
of sets of 100 squared normal g of nearly equal weights.
"""

import dataclasses

import numpy as np
from scipy.special import ndtri, stdtrit

from annealz.core.weights import batches, effective_sample_size, foretold_sample_size, log_mean
from annealz.diagnostics.diagnostics import pareto_k
from annealz.diagnostics.findings import Finding, Findings, Kind, by_kind
from annealz.diagnostics.status import Found, check_level

_MIN_ESS = 25
_MIN_CHAINS = 25
_MAX_K = 0.7
_MIN_DELTA_ESS = 1000
_NUM_RESAMPLES = 999


@dataclasses.dataclass(frozen=True)
class EntropyJudgement(Found):
    """An entropy less log Z_A, its error, and what to think of it."""

    log_weights: np.ndarray
    log_densities: np.ndarray  # (chains,): g; of chains without weight zero
    value: float  # log mean w - m
    std_err: float
    mean: float  # m
    mean_std_err: float
    mean_ess: float  # ESS_g
    island_size: int | None
    findings: Findings

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of `value`."""
        check_level(level)
        size = self.log_weights.size
        if self.island_size is not None:
            freedom = size // self.island_size - 1
            half = float(stdtrit(freedom, (1 + level) / 2)) * self.std_err if freedom else np.inf
            return self.value - half, self.value + half
        ess = effective_sample_size(self.log_weights)
        predicted = foretold_sample_size(self.log_weights)
        if min(ess, predicted) >= _MIN_DELTA_ESS:
            low, high = ndtri((1 - level) / 2), ndtri((1 + level) / 2)
        elif size < 10:  # too few to resample
            return -np.inf, np.inf
        else:
            low, high = np.quantile(self._ratios(), [(1 - level) / 2, (1 + level) / 2])
        error = self.std_err * max(1.0, float(np.sqrt(ess / predicted)))
        return float(self.value - high * error), float(self.value - low * error)

    def _ratios(self) -> np.ndarray:
        """t* of resamples of the chains."""
        size = self.log_weights.size
        w = np.exp(self.log_weights - self.log_weights.max())
        w /= w.mean()
        g = self.log_densities - self.mean
        table = np.stack([w, w * g, w**2, w**2 * g, w**2 * g**2], 1)
        generator = np.random.default_rng(0)
        found = []
        for count in batches(_NUM_RESAMPLES, size):
            chosen = generator.integers(size, size=(count, size)) + size * np.arange(count)[:, None]
            drawn = np.bincount(chosen.ravel(), minlength=count * size).reshape(count, size)
            mean_w, mean_wg, w2, w2g, w2g2 = (drawn @ table / size).T
            m = mean_wg / mean_w  # of the resample, less the mean of all
            a = 1 + m
            variance = (a**2 * w2 - 2 * a * w2g + w2g2) / mean_w**2 - 1  # mean of psi^2
            varied = variance > 0  # a resample of one value says nothing about the spread
            errors = np.sqrt(variance[varied] / (size - 1))
            found.append((np.log(mean_w) - m)[varied] / errors)
        ratios = np.concatenate(found)
        return ratios if ratios.size else np.zeros(1)


def judge_entropy(
    log_weights: np.ndarray, log_densities: np.ndarray, island_size: int | None = None
) -> EntropyJudgement:
    """log mean w - m of a forward run, with its error and its status.

    `log_densities` are log p* of the last states; `island_size` is None where no islands were resampled.
    """
    log_weights = np.asarray(log_weights, np.float64)
    size = log_weights.size
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    g = np.where(weights > 0, np.asarray(log_densities, np.float64), 0.0)
    mean = float(weights @ g)
    terms = weights * (g - mean)
    std_err = _error(size * (weights - terms) - 1, island_size)
    mean_std_err = _error(size * terms, island_size)
    variance = float(terms @ (g - mean))
    mean_ess = float(min(variance / mean_std_err**2, size)) if mean_std_err > 0 else float(size)
    found: list[Finding] = []
    if island_size is None and size >= _MIN_CHAINS and variance > 0:
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(g - mean)) + log_weights
        k = pareto_k(np.maximum(logs, logs.max() - 700))
        if not k < _MAX_K:
            found.append(Finding.of(Kind.HEAVY_TERMS, k=k, limit=_MAX_K))
    if mean_ess < _MIN_ESS <= size:
        found.append(Finding.of(Kind.FEW_EFFECTIVE_TERMS, ess=mean_ess, size=size, needed=_MIN_ESS))
    return EntropyJudgement(
        log_weights=log_weights,
        log_densities=g,
        value=log_mean(log_weights) - mean,
        std_err=std_err,
        mean=mean,
        mean_std_err=mean_std_err,
        mean_ess=mean_ess,
        island_size=island_size,
        findings=by_kind(found),
    )


def _error(psi: np.ndarray, island_size: int | None) -> float:
    """Standard error of a mean whose parts psi have the sum zero; infinite for one part."""
    groups = psi.reshape(-1, island_size or 1).mean(1)
    count = groups.size
    return float(np.sqrt((groups**2).sum() / (count * (count - 1)))) if count > 1 else np.inf
