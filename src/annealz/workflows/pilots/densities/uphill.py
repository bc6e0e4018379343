"""Searches for maxima from several starts at once: SciPy's L-BFGS-B, a thread each, one launch for all.

A search asks for values and gradients one point after the other, and a launch takes as long for one point
as for many. So every search runs in a thread of its own and waits where it asks. When all of them wait or
are done, their points are evaluated together, by the thread that started them. A search has its own row of
the batch, and the others do not change what it sees: its way does not depend on how threads are scheduled.

Rows of searches that are done are evaluated all the same, and charged. Where few are left they ask alone.
"""

import threading
from collections.abc import Callable

import numpy as np

from annealz.workflows.pilots.densities.evaluator import Evaluator

__all__ = ["TOGETHER", "uphill"]

IsKnown = Callable[[np.ndarray, float, np.ndarray], bool]

TOGETHER = 16
"""Searches at once."""
_FEW = 4  # that are left, and ask alone
_MOST_ITERATIONS = 300
_BAD = 1e30


def uphill(
    evaluator: Evaluator, starts: np.ndarray, furthest: float, is_known: IsKnown | None = None
) -> list[tuple | None]:
    """(place, value) where the search from every start ended, of at most 16.

    None for one without a density there, and for one that came to where `is_known(x, value, gradient)`.
    Beyond `furthest`, in any coordinate, the density counts as zero.
    """
    return _Together(evaluator, starts, furthest, is_known).run()


class _Stopped(Exception):
    """Ends a search whose points are no longer evaluated, or that came to what is known."""


class _Together:
    """Some searches, and what each of them waits for."""

    def __init__(
        self, evaluator: Evaluator, starts: np.ndarray, furthest: float, is_known: IsKnown | None
    ):
        self.evaluator, self.starts, self.furthest = evaluator, starts, furthest
        self.is_known = is_known
        self.asked: dict[int, np.ndarray] = {}
        self.answers: dict[int, tuple[float, np.ndarray]] = {}
        self.ends: dict[int, tuple | None] = {}
        self.failure: BaseException | None = None
        self.is_stopped = False
        self.arrived = threading.Semaphore(0)  # a search asks, or is done
        self.turns = [threading.Semaphore(0) for _ in starts]

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
            self.is_stopped = True
            for turn in self.turns:
                turn.release()
            for thread in threads:
                thread.join()
        if self.failure is not None:
            raise self.failure
        return [self.ends[row] for row in range(len(self.starts))]

    def _serve(self) -> None:
        """Evaluate what is asked for, until all searches are done."""
        points = np.empty((TOGETHER, self.starts.shape[1]))
        points[:] = self.starts[-1]
        points[: len(self.starts)] = self.starts
        active = len(self.starts)
        while active:
            for _ in range(active):
                self.arrived.acquire()
            asked, self.asked = self.asked, {}
            active = len(asked)
            if active <= _FEW:
                found = {row: self.evaluator.value_and_gradient(x) for row, x in asked.items()}
            else:
                for row, x in asked.items():
                    points[row] = x
                values, gradients = self.evaluator.values_and_gradients(points)
                found = {row: (float(values[row]), gradients[row]) for row in asked}
            self.answers = found
            for row in asked:
                self.turns[row].release()

    def _ask(self, row: int, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.asked[row] = x.copy()
        self.arrived.release()
        self.turns[row].acquire()
        if self.is_stopped:
            raise _Stopped
        return self.answers[row]

    def _search(self, row: int) -> None:
        end = None
        try:
            end = self._ended(row)
        except _Stopped:
            pass
        except BaseException as error:
            self.failure = error
        self.ends[row] = end
        self.arrived.release()

    def _ended(self, row: int) -> tuple | None:
        from scipy.optimize import minimize  # a third of a second

        def objective(x):
            if not np.abs(x).max() < self.furthest:
                return _BAD, np.zeros_like(x)
            value, gradient = self._ask(row, x)
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return _BAD, np.zeros_like(x)
            if self.is_known is not None and self.is_known(x, value, gradient):
                raise _Stopped
            return -value, -gradient

        start = self.starts[row]
        options = {"maxiter": _MOST_ITERATIONS, "maxfun": 2 * _MOST_ITERATIONS}
        end = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        return None if end.fun >= _BAD else (end.x, -float(end.fun))
