"""The marginal density of one coordinate t, by Laplace's approximation of all others given it.

    m(t) = max_y f(t, y) + (dim - 1)/2 log 2 pi - log |H(t)| / 2        H minus the second derivatives in y

Coordinates that are fixed, at their medians, are neither t nor among y. The maximum y(t) is followed by
Newton's method from one t to the next, both ways from the middle of the states, until m has fallen by 14
nats, or the others have no maximum. It reaches where no chain is: that is what it is for. Second
derivatives count as dim evaluations.

Rue, Martino, Chopin (2009), Approximate Bayesian inference for latent Gaussian models.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from annealz.pilots.densities.evaluator import Evaluator

_STEP = 0.4  # of the standard deviation of the states
_MOST_STEPS = 60  # each way
_FALL = 14.0  # nats
_NEWTON = 12
_HALVINGS = 6
_CONVERGED = 0.02  # nats, twice what is left to the maximum


@dataclasses.dataclass(frozen=True)
class Profile:
    """Along one coordinate, on an even grid."""

    coordinate: int
    others: np.ndarray  # (others,): which coordinates y are
    grid: np.ndarray  # (points,)
    logs: np.ndarray  # (points,): log m
    centres: np.ndarray  # (points, others): y(t)
    roots: np.ndarray  # (points, others, others): lower triangles R, R R^T = H^-1

    @property
    def shares(self) -> np.ndarray:
        """(points,): of the mass, around every point of the grid."""
        shares = np.exp(self.logs - self.logs.max())
        return shares / shares.sum()


def profile(
    evaluator: Evaluator, rows: np.ndarray, coordinate: int, fixed: Sequence[int] = ()
) -> Profile | None:
    """Of this coordinate, from the middle of these states (points, dim); None without a maximum there."""
    t = rows[:, coordinate]
    others = np.setdiff1d(np.arange(rows.shape[1]), [coordinate, *fixed])
    near = np.argsort(np.abs(t - np.median(t)))[: max(len(t) // 10, 1)]
    middle, step = float(np.median(t)), _STEP * float(np.std(t))
    conditional = _Conditional(evaluator, coordinate, others, np.median(rows, axis=0))
    first = conditional.maximum(middle, rows[near][:, others].mean(0)) if others.size else None
    if first is None or not step > 0:
        return None
    found = {0: first}
    for way in (-1, 1):
        before, here = None, first
        for k in range(1, _MOST_STEPS + 1):
            start = here.centre if before is None else 2 * here.centre - before.centre
            after = conditional.maximum(middle + way * k * step, start)
            if after is None and before is not None:
                after = conditional.maximum(middle + way * k * step, here.centre)
            if after is None:
                break
            found[way * k] = after
            if after.log < max(one.log for one in found.values()) - _FALL:
                break
            before, here = here, after
    places = sorted(found)
    logs, centres, roots = (np.stack(one) for one in zip(*(found[k] for k in places), strict=True))
    return Profile(coordinate, others, middle + step * np.array(places), logs, centres, roots)


class _Maximum(NamedTuple):
    log: float
    centre: np.ndarray
    root: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Conditional:
    """The density of some coordinates, where another one has some value and the rest is in the middle."""

    evaluator: Evaluator
    coordinate: int
    others: np.ndarray
    middle: np.ndarray

    def maximum(self, t: float, y: np.ndarray) -> _Maximum | None:
        """The place at this t that Newton's method leads to from y."""
        value, slope = self._value(t, y)
        if slope is None:
            return None
        for _ in range(_NEWTON):
            matrix = -self.evaluator.hessian(self._joined(t, y))[np.ix_(self.others, self.others)]
            try:
                lower = np.linalg.cholesky((matrix + matrix.T) / 2)
                half = np.linalg.solve(lower, slope)
                gain = float(half @ half)  # twice what is left
                move = np.linalg.solve(lower.T, half)
                if not np.isfinite(gain):
                    return None
                if gain < _CONVERGED:
                    log = value + gain / 2 + y.size / 2 * np.log(2 * np.pi)
                    inverse = np.linalg.solve(lower, np.eye(y.size))
                    covariance = inverse.T @ inverse
                    root = np.linalg.cholesky((covariance + covariance.T) / 2)
                    return _Maximum(log - float(np.log(np.diag(lower)).sum()), y + move, root)
            except np.linalg.LinAlgError:
                return None
            for halving in range(_HALVINGS):
                trial = y + 0.5**halving * move
                height, along = self._value(t, trial)
                if along is not None and height > value - _CONVERGED / 4:
                    y, value, slope = trial, height, along
                    break
            else:
                return None
        return None

    def _joined(self, t: float, y: np.ndarray) -> np.ndarray:
        x = self.middle.copy()
        x[self.coordinate], x[self.others] = t, y
        return x

    def _value(self, t: float, y: np.ndarray) -> tuple[float, np.ndarray | None]:
        value, slope = self.evaluator.value_and_gradient(self._joined(t, y))
        is_finite = np.isfinite(value) and np.isfinite(slope).all()
        return value, slope[self.others] if is_finite else None
