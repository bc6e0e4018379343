"""Exact log Z and draws of units coupled in pairs, by enumerating all their states in float64.

q^n states of n units; the last units, as many as fit into a table, run through their states in one go.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from annealz.core.numerics import log_sum
from annealz.core.random import check_seed
from annealz.core.weights import draw_independent

_CHEAP = 2**20  # states that nobody waits for
_MOST = 2**26
_TABLE = 2**16


def is_cheap(num_units: int, num_states: int) -> bool:
    """Whether there are so few states that enumerating them takes no time."""
    return num_states**num_units <= _CHEAP


def log_sum_of_states(path: Any) -> float:
    """log Z of the model at the end of a path of pairs."""
    return log_sum(np.array([log_sum(energies) for _, energies in _tables(path)]))


def draw_states(path: Any, num_draws: int, seed: int) -> np.ndarray:
    """Independent draws (draws, units) of the model at the end of a path of pairs."""
    energies = np.concatenate([energies for _, energies in _tables(path)])
    generator = np.random.default_rng(check_seed(seed))
    chosen = draw_independent(np.exp(energies - energies.max()), generator, num_draws)
    num_units, num_states = path.start.shape
    return _digits(chosen, num_units, num_states).astype(np.float32)


def _tables(path: Any) -> Iterator[tuple[int, np.ndarray]]:
    """(first state, energies) of consecutive states."""
    num_units, num_states = path.start.shape
    count = num_states**num_units
    if count > _MOST:
        raise ValueError(
            f"exact enumeration takes at most {_MOST:,} states, and {num_units} units of {num_states} have "
            f"{float(count):.1e}."
        )
    for first in range(0, count, _TABLE):
        states = _digits(np.arange(first, min(first + _TABLE, count)), num_units, num_states)
        yield first, path.exact_energies(states)


def _digits(numbers: np.ndarray, num_units: int, num_states: int) -> np.ndarray:
    """The states of these numbers, unit i the digit of num_states^i."""
    return numbers[:, None] // num_states ** np.arange(num_units) % num_states
