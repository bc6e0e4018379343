"""Exact log Z and draws by enumerating all states of some units, in float64.

q^n states of n units; unit i is the digit of q^i of a state's number. A layer that the enumerated units
leave independent may be summed out of each state.
"""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from annealz.core.numerics import log_sum
from annealz.core.random import check_seed
from annealz.core.weights import draw_independent

MAX_UNITS = 25
_MAX_STATES = 2**26


@dataclasses.dataclass(frozen=True)
class Enumeration:
    """All states of some units.

    Parameters
    ----------
    num_units, num_states : n and q
    log_weights : log p* of states (states, units) of whole numbers
    rows : states at a time
    """

    num_units: int
    num_states: int
    log_weights: Callable[[np.ndarray], np.ndarray]
    rows: int = 2**16

    def log_sum(self) -> float:
        """Return log Z."""
        return log_sum(np.array([log_sum(table) for table in self._tables()]))

    def draw(self, num_draws: int, seed: int) -> np.ndarray:
        """Return independent draws (draws, units)."""
        log_weights = np.concatenate(list(self._tables()))
        generator = np.random.default_rng(check_seed(seed))
        chosen = draw_independent(np.exp(log_weights - log_weights.max()), generator, num_draws)
        return digits(chosen, self.num_units, self.num_states).astype(np.float32)

    def _tables(self) -> Iterator[np.ndarray]:
        """Yield log p* of consecutive states."""
        count = self.num_states**self.num_units
        if count > _MAX_STATES:
            raise ValueError(
                f"exact enumeration takes at most {_MAX_STATES:,} states, and {self.num_units} units of "
                f"{self.num_states} have {float(count):.1e}."
            )
        for first in range(0, count, self.rows):
            numbers = np.arange(first, min(first + self.rows, count))
            yield self.log_weights(digits(numbers, self.num_units, self.num_states))


def digits(numbers: np.ndarray, num_units: int, num_states: int) -> np.ndarray:
    """Return the states of these numbers (numbers, units)."""
    return numbers[:, None] // num_states ** np.arange(num_units) % num_states
