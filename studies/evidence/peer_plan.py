"""Which run of a peer comes next on a machine of several cores with so many seconds left.

    chosen    the most useful runs r, of c_r expected seconds, that fit on W cores in the t seconds left:
              sum of c_r <= 0.9 W t - (what the runs under way still need)
    next      the longest of these that ends in time: max of c_r with c_r <= t

Useful are, in this order: first seeds of up to 12 dimensions, first seeds of more, further seeds (the
cheapest first, where the first one ended), and what will hardly end within the limit. c_r is 1.2 times the
seconds of the slowest run of the cell; that of a cell without a run is a guess. The longest come first, so
that short runs fill the end.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any, NamedTuple

from evidence_peers import MOST_DIM, PACKAGES, Run, by_run, is_final
from problems_with_truth import problem

__all__ = ["Plan", "is_installed"]

_SMALL = 12


class _Guess(NamedTuple):
    """Seconds of a run of up to 12 dimensions, of up to 100, and of more."""

    small: float
    large: float
    huge: float = float("inf")


_GUESSES = {
    "dynesty": _Guess(60, 300),
    "ultranest": _Guess(60, float("inf")),
    "nautilus": _Guess(300, float("inf")),
    "pocomc": _Guess(250, 400),
    "pymc": _Guess(30, 100),
    "blackjax-smc": _Guess(30, 40, 400),
    "blackjax-nss": _Guess(40, 150),
}
_USE = 0.9
_SLOWER = 1.2


class Plan:
    """Runs that are missing, those under way, and the rows so far."""

    def __init__(
        self,
        rows: Sequence[dict[str, Any]],
        problems: Sequence[str],
        methods: Sequence[str],
        limit: float,
        workers: int,
        seeds: int = 3,
    ):
        self.limit, self.workers, self.rows = limit, workers, list(rows)
        self.running: dict[Run, float] = {}
        self.missing: list[Run] = [
            (method, name, seed)
            for seed in range(seeds)
            for name in problems
            for method in methods
            if problem(name).dim <= MOST_DIM or method == "blackjax-smc"
        ]
        self._forget()

    def take(self, left: float) -> Run | None:
        """The next run, which is then under way; None if none can begin with so many seconds left."""
        best = by_run(self.rows)
        spent = {run: began - left for run, began in self.running.items()}
        need = sum(max(self.seconds(run, best) - gone, 0.0) for run, gone in spent.items())
        room, chosen = _USE * self.workers * left - need, []
        for run in sorted(self.missing, key=lambda run: self._rank(run, best)):
            cost, first = self.seconds(run, best), best.get((*run[:2], 0), {})
            if run[2] and first.get("status") != "done":
                continue
            if cost <= min(left, room) or (cost <= left and not chosen):
                chosen.append((cost, run))
                room -= cost
        if not chosen:
            return None
        run = max(chosen, key=lambda pair: pair[0])[1]
        self.missing.remove(run)
        self.running[run] = left
        return run

    def end(self, run: Run, row: dict[str, Any] | None) -> None:
        """A run has ended; without a row it is not tried again."""
        self.running.pop(run, None)
        if row is not None:
            self.rows.append(row)
            self._forget()

    @property
    def waits(self) -> bool:
        """Whether the end of a run under way may let another begin."""
        cells = {run[:2] for run in self.running if run[2] == 0}
        return any(run[:2] in cells for run in self.missing)

    def seconds(self, run: Run, best: dict[Run, dict[str, Any]]) -> float:
        """Expected CPU seconds, at most the limit."""
        method, name, _ = run
        cell = [row for key, row in best.items() if key[:2] == (method, name)]
        ended = [_SLOWER * row["seconds"] for row in cell if row["status"] == "done"]
        cut = [1.5 * row["limit"] for row in cell if row["status"] == "time limit"]
        return min(max(ended or [*cut, self._guess(method, name)]), self.limit)

    @staticmethod
    def _guess(method: str, name: str) -> float:
        guess, dim = _GUESSES[method], problem(name).dim
        return guess.small if dim <= _SMALL else guess.large if dim <= MOST_DIM else guess.huge

    def _rank(self, run: Run, best: dict[Run, dict[str, Any]]) -> tuple[int, float]:
        method, name, seed = run
        cost = self.seconds(run, best)
        if seed:
            return 2, cost
        if self._guess(method, name) == float("inf"):
            return 3, cost
        return int(problem(name).dim > _SMALL), -cost

    def _forget(self) -> None:
        best = by_run(self.rows)
        self.missing = [run for run in self.missing if not is_final(best.get(run), self.limit)]


def is_installed(method: str) -> bool:
    """Whether the package of a method is there."""
    return importlib.util.find_spec(PACKAGES[method].removesuffix("-sampler")) is not None
