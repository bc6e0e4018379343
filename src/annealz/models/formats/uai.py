"""Networks and evidence in the format of the UAI competitions.

A network is a text of words: MARKOV or BAYES; the number of variables and the states of each; the number of
factors and the scope of each, as its length and its variables; the table of each factor, as its length and
its values, the last variable of the scope changing fastest. The factors of a Bayesian network are its
conditional tables, each over the parents and, last, the variable itself; both kinds are read as a factor
graph.

Evidence is a text of whole numbers: how many variables are observed, then each with its state; before 2014
the number of samples, which must be one, comes first. The two differ by whether the count of numbers is
odd.

`network.uai/3=1,7=0` is the network given that variable 3 is in state 1 and variable 7 in state 0.
"""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from annealz.io.reading import Budget, read_small, shown
from annealz.models.factor_graph import FactorGraph

_KINDS = (b"MARKOV", b"BAYES")
_MOST_SHOWN = 3
_SUM_TOLERANCE = 0.01  # printed digits may be few
_OBSERVED = re.compile(r"\d{1,9}=\d{1,9}(,\d{1,9}=\d{1,9})*")
_WHOLE = re.compile(rb"\d{1,9}")
_REAL = re.compile(rb"(?i)[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf|nan)")


def is_uai(head: bytes) -> bool:
    """Check whether a file that begins so is a network."""
    words = head.split(None, 1)
    return bool(words) and words[0].upper() in _KINDS


def load_uai(path: Path, part: str | None = None) -> tuple[FactorGraph, dict[str, Any]]:
    """Return the factor graph of a network, given the evidence of `part`, like 3=1,7=0; and its record."""
    graph = _read_graph(path)
    if part is None:
        return graph, {}
    if not _OBSERVED.fullmatch(part):
        raise ValueError(
            f"{path}/{shown(part)} must name observed variables and their states, like {path}/3=1,7=0."
        )
    evidence: dict[int, int] = {}
    for word in part.split(","):
        variable, state = map(int, word.split("="))
        if variable in evidence:
            raise ValueError(f"{path}: evidence names variable {variable} twice.")
        evidence[variable] = state
    few = part if len(evidence) <= _MOST_SHOWN else f"{len(evidence)} variables"
    return graph.given(evidence), {"name": f"{path.stem} given {few}"}


def _read_graph(path: Path) -> FactorGraph:
    words = _Words(path)
    kind = words.take(1, "MARKOV or BAYES")[0].upper()
    if kind not in _KINDS:
        got = shown(kind.decode("ascii", "replace"))
        raise ValueError(f"{path} must begin with MARKOV or BAYES, got {got!r}.")
    num_states = words.whole(words.count("the number of variables"), "the states of the variables")
    if min(num_states, default=0) < 1:
        raise ValueError(f"{path} must have variables of at least one state each.")
    scopes = []
    for number in range(words.count("the number of factors")):
        length = words.count(f"the length of the scope of factor {number}")
        scopes.append(words.whole(length, f"the scope of factor {number}"))
        if max(scopes[-1], default=0) >= len(num_states):
            raise ValueError(
                f"{path}: the scope of factor {number} must be of variables 0 to {len(num_states) - 1}, "
                f"got {shown(scopes[-1])}."
            )
    factors, budget = [], Budget(path)
    for number, scope in enumerate(scopes):
        wanted = math.prod(num_states[v] for v in scope)
        [size] = words.whole(1, f"the size of factor {number}")
        if size != wanted:
            raise ValueError(
                f"{path}: factor {number} over variables {shown(scope)} must have {wanted} entries, "
                f"got {size}."
            )
        budget.take(f"factor {number}", (size,), 16)
        table = words.real(size, f"factor {number}")
        factors.append((scope, table))
        if kind == b"BAYES" and scope:
            _check_conditional(path, number, table, num_states[scope[-1]])
    if words.left:
        raise ValueError(f"{path} holds {words.left} words after its last factor: it is damaged.")
    return FactorGraph(num_states, factors)


def read_evidence(path: str | Path) -> dict[int, int]:
    """Return the observed variables of an evidence file, and their states."""
    path = Path(path)
    words = _Words(path)
    values = words.whole(words.left, "evidence")
    if len(values) % 2 == 0 and values:  # the number of samples comes first
        if values[0] != 1:
            raise ValueError(f"{path} must hold evidence of one sample, got {values[0]}.")
        values = values[1:]
    if not values or len(values) != 1 + 2 * values[0]:
        got = f"{values[0]} and {len(values) - 1} numbers" if values else "nothing"
        raise ValueError(
            f"{path} must hold the number of observed variables, then each with its state, got {got}."
        )
    evidence = dict(zip(values[1::2], values[2::2], strict=True))
    if len(evidence) != values[0]:
        raise ValueError(f"{path} must name every observed variable once.")
    return evidence


def evidence_part(path: str | Path) -> str:
    """Return the evidence of a file as `load_uai` takes it; empty where nothing is observed."""
    return ",".join(f"{variable}={state}" for variable, state in read_evidence(path).items())


class _Words:
    """The words of a text, one after the other."""

    def __init__(self, path: Path):
        self.path, self._words, self._at = path, read_small(path).split(), 0

    @property
    def left(self) -> int:
        return len(self._words) - self._at

    def take(self, count: int, what: str, form: re.Pattern | None = None) -> list[bytes]:
        """Return so many words, if they are there and each is of this form."""
        if count > self.left:
            raise ValueError(f"{self.path} ends where {what} should be: it is cut off.")
        words = self._words[self._at : self._at + count]
        self._at += count
        wrong = next((word for word in words if form and not form.fullmatch(word)), None)
        if wrong is not None:
            kind = "a whole number" if form is _WHOLE else "a number"
            got = shown(wrong.decode("ascii", "replace"))
            raise ValueError(f"{self.path}: {what} must be {kind}, got {got!r}.")
        return words

    def whole(self, count: int, what: str) -> list[int]:
        return [int(word) for word in self.take(count, what, _WHOLE)]

    def real(self, count: int, what: str) -> np.ndarray:
        return np.array([float(word) for word in self.take(count, what, _REAL)])

    def count(self, what: str) -> int:
        """Return the number of words that follow."""
        [count] = self.whole(1, what)
        if count > self.left:
            raise ValueError(
                f"{self.path}: {what} is {count:,} and {self.left:,} words follow: it is cut off."
            )
        return count


def _check_conditional(path: Path, number: int, table: np.ndarray, num_states: int) -> None:
    """Refuse a table of a Bayesian network that is not one of probabilities of its last variable."""
    sums = table.reshape(-1, num_states).sum(1)
    wrong = ~(np.abs(sums - 1) <= _SUM_TOLERANCE)
    if wrong.any() and np.isfinite(table).all() and (table >= 0).all():
        raise ValueError(
            f"{path}: factor {number} of a Bayesian network must sum to 1 over its last variable, got "
            f"{sums[wrong][0]:g}: its values may be in another order, as pgmpy writes them; where they are "
            "meant so, write MARKOV instead of BAYES."
        )
