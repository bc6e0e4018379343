"""Rounds of replica exchange, as pure functions of what was measured: lengths, ratios, betas and log Z.

Rounds double in length and sum to all sweeps; the last one, half of them, gives the estimate. The betas of
the next round are those at which every pair would be rejected equally often:

    Lambda(beta_r) = r_0 + ... + r_{r-1}            r the mean rejection of each pair
    Lambda(beta'_i) = i / (R - 1) Lambda(1)

Lambda(1) is the communication barrier. It hardly depends on the betas once they are many, and an ensemble
makes at most one round trip in 2 + 2 Lambda sweeps (Syed, Bouchard-Cote, Deligiannidis & Doucet 2022). beta
is interpolated in Lambda monotonically (PCHIP).

log Z comes from Bennett's acceptance ratio between neighbouring betas. For any constant C (Bennett 1976),
with s the logistic function and W as in `advance.py`,

    Z_{r+1} / Z_r = e^C E_r[s(W - C)] / E_{r+1}[s(C - W)]

holds exactly, and the variance is least where C is log Z_{r+1} / Z_r itself. C is fixed before the round,
from the rounds before it, so that sums are all that is kept. Sums are pooled over ensembles before the
logarithm:

    log Z = log Z_A + sum_r [C_r + log A_r - log B_r]

Ensembles are independent, sweeps and betas of one ensemble are not. So the error is the jackknife's over
ensembles, with the pseudo-values p_e = E log Z - (E - 1) log Z without ensemble e. The bias is of the order
of the error squared. A pair without any overlap (sums that underflow) gets half the sum of its mean works,
which is not an estimate: no replica passes such a pair and the round has no round trips.
"""

from typing import Any, NamedTuple

import numpy as np

from annealz.methods.exchange.result import Round

ABOVE, BELOW, REJECTED, WORK_UP, WORK_DOWN = range(5)  # what is summed of a pair, by position
NUM_SUMS = 5
LEAST_SWEEPS = 16
MOST_SWEEPS = 2**31 - 2
_LEAST_ROUNDS = 3
_FIRST_ROUND = 32  # sweeps at least, where that leaves enough rounds
_LEAST_REJECTION = 1e-3  # of a pair: one that is never rejected still takes some room
_LEAST_STEP = 1e-7  # between betas: float32 must distinguish them
Records = list[dict[str, Any]]  # of every half of a round


class HalfRound(NamedTuple):
    """Sweeps first + 1 .. stop."""

    first: int
    stop: int
    is_second: bool

    @property
    def length(self) -> int:
        return self.stop - self.first


class Ladder(NamedTuple):
    """What is fixed during a round."""

    betas: np.ndarray
    constants: np.ndarray


def round_lengths(num_sweeps: int) -> list[int]:
    """Sweeps of every round: each about twice the one before, together all of them."""
    count = max(_LEAST_ROUNDS, int(np.log2(max(num_sweeps / _FIRST_ROUND, 1))))
    lengths, left = [], num_sweeps
    for _ in range(count - 1):
        lengths.append(left - left // 2)
        left //= 2
    return [left, *lengths[::-1]]


def halves_of(num_sweeps: int) -> list[HalfRound]:
    """Return the halves of all rounds."""
    halves, first = [], 0
    for length in round_lengths(num_sweeps):
        middle = first + length // 2
        halves += [HalfRound(first, middle, False), HalfRound(middle, first + length, True)]
        first += length
    return halves


def log_ratios(sums: np.ndarray, constants: np.ndarray, num_terms: float) -> np.ndarray:
    """log Z_{r+1} / Z_r of every pair from sums (..., pairs, 5) of so many terms each."""
    above, below = sums[..., ABOVE], sums[..., BELOW]
    meet = (above > 0) & (below > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = constants + np.log(above) - np.log(below)
    return np.where(meet, ratios, middles(sums, num_terms))


def middles(sums: np.ndarray, num_terms: float) -> np.ndarray:
    """Half the sum of the mean works of every pair: near log Z_{r+1} / Z_r where the works are Gaussian."""
    return (sums[..., WORK_UP] + sums[..., WORK_DOWN]) / (2 * num_terms)


def log_z_of(sums: np.ndarray, constants: np.ndarray, num_sweeps: int) -> float:
    """log Z_B / Z_A from sums (ensembles, pairs, 5) over so many sweeps."""
    return float(log_ratios(sums.sum(0), constants, len(sums) * num_sweeps).sum())


def pseudo_values(sums: np.ndarray, constants: np.ndarray, num_sweeps: int) -> np.ndarray:
    """(ensembles,): the jackknife's values of log Z_B / Z_A, one per ensemble; of a single one itself."""
    count = len(sums)
    whole = log_z_of(sums, constants, num_sweeps)
    if count == 1:
        return np.array([whole])
    others = sums.sum(0) - sums
    without = log_ratios(others, constants, (count - 1) * num_sweeps).sum(-1)
    return count * whole - (count - 1) * without


def equal_rejection(betas: np.ndarray, rejections: np.ndarray) -> np.ndarray:
    """As many betas, with the barrier shared equally among the pairs."""
    from scipy.interpolate import PchipInterpolator  # a third of a second

    barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rejections, _LEAST_REJECTION))])
    wanted = np.linspace(0, barrier[-1], betas.size)
    new = PchipInterpolator(barrier, betas)(wanted)
    new = np.maximum.accumulate(np.clip(new, 0, 1))
    room = _LEAST_STEP * np.arange(betas.size)
    new = np.maximum.accumulate(new - room) + room  # at least one step apart
    new = np.minimum(new, 1 - room[::-1])
    new[0], new[-1] = 0.0, 1.0
    return new


