"""Exact log Z and draws of models with binary hidden units and visible units of another kind, in float64.

    log p*(h) = a.h + A(b + W^T h) + f,      Z = sum over 2^m states of p*(h)

A is what the visible units leave when they are summed out (`annealz.core.units`).
"""

from collections.abc import Iterator

import numpy as np

from annealz.core.numerics import log_sum
from annealz.core.random import check_seed
from annealz.core.units import AbstractUnits
from annealz.core.weights import draw_independent
from annealz.models.exact import MAX_UNITS, states_of

__all__ = ["draw_hidden", "is_cheap", "log_sum_of_hidden"]

_CHEAP = 2**22  # fields that nobody waits for
_TABLE = 2**20  # fields at a time


def is_cheap(num_hidden: int, num_fields: int) -> bool:
    """Whether the sum over the hidden states takes no time."""
    return num_hidden <= MAX_UNITS and 2**num_hidden * num_fields <= _CHEAP


def log_sum_of_hidden(
    weights: np.ndarray, hidden_bias: np.ndarray, visible_bias: np.ndarray, units: AbstractUnits
) -> float:
    """log Z less f; weights are (hidden, fields of the visible units)."""
    tables = _tables(weights, hidden_bias, visible_bias, units)
    return log_sum(np.array([log_sum(table) for table in tables]))


def draw_hidden(
    weights: np.ndarray,
    hidden_bias: np.ndarray,
    visible_bias: np.ndarray,
    units: AbstractUnits,
    num_draws: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Independent draws of the hidden units (draws, hidden), and the fields of the visible ones."""
    log_weights = np.concatenate(list(_tables(weights, hidden_bias, visible_bias, units)))
    generator = np.random.default_rng(check_seed(seed))
    chosen = draw_independent(np.exp(log_weights - log_weights.max()), generator, num_draws)
    hidden = states_of(chosen, len(hidden_bias))
    return hidden.astype(np.float32), visible_bias + hidden @ weights


def _tables(weights, hidden_bias, visible_bias, units: AbstractUnits) -> Iterator[np.ndarray]:
    """log p*(h) less f, of consecutive states of the hidden units."""
    count = len(hidden_bias)
    if count > MAX_UNITS:
        raise ValueError(
            f"exact enumeration takes at most {MAX_UNITS} hidden units, got {count}: it would sum "
            f"2^{count} = {2.0**count:.1e} states."
        )
    size = max(1, _TABLE // len(visible_bias))
    for first in range(0, 2**count, size):
        hidden = states_of(np.arange(first, min(first + size, 2**count)), count)
        yield hidden @ hidden_bias + units.exact_log_z(visible_bias + hidden @ weights)
