"""Searches for maxima from many starts, side by side: quasi-Newton steps (L-BFGS), one launch for all.

A launch takes as long for one point as for many, so up to 32 searches take their steps together, and one
that ends makes room for the next start. With g the gradient of f, a search goes

    x + t d,    d = B g,    B from the last 8 steps s and changes of the gradient y (Nocedal, 1980)

where t is shortened until f rises by 1e-4 t g.d at least. A step along which f is not concave (y.s >= 0) is
not remembered, nor are those before it: the next one goes along g, four times as far. A search ends

    where g.d, twice what is left to gain, is below 1e-5 nats or the rounding of f
    where `is_known` says that others have been there
    where no step rises, after 300 steps, or beyond `furthest`, where no mode is looked for

Rows without a search are evaluated all the same, and charged; where few are left they are evaluated alone.
SciPy's L-BFGS-B asks for one point after the other: a thread for each search took five times as long.

Nocedal (1980), Updating quasi-Newton matrices with limited storage.
"""

from collections.abc import Callable, Iterator

import numpy as np

from annealz.pilots.densities.evaluator import Evaluator

_ROWS = 32  # searches at once
_FEW = 4  # that are left, and are evaluated alone
_MEMORY = 8
_MOST_STEPS = 300
_MOST_SHORTER = 15
_RISE = 1e-4
_LEAST_GAIN, _ROUNDING = 1e-5, 2e-7
_LONGER, _SHORTER = 4.0, 0.25
_LEAST_CURVATURE = 1e-8
_BEYOND = 100.0  # times the furthest place, that a step may go

IsKnown = Callable[[np.ndarray, float, np.ndarray], bool]


def uphill(
    evaluator: Evaluator, starts: np.ndarray, furthest: float, is_known: IsKnown
) -> Iterator[tuple[np.ndarray, float]]:
    """(place, value) of every search that ends at a place of its own, in the order of their ends.

    `is_known(x, value, gradient)` is asked wherever a search comes, and may change between two ends.
    """
    searches, waiting = _Searches(evaluator, starts, _BEYOND * furthest), len(starts)
    while True:
        for row in np.flatnonzero(~searches.is_active)[:waiting]:
            searches.begin(row, starts[len(starts) - waiting])
            waiting -= 1
        if not searches.is_active.any():
            return
        for row in searches.advance():
            x, value = searches.x[row], float(searches.value[row])
            if np.abs(x).max() > furthest or is_known(x, value, searches.gradient[row]):
                searches.is_active[row] = False
            elif searches.is_ended(row):
                searches.is_active[row] = False
                yield x.copy(), value


