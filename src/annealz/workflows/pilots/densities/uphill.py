"""Searches for maxima from several starts at once: SciPy's L-BFGS-B, a thread each, one launch for all.

A search asks for values and gradients one point after the other, and a launch takes as long for one point
as for many. So every search runs in a thread of its own and waits where it asks. When all of them wait or
are done, their points are evaluated together, by the thread that started them. A search has its own row of
the batch, and the others do not change what it sees: its way does not depend on how threads are scheduled.

Rows of searches that are done are evaluated all the same, and charged. Where few are left they ask alone.
"""

import threading

import numpy as np

from annealz.workflows.pilots.densities.evaluator import Evaluator

__all__ = ["uphill"]

_WIDTH = 16  # searches at once
_FEW = 4  # that are left, and ask alone
_MOST_ITERATIONS = 300
_BAD = 1e30


def uphill(evaluator: Evaluator, starts: np.ndarray, furthest: float) -> list[tuple | None]:
    """(place, value) where the search from every start ended; None for one without a density there.

    Beyond `furthest`, in any coordinate, the density counts as zero.
    """
    ends = []
    for first in range(0, len(starts), _WIDTH):
        ends += _Together(evaluator, starts[first : first + _WIDTH], furthest).run()
    return ends


class _Stopped(Exception):
    """Ends a search whose points are no longer evaluated."""


class _Together:
    """Some searches, and what each of them waits for."""

    def __init__(self, evaluator: Evaluator, starts: np.ndarray, furthest: float):
        self.evaluator, self.starts, self.furthest = evaluator, starts, furthest
        self.asked: dict[int, np.ndarray] = {}
        self.answers: dict[int, tuple[float, np.ndarray]] = {}
        self.ends: dict[int, tuple | None] = {}
        self.failure: BaseException | None = None
        self.is_stopped = False
        self.changed = threading.Condition()

    def run(self) -> list[tuple | None]:
        threads = [
            threading.Thread(target=self._search, args=(row,), daemon=True)
            for row in range(len(self.starts))
        ]
        for thread in threads:
            thread.start()
        try:
            self._serve()
        finally:  # an interrupt, or what the function raised
            with self.changed:
                self.is_stopped = True
                self.changed.notify_all()
            for thread in threads:
                thread.join()
        if self.failure is not None:
            raise self.failure
        return [self.ends[row] for row in range(len(self.starts))]

    def _serve(self) -> None:
        """Evaluate what is asked for, until all searches are done."""
        points = np.zeros((_WIDTH, self.starts.shape[1]))
        points[: len(self.starts)] = self.starts
        points[len(self.starts) :] = self.starts[-1]
        while True:
            with self.changed:
                self.changed.wait_for(lambda: len(self.asked) + len(self.ends) == len(self.starts))
                asked, self.asked = self.asked, {}
            if not asked:
                return
            if len(asked) <= _FEW:
                found = {row: self.evaluator.value_and_gradient(x) for row, x in asked.items()}
            else:
                for row, x in asked.items():
                    points[row] = x
                values, gradients = self.evaluator.values_and_gradients(points)
                found = {row: (float(values[row]), gradients[row]) for row in asked}
            with self.changed:
                self.answers = found
                self.changed.notify_all()

    def _ask(self, row: int, x: np.ndarray) -> tuple[float, np.ndarray]:
        with self.changed:
            self.asked[row] = x.copy()
            self.changed.notify_all()
            self.changed.wait_for(lambda: row in self.answers or self.is_stopped)
            if self.is_stopped:
                raise _Stopped
            return self.answers.pop(row)

    def _search(self, row: int) -> None:
        end = None
        try:
            end = self._ended(row)
        except _Stopped:
            pass
        except BaseException as error:
            self.failure = error
        with self.changed:
            self.ends[row] = end
            self.changed.notify_all()

    def _ended(self, row: int) -> tuple | None:
        from scipy.optimize import minimize  # a third of a second

        def objective(x):
            if not np.abs(x).max() < self.furthest:
                return _BAD, np.zeros_like(x)
            value, gradient = self._ask(row, x)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return _BAD, np.zeros_like(x)
            return -value, -gradient

        start = self.starts[row]
        options = {"maxiter": _MOST_ITERATIONS, "maxfun": 2 * _MOST_ITERATIONS}
        end = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        return None if end.fun >= _BAD else (end.x, -float(end.fun))
