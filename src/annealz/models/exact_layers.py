"""Exact log Z and draws of models of two layers by enumerating the states of one of them, in float64.

    log p*(s) = b.e(s) + A(d + W^T e(s)) + f,      Z = sum over the states of p*(s)

s are the units of the enumerated layer, of 0 and 1 or of q states, and A is what the other layer leaves
when it is summed out (`annealz.core.units`).
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from annealz.core.numerics import log_sum
from annealz.core.random import check_seed
from annealz.core.units import AbstractUnits
from annealz.core.weights import draw_independent
from annealz.models.exact import MAX_UNITS, states_of

_CHEAP = 2**22  # fields that nobody waits for
_TABLE = 2**20  # fields at a time


@dataclasses.dataclass(frozen=True)
class Enumerated:
    """A layer to enumerate, and the one to sum out.

    Parameters
    ----------
    weights : (fields of the enumerated layer, fields of the other one)
    bias, other_bias : of their fields
    num_states : of an enumerated unit, and so many fields; 1 of units of 0 and 1
    other_units : the kind of the layer that is summed out
    """

    weights: np.ndarray
    bias: np.ndarray
    other_bias: np.ndarray
    num_states: int
    other_units: AbstractUnits

    @property
    def num_units(self) -> int:
        return len(self.bias) // self.num_states

    @property
    def count(self) -> int:
        """The number of states."""
        return max(self.num_states, 2) ** self.num_units

    def states(self, numbers: np.ndarray) -> np.ndarray:
        """The states of these numbers (numbers, units), unit i the digit of q^i."""
        if self.num_states == 1:
            return states_of(numbers, self.num_units)
        digits = numbers[:, None] // self.num_states ** np.arange(self.num_units)
        return digits % self.num_states

    def encode(self, states: np.ndarray) -> np.ndarray:
        """e(s), (numbers, fields)."""
        if self.num_states == 1:
            return states
        hot = states[..., None] == np.arange(self.num_states)
        return hot.reshape(len(states), -1).astype(np.float64)


def is_cheap(num_bits: float, num_fields: int) -> bool:
    """Whether the sum over 2^num_bits states takes no time."""
    return num_bits <= MAX_UNITS and 2**num_bits * num_fields <= _CHEAP


def log_sum_of_states(layers: Enumerated) -> float:
    """log Z less f."""
    return log_sum(np.array([log_sum(table) for table in _tables(layers)]))


def draw_states(layers: Enumerated, num_draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent draws of the enumerated units (draws, units), and the fields of the other ones."""
    log_weights = np.concatenate(list(_tables(layers)))
    generator = np.random.default_rng(check_seed(seed))
    chosen = draw_independent(np.exp(log_weights - log_weights.max()), generator, num_draws)
    states = layers.states(chosen)
    return states.astype(np.float32), layers.other_bias + layers.encode(states) @ layers.weights


def _tables(layers: Enumerated) -> Iterator[np.ndarray]:
    """log p*(s) less f, of consecutive states."""
    if layers.count > 2**MAX_UNITS:
        units = f"{layers.num_units} units"
        if layers.num_states > 1:
            units += f" of {layers.num_states} states"
        raise ValueError(
            f"exact enumeration takes at most {2**MAX_UNITS:,} states, those of {MAX_UNITS} binary units, "
            f"and {units} have {float(layers.count):.1e}."
        )
    size = max(1, _TABLE // max(len(layers.other_bias), len(layers.bias)))
    for first in range(0, layers.count, size):
        numbers = np.arange(first, min(first + size, layers.count))
        encoded = layers.encode(layers.states(numbers))
        fields = layers.other_bias + encoded @ layers.weights
        yield encoded @ layers.bias + layers.other_units.exact_log_z(fields)