class _Searches:
    """Rows of points, each with its own search or none."""

    def __init__(self, evaluator: Evaluator, starts: np.ndarray, furthest: float):
        dim = starts.shape[1]
        self.evaluator, self.furthest = evaluator, furthest
        self.is_active, self.is_new = np.zeros(_ROWS, bool), np.zeros(_ROWS, bool)
        self.x, self.trial = np.zeros((2, _ROWS, dim))
        self.x[:] = self.trial[:] = starts[0]
        self.gradient, self.direction = np.zeros((2, _ROWS, dim))
        self.value = np.full(_ROWS, -np.inf)
        self.gain, self.length = np.zeros(_ROWS), np.ones(_ROWS)
        self.steps, self.failures = np.zeros((2, _ROWS), int)
        self.moves, self.changes = np.zeros((2, _MEMORY, _ROWS, dim))
        self.curvatures = np.zeros((_MEMORY, _ROWS))  # y.s; 0 where nothing is remembered

    def begin(self, row: int, start: np.ndarray) -> None:
        """A search from this start, in this row."""
        self.is_active[row] = self.is_new[row] = True
        self.trial[row], self.value[row], self.length[row] = start, -np.inf, 1.0
        self.steps[row] = self.failures[row] = 0
        self.curvatures[:, row] = 0.0

    def is_ended(self, row: int) -> bool:
        """Whether there is nothing left to gain, or no time."""
        least = _LEAST_GAIN + _ROUNDING * abs(self.value[row])
        return bool(self.gain[row] < least or self.steps[row] >= _MOST_STEPS)

    def advance(self) -> np.ndarray:
        """Evaluate all trial points; return the rows that went there, or have nowhere to go."""
        values, gradients = self._evaluated()
        is_valid = np.isfinite(values) & np.isfinite(gradients).all(1) & self.is_active
        slack = np.where(self.is_new, 0.0, _ROUNDING * np.abs(self.value))
        wanted = self.value + _RISE * self.length * self.gain - slack
        is_taken = is_valid & (self.is_new | (values >= wanted))
        stuck = self._shorten(self.is_active & ~is_taken)
        rows = np.flatnonzero(is_taken)
        if rows.size:
            self._remember(rows, gradients)
            self.x[rows], self.value[rows] = self.trial[rows], values[rows]
            self.gradient[rows], self.is_new[rows] = gradients[rows], False
            self.steps[rows] += 1
            self.failures[rows] = 0
            self._aim(rows)
        self._try()
        return np.union1d(rows, stuck)

    def _evaluated(self) -> tuple[np.ndarray, np.ndarray]:
        active = np.flatnonzero(self.is_active)
        if active.size > _FEW:
            return self.evaluator.values_and_gradients(self.trial)
        values, gradients = np.full(_ROWS, -np.inf), np.zeros_like(self.x)
        for row in active:
            values[row], gradients[row] = self.evaluator.value_and_gradient(self.trial[row])
        return values, gradients

    def _shorten(self, is_short: np.ndarray) -> np.ndarray:
        """A shorter step; the rows that have none. A start without a density has no search."""
        self.is_active &= ~(is_short & self.is_new)
        is_short = is_short & ~self.is_new
        self.length[is_short] *= _SHORTER
        self.failures[is_short] += 1
        stuck = np.flatnonzero(is_short & (self.failures > _MOST_SHORTER))
        self.gain[stuck] = 0.0
        return stuck

    def _remember(self, rows: np.ndarray, gradients: np.ndarray) -> None:
        """The steps that were taken, where f was concave along them; the length of the next ones."""
        old = rows[~self.is_new[rows]]
        if not old.size:
            return
        moves, changes = self.trial[old] - self.x[old], self.gradient[old] - gradients[old]
        curvatures = (moves * changes).sum(1)
        sizes = np.linalg.norm(moves, axis=1) * np.linalg.norm(changes, axis=1)
        is_concave = curvatures > _LEAST_CURVATURE * sizes
        kept, lost = old[is_concave], old[~is_concave]
        for memory, new in ((self.moves, moves), (self.changes, changes)):
            memory[:-1, kept] = memory[1:, kept]
            memory[-1, kept] = new[is_concave]
        self.curvatures[:-1, kept] = self.curvatures[1:, kept]
        self.curvatures[-1, kept] = curvatures[is_concave]
        self.curvatures[:, lost] = 0.0
        self.length[kept] = 1.0
        self.length[lost] = _LONGER * np.linalg.norm(moves[~is_concave], axis=1)

    def _aim(self, rows: np.ndarray) -> None:
        """d = B g by two loops over the memory; g of length 1 where there is none."""
        gradient, weights = self.gradient[rows], np.zeros((_MEMORY, rows.size))
        moves, changes = self.moves[:, rows], self.changes[:, rows]
        curvatures = self.curvatures[:, rows]
        inverses = np.divide(1.0, curvatures, out=np.zeros_like(curvatures), where=curvatures > 0)
        turned = gradient.copy()
        for k in reversed(range(_MEMORY)):
            weights[k] = inverses[k] * (moves[k] * turned).sum(1)
            turned -= weights[k][:, None] * changes[k]
        is_known = curvatures[-1] > 0
        size = np.linalg.norm(gradient, axis=1)
        squares = np.where(is_known, (changes[-1] ** 2).sum(1), 1.0)
        scale = np.where(is_known, curvatures[-1] / squares, 1 / np.maximum(size, 1e-300))
        turned *= scale[:, None]
        for k in range(_MEMORY):
            other = inverses[k] * (changes[k] * turned).sum(1)
            turned += (weights[k] - other)[:, None] * moves[k]
        self.direction[rows] = turned
        self.gain[rows] = (gradient * turned).sum(1)

    def _try(self) -> None:
        """The next trial points, none of them far beyond the furthest place."""
        size = np.abs(self.direction).max(1)
        room = self.furthest / np.maximum(size, 1e-300)
        self.length = np.where(self.is_active, np.minimum(self.length, room), 1.0)
        moves = np.where(self.is_active[:, None], self.length[:, None] * self.direction, 0.0)
        self.trial = self.x + moves
