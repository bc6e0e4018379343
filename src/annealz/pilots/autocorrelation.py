"""Integrated autocorrelation time of a stationary chain, from many short ones.

    c_l = Cov(U_t, U_{t+l}),     rho_l = c_l / c_0,     tau = 1 + 2 sum_{l >= 1} rho_l

c_l is averaged over chains and centred on the mean over chains and time: a chain that stays in its own
mode adds to every lag, as it does to the variance of log w. Centred on its own mean, as is usual for one
long chain, it would add to none.

The sum is cut by Geyer's initial monotone sequence (1992): sums of neighbouring pairs of a reversible
chain are positive and fall, so that the sum ends where they cease to. Lags beyond half the length T are not
used. Where rho is still above a tenth there, or the sum was not cut, tau is not resolved: what lies beyond
is guessed from an exponential through rho at T/4 and T/2,

    tau += 2 rho_{T/2} theta,     theta = (T/4) / log(rho_{T/4} / rho_{T/2}), at most 2 T

and tau is marked as a lower bound, since slower modes may hide behind.
"""

from typing import NamedTuple

import numpy as np

_LEAST_TAU = 0.01  # an antithetic chain can have a tau near 0, none below
_BOUND_CORRELATION = 0.1
_LONGEST_TAIL = 2.0  # lengths: what a run cannot see decay is not guessed to be longer


class Memory(NamedTuple):
    """How a stationary chain varies and remembers."""

    mean: float
    variance: float
    tau: float
    is_bound: bool  # whether tau is only a lower bound


def measure_memory(values: np.ndarray) -> Memory:
    """Mean, variance and autocorrelation time of chains in equilibrium, (time, chains)."""
    length, num_chains = values.shape
    mean = values.mean()
    centred = values - mean
    size = 1 << (2 * length - 1).bit_length()  # a prime number would take ten times as long
    size = 3 * size // 4 if 3 * size >= 8 * length else size
    terms = np.fft.rfft(np.ascontiguousarray(centred.T), size)
    products = np.fft.irfft((terms.real**2 + terms.imag**2).mean(0), size)[:length]
    covariances = products / (length - np.arange(length))
    variance = float(covariances[0] * (length * num_chains) / max(length * num_chains - 1, 1))
    if covariances[0] <= 1e-12 * max(mean**2, np.finfo(float).tiny):
        return Memory(float(mean), max(variance, 0.0), 1.0, False)
    correlations = covariances[: max(length // 2, 1)] / covariances[0]
    even = correlations.size // 2 * 2
    if even < 2:
        return Memory(float(mean), variance, 1.0, True)
    pairs = np.minimum.accumulate(correlations[0:even:2] + correlations[1:even:2])
    ends = np.flatnonzero(pairs <= 0)
    count = ends[0] if ends.size else pairs.size
    tau = max(float(2 * pairs[:count].sum() - 1), _LEAST_TAU)
    is_bound = bool(correlations[-1] > _BOUND_CORRELATION or not ends.size)
    if is_bound:
        tau = max(tau, float(2 * pairs[:count].sum() - 1) + _beyond(correlations))
    return Memory(float(mean), variance, tau, is_bound)


def _beyond(correlations: np.ndarray) -> float:
    """What lags beyond the last one add to tau, if the correlations fall as an exponential there."""
    last = correlations.size
    width = max(1, last // 8)  # lags averaged over
    middle = last // 2
    late = float(correlations[-width:].mean())
    early = float(correlations[middle - width // 2 : middle - width // 2 + width].mean())
    if late <= 0 or early <= 0:
        return 0.0
    longest = 2 * last * _LONGEST_TAIL
    decay = np.log(early / late) / (last - width / 2 - middle)
    return 2 * late * float(min(1 / decay, longest) if decay > 0 else longest)
