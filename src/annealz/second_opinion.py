"""A second opinion: chains from an unlike base, and what they say of the first ones.

Weights of chains that all missed a mode look perfect. Chains from another base miss other modes. Two
questions are asked of them:

1. Do the two log Z agree? Both Z-hat are unbiased, and P(log Z-hat > log Z + b) <= e^-b whatever the weights. So a
   second estimate that is higher by more than the errors allow shows that the first is too low, and the
   larger one is the better bound. A second one that is lower contradicts only if its own weights allow to
   trust its error: an estimate that says it is a lower bound allows any value above.

2. Did the first chains reach where the second ones ended? The last states of the second chains are
   annealed back along the first path (in reverse, in K / 8 steps). Work W of such a chain beyond all that forward
   chains had, by a margin, means that forward chains do not come there: Crooks's theorem gives forward
   chains the density of reverse ones times e^-(W - log Z_B/Z_A). With w the weights of the second chains and A those of them with
   such work,

       missed = sum_A w / (N2 Z-hat / Z_0)           an unbiased estimate of (mass of the region A) / Z

   A region of small mass is of no concern: it counts from 3 % on. This sees a mode of a third of the
   mass even where the second log Z is uncertain by a nat.

The margin is 3 nats, and what shorter chains add: 4 standard deviations of the reverse work that the first chains' own
variance predicts for them.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import logsumexp

from annealz.diagnostics import Judgement
from annealz.islands import IslandJudgement
from annealz.numerics import finite_or_none
from annealz.status import Findings, Message, Status, status_of

__all__ = ["Probe", "SecondOpinion", "compare_opinions"]

_MAX_Z = 3.0
_LEAST_DIFFERENCE = 0.01  # nats: below, rounding and nothing else
_MARGIN = 3.0  # nats of work
_WIDTHS = 4.0
_MISSED = 0.03  # of the mass
_LEFT_BEHIND = 10.0  # nats below the mean weight: such chains carry nothing


@dataclasses.dataclass(frozen=True)
class SecondOpinion:
    """log Z from a second base, and whether it confirms the first.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), num_steps=1000, num_chains=200)
    >>> opinion = estimate.second_opinion
    >>> opinion.base != estimate.base, opinion.confirms
    (True, True)
    >>> abs(opinion.difference) < 4 * opinion.difference_std_err
    True
    """

    base: str
    log_z: float
    judgement: Judgement | IslandJudgement
    """Of the second chains' own weights."""
    log_z0: float
    difference: float
    """The second log Z less the first."""
    difference_std_err: float
    missed: float
    """Share of the mass that the second chains hold and the first ones did not reach."""
    findings: Findings

    @property
    def std_err(self) -> float:
        """Standard error of the second log Z."""
        return self.judgement.std_err

    @property
    def confirms(self) -> bool:
        """Whether nothing in it contradicts the first estimate."""
        return status_of(self.findings) is Status.OK

    @property
    def is_higher(self) -> bool:
        """Whether it contradicts by a larger log Z, the better bound."""
        return Message.SECOND_IS_HIGHER in self.findings

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the second log Z."""
        low, high = self.judgement.interval(level)
        return self.log_z0 + low, self.log_z0 + high

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "base": self.base,
            "log_z": self.log_z,
            "std_err": finite_or_none(self.std_err),
            "status": self.judgement.status.value,
            "difference": self.difference,
            "difference_std_err": finite_or_none(self.difference_std_err),
            "missed": self.missed,
            "confirms": self.confirms,
        }


@dataclasses.dataclass(frozen=True)
class Probe:
    """Where the second chains ended, seen along the first path."""

    first_work: np.ndarray
    """(first chains,), log w forward."""
    log_ratio: float
    """log of their mean weight."""
    reverse_work: np.ndarray
    """(second chains,), back along the first path."""
    second_log_weights: np.ndarray
    """(second chains,), log w of these, counted from the base of the first path."""
    lengthening: float
    """Steps of the first chains over those of the reverse ones."""

    @property
    def missed(self) -> float:
        """Share of Z in the states that the first chains do not reach."""
        work, ratio = self.first_work, self.log_ratio
        bulk = work[work > ratio - _LEFT_BEHIND]
        spread = np.sqrt(self.lengthening * np.var(bulk)) if bulk.size > 1 else 0.0
        reach = max(float(work.max()), ratio + _WIDTHS * spread) + _MARGIN
        beyond = self.reverse_work > reach
        if not beyond.any():
            return 0.0
        log_sum = logsumexp(self.second_log_weights[beyond])
        return float(np.exp(log_sum - np.log(beyond.size) - ratio))


def compare_opinions(
    log_z: float,
    std_err: float,
    second: Judgement | IslandJudgement,
    *,
    log_z0: float,
    base: str,
    probe: Probe | None = None,
) -> SecondOpinion:
    """What a second estimate says of the first, `log_z` with its `std_err`.

    Parameters
    ----------
    second : the judgement of the second chains' weights
    log_z0 : log Z_A of the second path
    base : the name of the second base
    probe : the second question, where it was asked
    """
    own = log_z0 + second.log_mean
    difference, noise = own - log_z, float(np.hypot(std_err, second.std_err))
    allowed = max(_MAX_Z * noise, _LEAST_DIFFERENCE) if np.isfinite(noise) else np.inf
    missed = 0.0 if probe is None else probe.missed
    values = {"base": base, "second": own, "first": log_z, "difference": abs(difference)}
    values["noise"] = noise
    findings: dict[Message, str] = {}
    if difference > allowed:
        findings[Message.SECOND_IS_HIGHER] = Message.SECOND_IS_HIGHER.say(**values)
    elif difference < -allowed and second.status is Status.OK:
        findings[Message.SECOND_IS_LOWER] = Message.SECOND_IS_LOWER.say(**values)
    if missed > _MISSED:
        kind = Message.MISSED_REGION
        findings[kind] = kind.say(base=base, missed=100 * missed)
    return SecondOpinion(
        base=base,
        log_z=own,
        judgement=second,
        log_z0=log_z0,
        difference=difference,
        difference_std_err=noise,
        missed=missed,
        findings=findings,
    )
