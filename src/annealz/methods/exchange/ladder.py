"""Rounds and betas of replica exchange, as pure functions of what was measured.

Rounds double in length and sum to all sweeps; the last one, half of them, gives the estimate. The betas of
the next round are those at which every pair would be rejected equally often:

    Lambda(beta_r) = r_0 + ... + r_{r-1}            r the mean rejection of each pair
    Lambda(beta'_i) = i / (R - 1) Lambda(1)

Lambda(1) is the communication barrier. It hardly depends on the betas once they are many, and an ensemble
makes at most one round trip in 2 + 2 Lambda sweeps (Syed, Bouchard-Cote, Deligiannidis & Doucet 2022). beta
is interpolated in Lambda monotonically (PCHIP).
"""

import numpy as np

LEAST_SWEEPS = 16
MOST_SWEEPS = 2**31 - 2
_LEAST_ROUNDS = 3
_FIRST_ROUND = 32  # sweeps at least, where that leaves enough rounds
_LEAST_REJECTION = 1e-3  # of a pair: one that is never rejected still takes some room
_LEAST_STEP = 1e-7  # between betas: float32 must distinguish them


def round_lengths(num_sweeps: int) -> list[int]:
    """Sweeps of every round: each about twice the one before, together all of them."""
    count = max(_LEAST_ROUNDS, int(np.log2(max(num_sweeps / _FIRST_ROUND, 1))))
    lengths, left = [], num_sweeps
    for _ in range(count - 1):
        lengths.append(left - left // 2)
        left //= 2
    return [left, *lengths[::-1]]


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
