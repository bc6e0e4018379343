"""The tables of the study against peers, and their verdicts, from the committed runs."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evidence_annealz import EQUAL, NESTED, OURS, typical_error
from evidence_peers import PACKAGES
from problems_with_truth import NAMES, problem

__all__ = ["Cell", "interval_score", "peers_section", "read_cells"]

RESULTS = Path(__file__).parent / "results"
LEVEL = 0.95
_Z = 1.959964
CLEAR = 2.0
"""Factor between two errors of few runs below which neither is called smaller."""
_OWN = (OURS, EQUAL, NESTED)
_ORDER = [*PACKAGES, *_OWN]


class Cell(NamedTuple):
    """The runs of one method on one problem."""

    method: str
    problem: str
    truth: float
    rows: list[dict[str, Any]]

    @property
    def done(self) -> list[dict[str, Any]]:
        """Runs that gave a number."""
        return [row for row in self.rows if row.get("log_z") is not None]

    @property
    def rms(self) -> float:
        """Root mean square of the errors."""
        return float(np.sqrt(np.mean([(row["log_z"] - self.truth) ** 2 for row in self.done])))

    @property
    def error(self) -> float:
        """The error that is compared."""
        return typical_error(self.done, self.truth)

    @property
    def intervals(self) -> list[tuple[float, float]]:
        """Stated 95 % intervals, of the runs that state one."""
        found = []
        for row in self.done:
            if row.get("interval") is not None:
                found.append(tuple(row["interval"]))
            elif row.get("std_err") is not None:
                half = _Z * row["std_err"]
                found.append((row["log_z"] - half, row["log_z"] + half))
        return found

    @property
    def covered(self) -> int:
        """How many intervals hold the truth."""
        return sum(low <= self.truth <= high for low, high in self.intervals)

    @property
    def score(self) -> float | None:
        """Mean interval score, smaller is better; None where no interval is stated."""
        if not self.intervals:
            return None
        return float(np.mean([interval_score(*ends, self.truth) for ends in self.intervals]))


def interval_score(low: float, high: float, truth: float) -> float:
    """Width, and 2 / 0.05 times the distance by which the truth is missed (Gneiting and Raftery, 2007)."""
    missed = max(low - truth, 0.0) + max(truth - high, 0.0)
    return high - low + 2 / (1 - LEVEL) * missed


def read_cells(folder: Path = RESULTS) -> dict[str, list[Cell]]:
    """The cells of every problem, the peers first."""
    rows = []
    for name in ("peers.jsonl", "annealz.jsonl"):
        file = folder / name
        if file.exists():
            rows += [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    found = {}
    for name in NAMES:
        here, truth = [row for row in rows if row["problem"] == name], problem(name).truth
        if here and truth is not None:
            methods = sorted({row["method"] for row in here}, key=_ORDER.index)
            found[name] = [
                Cell(m, name, truth, [row for row in here if row["method"] == m]) for m in methods
            ]
    return found


def _named(method: str) -> str:
    own = {OURS: "**annealz**", EQUAL: "annealz, equal evaluations", NESTED: "annealz, nested"}
    return own.get(method, method)


def _mean(rows: Iterable[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return float(np.mean(values)) if values else None


def _shown(value: float | None, form: str = ".3f") -> str:
    return "–" if value is None else format(value, form)


def _status(cell: Cell) -> str:
    counts: dict[str, int] = {}
    for row in cell.rows:
        word = row["status"]
        word = f"{word} of {row['limit']:.0f} s" if word == "time limit" else word
        counts[word] = counts.get(word, 0) + 1
    alone = len(counts) == 1
    return ", ".join(word if alone else f"{count} {word}" for word, count in counts.items())


def _table(cells: list[Cell]) -> list[str]:
    lines = [
        "| method | runs | rms error | stated error | covered | evaluations | CPU seconds | status |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for cell in cells:
        done = cell.done
        rms = _shown(cell.rms) if done else "–"
        covered = f"{cell.covered} of {len(cell.intervals)}" if cell.intervals else "–"
        lines.append(
            f"| {_named(cell.method)} | {len(done)} | {rms} | {_shown(_mean(done, 'std_err'))} | "
            f"{covered} | {_shown(_mean(cell.rows, 'evaluations'), ',.0f')} | "
            f"{_shown(_mean(cell.rows, 'seconds'), '.0f')} | {_status(cell)} |"
        )
    return lines


def _best(cells: Iterable[Cell], key: Callable[[Cell], float | None]) -> Cell | None:
    valued = [(value, cell) for cell in cells if (value := key(cell)) is not None]
    return min(valued, key=lambda pair: pair[0])[1] if valued else None


def _compared(cells: dict[str, list[Cell]]) -> tuple[list[str], dict[str, list[str]]]:
    """Sentences of the comparison at equal evaluations, and the problems by their result."""
    results: dict[str, list[str]] = {"smaller": [], "like": [], "larger": []}
    lines = []
    for name, here in cells.items():
        ours = next((cell for cell in here if cell.method == EQUAL and cell.done), None)
        peers = [cell for cell in here if cell.method not in _OWN and cell.done]
        best = _best(peers, lambda cell: cell.error)
        if ours is None or best is None:
            continue
        ratio = ours.error / best.error
        word = "smaller" if ratio < 1 / CLEAR else "larger" if ratio > CLEAR else "like"
        results[word].append(name)
        if word == "larger":
            unsure = sum(row["status"] != "ok" for row in ours.done)
            lines.append(
                f"- {name}: error {ours.error:.3f}, {best.method} {best.error:.3f}; "
                f"{unsure} of {len(ours.done)} runs of annealz were called unreliable."
            )
    return lines, results


def _honest(cells: dict[str, list[Cell]]) -> tuple[list[str], int]:
    """Problems where the default run of annealz has the best interval score, and of how many."""
    won, total = [], 0
    for name, here in cells.items():
        ours = [cell for cell in here if cell.method == OURS and cell.intervals]
        peers = [cell for cell in here if cell.method not in _OWN and cell.intervals]
        if not ours or not peers:
            continue
        total += 1
        best = _best([*ours, *peers], lambda cell: cell.score)
        if best is not None and best.method == OURS:
            won.append(name)
    return won, total


def _coverage(cells: dict[str, list[Cell]]) -> list[str]:
    lines = [
        "| method | problems with a number | runs | intervals that cover | runs with status ok | "
        "of these covered |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    methods = sorted({c.method for here in cells.values() for c in here}, key=_ORDER.index)
    for method in methods:
        mine = [cell for here in cells.values() for cell in here if cell.method == method]
        held = [cell for cell in mine if cell.done]
        runs, stated = sum(len(c.done) for c in held), sum(len(c.intervals) for c in held)
        covered = sum(cell.covered for cell in held)
        ok = [(cell, row) for cell in held for row in cell.done if row["status"] == "ok"]
        inside = sum(c.truth >= r["interval"][0] and c.truth <= r["interval"][1] for c, r in ok)
        lines.append(
            f"| {_named(method)} | {len(held)} | {runs} | "
            f"{f'{covered} of {stated}' if stated else '–'} | {len(ok) if ok else '–'} | "
            f"{inside if ok else '–'} |"
        )
    return lines


def peers_section(folder: Path = RESULTS) -> str:
    """The whole section."""
    cells = read_cells(folder)
    lines = [_INTRODUCTION]
    for name, here in cells.items():
        given = problem(name)
        lines += [
            "",
            f"### {name}",
            "",
            f"{given.dim} dimensions; log Z = {given.truth:.4f} ({given.source}).",
            "",
            *_table(here),
        ]
    lost, results = _compared(cells)
    won, total = _honest(cells)
    lines += ["", "### Verdicts", "", *_coverage(cells), ""]
    compared = sum(map(len, results.values()))
    if compared:
        lines += [
            f"**Error at equal evaluations**: of {compared} problems the error of annealz is less than "
            f"half that of the best peer on {len(results['smaller'])}, more than twice on "
            f"{len(results['larger'])}, and between on {len(results['like'])}. With so few runs in a cell "
            "a factor of two says nothing. Errors compared here are rms errors where the stated error, if "
            "there is one, counts as one run more, for peers and annealz alike: one may be right by luck.",
            "",
            f"Smaller: {', '.join(results['smaller']) or 'none'}. About the same: "
            f"{', '.join(results['like']) or 'none'}.",
            "",
        ]
        if lost:
            lines += ["Where annealz loses:", "", *lost, ""]
    if total:
        lines += [
            "**The most honest interval**: by the interval score (width, and forty times the distance by "
            "which the truth is missed) the default run of annealz is the best of all methods that state "
            f"an error on {len(won)} of {total} problems: {', '.join(won) or 'none'}.",
            "",
        ]
    return "\n".join(lines).rstrip()


_INTRODUCTION = """## Against nested samplers and SMC

