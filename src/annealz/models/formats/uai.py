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

__all__ = ["evidence_part", "is_uai", "load_uai", "read_evidence", "read_uai"]

_KINDS = (b"MARKOV", b"BAYES")
_MOST_SHOWN = 3
_SUM_TOLERANCE = 0.01  # printed digits may be few
_OBSERVED = re.compile(r"\d{1,9}=\d{1,9}(,\d{1,9}=\d{1,9})*")


def is_uai(head: bytes) -> bool:
    """Whether a file that begins so is a network."""
    words = head.split(None, 1)
    return bool(words) and words[0].upper() in _KINDS


def load_uai(path: Path, part: str | None = None) -> tuple[FactorGraph, dict[str, Any]]:
    """The factor graph of a network, given the evidence of `part`, such as 3=1,7=0; and its record."""
    graph = read_uai(path)
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
    try:
        return graph.given(evidence), {"name": f"{path.stem} given {few}"}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_uai(path: Path) -> FactorGraph:
    """The factor graph of a network."""
    words = _Words(path)
    kind = words.next("MARKOV or BAYES")
    if kind.upper() not in _KINDS:
        raise ValueError(
            f"{path} must begin with MARKOV or BAYES, got {shown(kind.decode('ascii', 'replace'))!r}."
        )
    is_bayes = kind.upper() == b"BAYES"
    num_states = words.numbers(
        words.count("the number of variables"), "the states of the variables"
    )
    if not len(num_states) or min(num_states) < 1:
        raise ValueError(f"{path} must have variables of at least one state each.")
    scopes = []
    for number in range(words.count("the number of factors")):
        length = words.count(f"the length of the scope of factor {number}")
        scope = words.numbers(length, f"the scope of factor {number}")
        if any(v >= len(num_states) for v in scope):
            raise ValueError(
                f"{path}: the scope of factor {number} must be of variables 0 to {len(num_states) - 1}, "
                f"got {shown(scope)}."
            )
        scopes.append(scope)
    factors, budget = [], Budget(path)
    for number, scope in enumerate(scopes):
        wanted = math.prod(num_states[v] for v in scope)
        size = words.whole(f"the size of factor {number}")
        if size != wanted:
            raise ValueError(
                f"{path}: factor {number} over variables {shown(scope)} must have {wanted} entries, "
                f"got {size}."
            )
        budget.take(f"factor {number}", (size,), 16)
        factors.append((scope, words.table(size, number)))
        if is_bayes and scope:
            _check_conditional(path, number, factors[-1][1], num_states[scope[-1]])
    if words.left:
        raise ValueError(f"{path} holds {words.left} words after its last factor: it is damaged.")
    try:
        return FactorGraph(num_states, factors)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_evidence(path: str | Path) -> dict[int, int]:
    """The observed variables of an evidence file, and their states.

    Examples
    --------
    >>> from pathlib import Path
    >>> from annealz.models.formats.uai import read_evidence
    >>> _ = Path("network.uai.evid").write_text("2 3 1 7 0")
    >>> read_evidence("network.uai.evid")
    {3: 1, 7: 0}
    """
    path = Path(path)
    words = _Words(path)
    values = words.numbers(words.left, "evidence")
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
    """The evidence of a file as `load_uai` takes it; empty where nothing is observed."""
    return ",".join(f"{variable}={state}" for variable, state in read_evidence(path).items())


class _Words:
    """The words of a text, one after the other."""

    def __init__(self, path: Path):
        raw = read_small(path)
        self.path, self.size, self._at = path, len(raw), 0
        self._words = raw.split()

    @property
    def left(self) -> int:
        return len(self._words) - self._at

    def next(self, what: str) -> bytes:
        if not self.left:
            raise ValueError(f"{self.path} ends where {what} should be: it is cut off.")
        self._at += 1
        return self._words[self._at - 1]

    def whole(self, what: str) -> int:
        word = self.next(what)
        if not word.isdigit() or len(word) > 9:
            raise ValueError(
                f"{self.path}: {what} must be a whole number, "
                f"got {shown(word.decode('ascii', 'replace'))!r}."
            )
        return int(word)

    def count(self, what: str) -> int:
        """How many follow, which are words of their own."""
        count = self.whole(what)
        if count > self.left:
            raise ValueError(
                f"{self.path}: {what} is {count:,} and {self.left:,} words follow: it is cut off."
            )
        return count

    def numbers(self, count: int, what: str) -> list[int]:
        return [self.whole(what) for _ in range(count)]

    def table(self, size: int, number: int) -> np.ndarray:
        if size > self.left:
            raise ValueError(
                f"{self.path} ends in factor {number}, of {size} entries: it is cut off."
            )
        words = self._words[self._at : self._at + size]
        self._at += size
        try:
            return np.array([float(word) for word in words])
        except ValueError:
            wrong = next(word for word in words if not _is_number(word))
            raise ValueError(
                f"{self.path}: factor {number} must hold numbers, got "
                f"{shown(wrong.decode('ascii', 'replace'))!r}."
            ) from None


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


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
