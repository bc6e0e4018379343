"""Can an estimate by replica exchange be trusted?

Replicas that stay at one end of the ladder are short chains with a long name: what they missed shows in no
error. A replica that went from the base to the target and back brought an independent start to the target,
so round trips are the first thing to look at. Fatal are

    round trips          none, or fewer than 5 per ensemble, in the last round
    halves               of the last round differ beyond Student's 0.999
    rounds               the last two differ beyond Student's 0.999
    memory               log Z of the halves correlates over ensembles, beyond 0.99 of chance

The differences are taken within ensembles (pseudo-values of one minus those of the other), because an
ensemble remembers its first half in its second. How much is the last test: halves of a round that is long
against the slowest mode are nearly independent. It is needed, because round trips need not visit every
mode. From the uniform base the replicas of mnist-cd25-20 made 27 round trips per ensemble in 5,000 sweeps
by way of other modes than the one that holds a third of the mass, and only the memory showed it. Measured,
32 ensembles of 32 rungs, one number per seed; error in standard errors, memory as the correlation of the
halves, whose limit is 0.41 for 32 ensembles:

    model, base            sweeps   error                              trips per ensemble   memory
    cd25-20, base rate      2,000   -6.5, -7.0                                 3            rounds differ
    cd25-20, base rate      4,000   -2.2, -0.7, -1.3                           7            rounds differ
    cd25-20, base rate     10,000   -0.1, -1.1, 0.2, -0.7, 0.5                24            0.22, 0.37
    cd25-20, uniform       10,000   -1.5, -0.7, -3.8                          27            0.66, 0.71, 0.50
    cd1-20, base rate       4,000   -0.6, 0.4, 1.0, 0.8, -0.3, -0.8           49            -0.17 to 0.16
    cd1-20, uniform         4,000   -4.5, -1.6                                 5            0.49, 0.36
    cd1-20, visible bias    4,000   -103, -95                                  8            0.87, 0.81

Rounds of the first two lines and memory or round trips of the others call unreliable what is off by more
than chance, and cd25-20 at 4,000 sweeps, where the round before the last had not settled. A slower opening
of the ladder (250 sweeps instead of 31) changed nothing there. What no ensemble has seen shows nowhere:
of four runs of mnist-pcd-20, which chose nothing here, two from uniform (-6.0, -4.4) were unreliable; of
two from the base rate, both ok, one was off by 1.1 standard errors and one was 3.5 too low, by 0.09.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from annealz.status import Findings, Found, Message, longer

if TYPE_CHECKING:
    from annealz.replicas.result import Round

__all__ = ["LEAST_ENSEMBLES", "ExchangeJudgement", "judge_exchange"]

LEAST_ENSEMBLES = 5  # fewer give no error to speak of, and are refused
_LEAST_TRIPS = 5  # per ensemble
_LEVEL = 0.999
_MEMORY_LEVEL = 0.99


@dataclasses.dataclass(frozen=True)
class ExchangeJudgement(Found):
    """What to think of the rounds."""

    findings: Findings


def judge_exchange(rounds: "tuple[Round, ...]") -> ExchangeJudgement:
    """What speaks against the estimate of the last round; remedies are told in sweeps."""
    last, findings = rounds[-1], {}
    count, trips = last.values.size, int(last.round_trips.sum())
    advice = longer(sum(one.num_sweeps for one in rounds))

    def find(kind: Message, **values) -> None:
        findings[kind] = kind.say(**values)

    if trips == 0:
        find(Message.NO_ROUND_TRIPS, longer=advice)
    elif trips < _LEAST_TRIPS * count:
        needed = _LEAST_TRIPS * count
        find(Message.FEW_ROUND_TRIPS, trips=trips, size=count, needed=needed, longer=advice)
    drift = _contrast(*last.half_values)
    if drift is not None:
        size, error = drift
        find(Message.UNEQUAL_HALVES, size=size, error=error, longer=advice)
    if len(rounds) > 1:
        change = _contrast(rounds[-2].values, last.values)
        if change is not None and drift is None:
            size, error = change
            find(Message.UNEQUAL_ROUNDS, size=size, error=error, longer=advice)
    correlation = _correlation(*last.half_values)
    limit = float(np.tanh(ndtri(_MEMORY_LEVEL) / np.sqrt(count - 3)))  # Fisher's
    if correlation > limit:
        find(Message.ENSEMBLES_REMEMBER, correlation=correlation, limit=limit, longer=advice)
    return ExchangeJudgement(findings)


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """0 where either is constant."""
    one, other = one - one.mean(), other - other.mean()
    norm = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / norm) if norm > 0 else 0.0


def _contrast(before: np.ndarray, after: np.ndarray) -> tuple[float, float] | None:
    """How far log Z moved and the error of that, where it is more than chance explains."""
    moved = after - before
    error = float(moved.std(ddof=1) / np.sqrt(moved.size))
    limit = float(stdtrit(moved.size - 1, (1 + _LEVEL) / 2))
    size = float(moved.mean())
    return (size, error) if abs(size) > limit * error else None