Every method gets the same prior and the same likelihood, its authors' defaults
([peer_methods.py](peer_methods.py)), and no knowledge of the problem
([problems_with_truth.py](problems_with_truth.py)). Evaluations are counted as they are made, pilots
included; one with its gradient counts as one. "annealz, equal evaluations" has as many as the best peer
of the table. Runs of peers end at a limit of CPU time, 450 to 500 s on one core for the slow ones. Cells
with one run say so in their column: take their errors as one draw. Cells that are missing have not been
run; nautilus and pocoMC train networks, and above 100 dimensions only methods with gradients are run.
The number of components and the rule for missed modes of annealz were chosen on the seeds of the eggbox
that are shown: its row tests neither. Funnel-10, wells-10 and spike-slab-5 were looked at, too.

Truths are closed forms or quadratures, done again in a test. The eggbox, the shells, two blobs and the
many-well agree with published figures. The spike and slab is Skilling's (2006) in five and ten
dimensions; the spike on a background, -11.53388, is that of BlackJAX's book. The
well-known data sets of logistic regressions (Pima, German credit) and the Finnish pines are not packaged
with any library: their place is taken by simulated data of like size, by scikit-learn's breast cancer
data, and by a simulated pattern; their log Z come from two unlike runs in float64 that are not in the
tables ([evidence_reference.py](evidence_reference.py))."""
