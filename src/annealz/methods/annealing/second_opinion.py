"""A second opinion: chains from an unlike base, and what they say of the first ones.

Weights of chains that all missed a mode look perfect. Chains from another base miss other modes. Two
questions are asked of them:

1. Do the two log Z agree? Both Z-hat are unbiased, and P(log Z-hat > log Z + b) <= e^-b whatever the
   weights. So a second estimate that is higher by more than the errors allow (2.5 standard errors) shows
   that the first is too low, and the larger one is the better bound. A second one that is lower (by 3)
   contradicts only if its own weights allow to trust its error: an estimate that says it is a lower bound
   allows any value above.

2. Did the first chains reach where the second ones ended? Some of their last states are annealed back
   along the first path. By Crooks's theorem the work W of reverse chains from the target is distributed as
   that of forward chains under their weights: around D + V/2 with variance V, D = log Z_B/Z_A and V the
   variance over forward chains that carry weight. W far beyond, above D + V/2 + 2.5 sqrt V + 1, means that
   forward chains come to this state too rarely, by e^-(W - D). With state i taken n times with chance c_i
   among the N2 second chains, and A those with such work,

       missed = 1/n sum_A w_i / (N2 c_i) / (Z-hat / Z_A)        unbiased for (mass of the region A) / Z

   A region of small mass is of no concern: it counts from 5 % on, and from 3 states on. This sees a mode
   of a third of the mass even where the second log Z is uncertain by a nat.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy.special import logsumexp

from annealz.core.numerics import with_error
from annealz.core.random import derive_seed
from annealz.core.weights import flattened, resample
from annealz.diagnostics.diagnostics import NO_WEIGHT, IslandJudgement, Judgement
from annealz.diagnostics.findings import Finding, Findings, Kind, by_kind
from annealz.diagnostics.sheet import record_of
from annealz.diagnostics.status import Status, status_of
from annealz.engine.run import Run
from annealz.paths.tempered import ZERO_DENSITY

_MAX_HIGHER, _MAX_LOWER = 2.5, 3.0  # standard errors
_LEAST_DIFFERENCE = 0.01  # nats: below, rounding and nothing else
_MARGIN, _WIDTHS = 1.0, 2.5  # nats of work, and standard deviations
_MISSED = 0.05  # of the mass
_LEAST_STATES = 3
_LEAST_PROBED = 50
_LEFT_BEHIND = 5.0  # nats below the mean weight: such chains carry nothing


@dataclasses.dataclass(frozen=True)
class Probe:
    """Where second chains ended, seen along the first path."""

    first_work: np.ndarray
    """(first chains,), log w forward."""
    log_ratio: float
    """log of their mean weight."""
    reverse_work: np.ndarray
    """(probed,), back along the first path."""
    log_masses: np.ndarray
    """(probed,), log of w_i / (N2 c_i), to the scale of the first work."""

    @property
    def reach(self) -> float:
        """The work up to which reverse chains are what forward chains lead to expect."""
        work, ratio = self.first_work, self.log_ratio
        is_alive = work > work.max() - NO_WEIGHT  # no reverse chain ends where the density is zero
        ratio = ratio - float(np.log(is_alive.mean()))
        carrying = work[work > ratio - _LEFT_BEHIND]
        variance = float(np.var(carrying)) if carrying.size > 1 else 0.0
        return ratio + variance / 2 + _WIDTHS * np.sqrt(variance) + _MARGIN

    @property
    def missed(self) -> float:
        """Share of Z in states that the first chains do not reach; 0 for too few to decide."""
        beyond = self.reverse_work > self.reach
        if beyond.sum() < _LEAST_STATES:
            return 0.0
        log_mean = logsumexp(self.log_masses[beyond]) - np.log(beyond.size)
        return float(np.exp(min(log_mean - self.log_ratio, 0.0)))


@dataclasses.dataclass(frozen=True)
class SecondOpinion:
    """log Z from a second base, and whether it confirms the first."""

    first_log_z: float
    first_std_err: float
    judgement: Judgement | IslandJudgement
    """Of the second chains' own weights."""
    log_z0: float
    """Of the second path."""
    base: str
    probe: Probe | None = None
    """The second question, if it was asked."""

    @property
    def log_z(self) -> float:
        """log Z from the second chains."""
        return self.log_z0 + self.judgement.log_mean

    @property
    def std_err(self) -> float:
        """Standard error of the second log Z."""
        return self.judgement.std_err

    @property
    def difference(self) -> float:
        """The second log Z less the first."""
        return self.log_z - self.first_log_z

    @property
    def difference_std_err(self) -> float:
        """Of both together."""
        return float(np.hypot(self.first_std_err, self.std_err))

    @functools.cached_property
    def missed(self) -> float:
        """Share of the mass that the second chains hold and the first ones did not reach."""
        return 0.0 if self.probe is None else self.probe.missed

    @functools.cached_property
    def findings(self) -> Findings:
        """What contradicts the first estimate."""
        noise, base, missed = self.difference_std_err, self.base, self.missed
        higher, lower = (max(z * noise, _LEAST_DIFFERENCE) for z in (_MAX_HIGHER, _MAX_LOWER))
        values: dict[str, Any] = {"base": base, "second": self.log_z, "first": self.first_log_z}
        values |= {"difference": abs(self.difference), "noise": noise}
        found: list[Finding] = []
        if self.difference > higher:
            found.append(Finding.of(Kind.SECOND_IS_HIGHER, **values))
        elif self.difference < -lower and self.judgement.status is Status.OK:
            found.append(Finding.of(Kind.SECOND_IS_LOWER, **values))
        if missed > _MISSED:
            share = 100 * missed / (1 + missed)
            found.append(Finding.of(Kind.MISSED_REGION, base=base, missed=share))
        return by_kind(found)

    @property
    def confirms(self) -> bool:
        """Whether nothing in it contradicts the first estimate."""
        return status_of(self.findings) is Status.OK

    @property
    def is_higher(self) -> bool:
        """Whether it contradicts by a larger log Z, the better bound."""
        return Kind.SECOND_IS_HIGHER in self.findings

    @property
    def in_words(self) -> str:
        """The second log Z, and what it says of the first."""
        words = f"{with_error(self.log_z, self.std_err)} from {self.base}"
        if not self.confirms:
            return f"{words}: contradicts"
        if self.judgement.status is Status.UNRELIABLE:
            side = "higher" if self.difference > 0 else "lower"
            return f"{words}: uncertain, {abs(self.difference):.4f} {side}, no contradiction"
        return f"{words}: agrees"

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the second log Z."""
        low, high = self.judgement.interval(level)
        return self.log_z0 + low, self.log_z0 + high

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            **record_of(self, "base log_z std_err"),
            "status": self.judgement.status.value,
            **record_of(self, "difference difference_std_err missed confirms"),
        }


def probed_chains(second: Run) -> tuple[np.ndarray, np.ndarray]:
    """Second chains whose ends are probed, and log(N2 c_i) of each: by flattened weights, so that a few
    chains of large weight do not stand for all. Some of them have weight.
    """
    log_weights, size = second.log_weights, second.num_chains
    count = max(size // 2, min(size, _LEAST_PROBED))
    is_alive = log_weights > ZERO_DENSITY / 2
    chances = np.zeros(log_weights.size)  # from where the density is zero no way leads back
    chances[is_alive] = flattened(log_weights[is_alive], min(count, is_alive.sum()))
    generator = np.random.default_rng(derive_seed(second.seed, "probed"))
    with np.errstate(divide="ignore"):
        chains = resample(np.log(chances), generator, count)
    return chains, np.log(log_weights.size * chances[chains])
