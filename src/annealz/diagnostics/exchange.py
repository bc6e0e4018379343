"""Can an estimate by replica exchange be trusted?

Replicas that remain at one end of the ladder are nothing but short chains: what they missed shows in no
error. A replica that went from the base to the target and back brought an independent start to the target,
so round trips are the first thing to look at. Fatal are

    round trips          none, or fewer than 5 per ensemble, in the last round
    halves               of the last round differ beyond Student's 0.999
    rounds               the last two differ beyond Student's 0.999
    memory               log Z of the halves, or of the last two rounds, correlates over ensembles, beyond
                         0.995 of chance each

The differences are taken within ensembles (pseudo-values of one minus those of the other), because an
ensemble remembers its first half in its second. How much is the last test: parts of a run that are long
against its slowest mode are nearly independent. It is needed, because round trips need not visit every
mode. From the uniform base the replicas of mnist-cd25-20 made 27 round trips per ensemble in 5,000 sweeps
by way of other modes than the one that holds a third of the mass, and only the memory showed it. Measured,
32 ensembles of 32 temperatures, one number per seed; error in standard errors, memory as the larger of the
two correlations, whose limit is 0.45 for 32 ensembles:

    model, base            sweeps   error                         trips per ensemble   memory
    cd25-20, base rate      2,000   -6.5, -7.0                            3            (rounds differ)
    cd25-20, base rate      4,000   -2.2, -0.7, -1.3                      7            (rounds differ)
    cd25-20, base rate     10,000   -0.1, -1.1, 0.2, -0.7, 0.5,          24            0.07 to 0.41 (of 7)
                                    -1.9, -0.1, -0.2, 1.7, -1.4
    cd25-20, uniform       10,000   -4.8, -1.3, -1.5, -0.7, -3.8         27            0.50 to 0.84
    cd1-20, base rate       4,000   -0.6, 0.4, 1.0, 0.8, -0.3, -0.8      49            -0.08 to 0.28
    cd1-20, uniform         4,000   -4.5, -1.6                            5            0.49, 0.52
    cd1-20, visible bias    4,000   -103, -95                             8            0.87, 0.81

The ten errors of cd25-20 at 10,000 sweeps have the standard deviation 1.02. Its runs at 4,000 are called
unreliable because the round before the last had not settled; a slower opening of the ladder (250 sweeps
instead of 31) changed nothing there. Ten random RBMs and bases (12 to 16 by 30 to 80, 16 ensembles of 24
temperatures, 2,000 sweeps) were ok and within 1.3 standard errors.

False alarms: of 350 runs of a 4 x 6 RBM that mixes at once (8, 16 and 32 ensembles, 400 sweeps), one was
called unreliable, for its memory; 1 % is what the limits allow.

mnist-pcd-20 chose nothing here. From uniform (-6.0, -4.4) it is unreliable, with 3 trips per ensemble. From
the base rate one run is within 1.1 standard errors but remembers (0.55), the other is ok and 3.5 standard
errors too low, by 0.09: what no ensemble has seen shows nowhere.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from annealz.diagnostics.findings import Finding, Findings, Kind, by_kind

if TYPE_CHECKING:
    from annealz.methods.exchange.result import Round

LEAST_ENSEMBLES = 5  # fewer give no error to speak of, and are refused
_LEAST_TRIPS = 5  # per ensemble
_LEVEL = 0.999
_MEMORY_LEVEL = 0.995


def judge_exchange(rounds: "tuple[Round, ...]") -> Findings:
    """Return what speaks against the estimate of the last round; remedies are in sweeps."""
    last = rounds[-1]
    found: list[Finding] = []
    count, trips = last.values.size, int(last.round_trips.sum())
    needed = _LEAST_TRIPS * count
    if trips == 0:
        found.append(Finding.of(Kind.NO_ROUND_TRIPS))
    elif trips < needed:
        found.append(Finding.of(Kind.FEW_ROUND_TRIPS, trips=trips, size=count, needed=needed))
    drift = _contrast(*last.half_values)
    if drift is not None:
        size, error = drift
        found.append(Finding.of(Kind.UNEQUAL_HALVES, size=size, error=error))
    correlation = _correlation(*last.half_values)
    if len(rounds) > 1:
        before = rounds[-2].values
        change = _contrast(before, last.values)
        if change is not None and drift is None:
            size, error = change
            found.append(Finding.of(Kind.UNEQUAL_ROUNDS, size=size, error=error))
        correlation = max(correlation, _correlation(before, last.values))
    limit = float(np.tanh(ndtri(_MEMORY_LEVEL) / np.sqrt(count - 3)))  # Fisher's
    if correlation > limit:
        found.append(Finding.of(Kind.ENSEMBLES_REMEMBER, correlation=correlation, limit=limit))
    return by_kind(found)


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """0 where either is constant."""
    one, other = one - one.mean(), other - other.mean()
    norm = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / norm) if norm > 0 else 0.0


def _contrast(before: np.ndarray, after: np.ndarray) -> tuple[float, float] | None:
    """Return how far log Z moved and the error of that; None if chance explains it."""
    moved = after - before
    error = float(moved.std(ddof=1) / np.sqrt(moved.size))
    limit = float(stdtrit(moved.size - 1, (1 + _LEVEL) / 2))
    size = float(moved.mean())
    return (size, error) if abs(size) > limit * error else None