def interpolated(betas: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values known at these betas, at others."""
    from scipy.interpolate import PchipInterpolator

    return PchipInterpolator(betas, values)(at)


def check_ladder(betas, num_rungs: int) -> np.ndarray:
    """The first ladder: the one given, or betas at equal distances."""
    if betas is None:
        return np.linspace(0, 1, num_rungs)
    betas = np.asarray(betas, np.float64)
    is_right = betas.shape == (num_rungs,) and (betas[0], betas[-1]) == (0, 1)
    if not is_right or not (np.diff(betas) >= _LEAST_STEP).all():
        raise ValueError(
            f"betas must be num_rungs = {num_rungs} numbers that rise from 0 to 1, at least "
            f"{_LEAST_STEP:g} apart, got {betas if betas.size < 8 else f'shape {betas.shape}'}."
        )
    return betas


def ladder_after(first: np.ndarray, halves: list[HalfRound], records: Records) -> Ladder:
    """Return the ladder of the round that comes after these halves, or that they are in."""
    done = len(records) // 2  # rounds
    if done == 0:
        return Ladder(first, np.zeros(first.size - 1))
    i = 2 * (done - 1)
    sums, count = _settled(i, halves, records)
    sums, terms = sums.sum(0), len(sums) * count
    betas, constants = records[i]["betas"], records[i]["constants"]
    ratios = middles(sums, terms) if done == 1 else log_ratios(sums, constants, terms)
    log_z = np.concatenate([[0.0], np.cumsum(ratios)])
    new = equal_rejection(betas, sums[:, REJECTED] / terms)
    return Ladder(new, np.diff(interpolated(betas, log_z, new)))


def rounds_of(halves: list[HalfRound], records: Records, log_z0: float) -> tuple[Round, ...]:
    """Return what the sums of all halves come to."""
    rounds = []
    for i in range(0, len(records), 2):
        one, two = records[i : i + 2]
        constants = one["constants"]
        sums, count = _settled(i, halves, records)
        terms = len(sums) * count
        each = [
            pseudo_values(record["sums"], constants, half.length)
            for record, half in zip((one, two), halves[i : i + 2], strict=True)
        ]
        rounds.append(
            Round(
                num_sweeps=halves[i + 1].stop - halves[i].first,
                betas=one["betas"],
                rejections=sums.sum(0)[:, REJECTED] / terms,
                log_ratios=log_ratios(sums.sum(0), constants, terms),
                log_z0=log_z0,
                values=log_z0 + pseudo_values(sums, constants, count),
                half_values=log_z0 + np.array(each),
                round_trips=two["trips"],
            )
        )
    return tuple(rounds)


def _settled(i: int, halves: list[HalfRound], records: Records) -> tuple[np.ndarray, int]:
    """Return the sums of a round and their sweeps; of the first one once its ladder was open."""
    one, two = records[i : i + 2]
    if i == 0:
        return two["sums"], halves[1].length
    return one["sums"] + two["sums"], halves[i + 1].stop - halves[i].first
