"""The tables of the trust study: README.md from results/*.jsonl.

    python studies/trust/trust_page.py [--out FOLDER]

A FOLDER without a page gets one like that of the study.

A run is wrong where it is off by more than 4 stated errors and by more than 0.05 nats, else right; it is ok
or unreliable by a status that does not know the exact value. Asked for, of the testing set:

    believed      of the runs that are ok, few are wrong
    calibrated    of the runs that are ok, the 95 % interval covers exact log Z in 93 to 97 %
"""

import argparse
import dataclasses
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import stats

from annealz.io.files import write_atomic
from problems import FERROMAGNETS, TESTING, TUNING, Problem
from trust import NUM_SEEDS, read_rows

__all__ = ["Counts", "Share", "count", "is_covered", "is_wrong", "write_page"]

MANY_ERRORS, FAR = 4.0, 0.05
CALIBRATED = 0.93, 0.97


@dataclasses.dataclass(frozen=True)
class Share:
    """So many of so many."""

    hits: int
    size: int

    @property
    def value(self) -> float:
        return self.hits / self.size if self.size else np.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Clopper and Pearson's."""
        tail, missed = (1 - level) / 2, self.size - self.hits
        low = stats.beta.ppf(tail, self.hits, missed + 1) if self.hits else 0.0
        high = stats.beta.isf(tail, self.hits + 1, missed) if missed else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        if not self.size:
            return "–"
        low, high = self.interval()
        return (
            f"{self.hits} of {self.size}, {100 * self.value:.1f} % "
            f"({100 * low:.1f}–{100 * high:.1f})"
        )


@dataclasses.dataclass(frozen=True)
class Counts:
    """Runs by status and truth."""

    ok_right: int = 0
    ok_wrong: int = 0
    unreliable_right: int = 0
    unreliable_wrong: int = 0
    ok_covered: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Counts(*(a + b for a, b in zip(mine, theirs, strict=True)))

    @property
    def num_ok(self) -> int:
        return self.ok_right + self.ok_wrong

    @property
    def num_runs(self) -> int:
        return self.num_ok + self.unreliable_right + self.unreliable_wrong

    @property
    def silent(self) -> Share:
        """Ok and wrong, of all runs."""
        return Share(self.ok_wrong, self.num_runs)

    @property
    def silent_of_ok(self) -> Share:
        return Share(self.ok_wrong, self.num_ok)

    @property
    def silent_of_wrong(self) -> Share:
        return Share(self.ok_wrong, self.ok_wrong + self.unreliable_wrong)

    @property
    def alarm(self) -> Share:
        """Unreliable, of the runs that are right."""
        return Share(self.unreliable_right, self.unreliable_right + self.ok_right)

    @property
    def covered(self) -> Share:
        return Share(self.ok_covered, self.num_ok)


def is_wrong(row: dict) -> bool:
    """Off by more than 4 stated errors and more than 0.05 nats; an error that is unknown excuses all."""
    stated = row["estimate"]["std_err"]
    if not np.isfinite(row["error"]):
        return True
    return stated is not None and abs(row["error"]) > max(MANY_ERRORS * stated, FAR)


def is_covered(row: dict) -> bool:
    """Whether the 95 % interval holds the exact value."""
    low, high = row["estimate"]["interval"]
    return (low is None or low <= row["exact"]) and (high is None or row["exact"] <= high)


def count(rows: Iterable[dict]) -> Counts:
    """The table of 2 x 2, and the intervals of ok runs that cover."""
    total = Counts()
    for row in rows:
        key = f"{row['status']}_{'wrong' if is_wrong(row) else 'right'}"
        is_ok = row["status"] == "ok"
        total += Counts(**{key: 1}, ok_covered=int(is_ok and is_covered(row)))
    return total


Set = list[tuple[Problem, list[dict]]]
"""Problems and their runs."""


def read_set(folder: Path, problems: Iterable[Problem], results: str = "results") -> Set:
    return [
        (problem, read_rows(folder / results / f"{problem.name}.jsonl")) for problem in problems
    ]


def total_of(found: Set) -> Counts:
    return sum((count(rows) for _, rows in found), Counts())


def verdicts(tuning: Set, testing: Set) -> str:
    """The answers, of the testing set; the tuning set beside them."""
    counts, tuned = total_of(testing), total_of(tuning)
    if not counts.num_runs:
        return "The testing set was not run yet.\n"
    low, high = CALIBRATED
    is_calibrated = low <= counts.covered.value <= high
    silent = [
        f"{problem.name} ({count(rows).ok_wrong} of {len(rows)})"
        for problem, rows in testing
        if count(rows).ok_wrong
    ]
    lines = [
        f"- *Ok and wrong*, testing: **{counts.silent}** of all runs; {counts.silent_of_ok} of the runs "
        f"that are ok; {counts.silent_of_wrong} of the runs that are wrong."
        + (f" On {', '.join(silent)}." if silent else ""),
        f"- *Of the runs that are ok, the 95 % interval covers in {100 * low:.0f}–{100 * high:.0f} %*, "
        f"testing: **{'holds' if is_calibrated else 'does not hold'}**. {counts.covered}.",
        f"- *Unreliable though right*, testing: {counts.alarm} of the runs that are right.",
        f"- Tuning, for comparison: ok and wrong {tuned.silent}; coverage of ok {tuned.covered}.",
    ]
    few = [
        f"{problem.name} ({len(rows)})"
        for problem, rows in (*tuning, *testing)
        if len(rows) < NUM_SEEDS
    ]
    if few:
        lines.append(f"- Problems with fewer than {NUM_SEEDS} runs: {', '.join(few)}.")
    return "\n".join(lines) + "\n"


def both_table(tuning: Set, testing: Set) -> str:
    def row(name: str, found: Set) -> tuple:
        c = total_of(found)
        numbers = c.ok_right, c.ok_wrong, c.unreliable_right, c.unreliable_wrong
        return name, sum(bool(rows) for _, rows in found), c.num_runs, *numbers

    header = ("set", "problems", "runs", "ok and right", "ok and wrong", "unreliable and right",
              "unreliable and wrong")  # fmt: skip
    discrete = [pair for pair in testing if pair[0].is_discrete]
    rows = [row("tuning", tuning), row("testing", testing), row("testing, discrete only", discrete)]
    return _markdown(header, rows)


def problems_table(found: Set) -> str:
    return _markdown(
        ("problem", "what it is", "exact log Z", "by"),
        [
            (problem.name, problem.what, f"{rows[0]['exact']:.4f}" if rows else "–", problem.how)
            for problem, rows in found
        ],
    )


def runs_table(found: Set) -> str:
    header = ("problem", "ok right", "ok wrong", "unreliable right", "unreliable wrong",
              "95 % covers, of ok", "median stated error", "rms error", "bases", "median seconds",
              "findings")  # fmt: skip
    return _markdown(header, [_runs_row(problem, rows) for problem, rows in found if rows])


def _runs_row(problem: Problem, rows: list[dict]) -> tuple:
    c = count(rows)
    stated = [row["estimate"]["std_err"] for row in rows]
    known = [value for value in stated if value is not None]
    return (
        problem.name,
        c.ok_right,
        f"**{c.ok_wrong}**" if c.ok_wrong else 0,
        c.unreliable_right,
        c.unreliable_wrong,
        f"{c.ok_covered} of {c.num_ok}" if c.num_ok else "–",
        f"{np.median(known):.4f}" if known else "–",
        _rms(rows),
        _counted(row["estimate"]["base"] for row in rows),
        f"{np.median([row['seconds'] for row in rows]):.1f}",
        _counted(kind for row in rows for kind in row["findings"]),
    )


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in Counter(names).most_common()) or "–"


def made_with(found: Set) -> str:
    """Options and versions of the runs."""
    rows = [row for _, rows in found for row in rows]
    if not rows:
        return "No runs yet.\n"
    seen = {
        ", ".join(f"{name} {row['versions'][name]}" for name in ("annealz", "jax", "device"))
        for row in rows
    }
    options = {str(row["options"]) if row["options"] else "defaults" for row in rows}
    settings = {
        f"K = {row['estimate']['num_steps']:,}, N = {row['estimate']['num_chains']:,}"
        for row in rows
    }
    parts = (sorted(part) for part in (options, settings, seen))
    return "; ".join(" or ".join(part) for part in parts) + ".\n"


def ferromagnets_table(forward: Set, both: Set) -> str:
    """Ok and right, ok and wrong, unreliable and right, unreliable and wrong; from one side, from two."""

    def counts(rows: list[dict]) -> str:
        c = count(rows)
        return f"{c.ok_right}, **{c.ok_wrong}**, {c.unreliable_right}, {c.unreliable_wrong}"

    header = ("problem", "forward", "rms error", "two-sided", "rms error")
    lines = [
        (problem.what, *(x for rows in sides for x in (counts(rows), _rms(rows))))
        for (problem, one), (_, two) in zip(forward, both, strict=True)
        for sides in [(one, two)]
    ]
    return _markdown(header, lines)


def _rms(rows: list[dict]) -> str:
    errors = np.array([row["error"] for row in rows])
    return f"{np.sqrt((errors**2).mean()):.4f}" if rows else "–"


_PAGE = Path(__file__).parent / "README.md"
_BLOCK = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def write_page(folder: Path) -> None:
    """The generated blocks of FOLDER/README.md, from FOLDER/results."""
    page = folder / "README.md"
    text = (page if page.exists() else _PAGE).read_text("utf-8")
    tuning, testing = read_set(folder, TUNING), read_set(folder, TESTING)
    forward = read_set(folder, FERROMAGNETS)
    both = read_set(folder, FERROMAGNETS, "results-two-sided")
    found = {
        "ferromagnets": ferromagnets_table(forward, both),
        "verdicts": verdicts(tuning, testing),
        "both": both_table(tuning, testing),
        "made-with": made_with([*tuning, *testing]),
        "tuning": problems_table(tuning),
        "testing": problems_table(testing),
        "tuning-runs": runs_table(tuning),
        "testing-runs": runs_table(testing),
    }

    def replaced(match: re.Match) -> str:
        content = found.get(match["name"])
        return match[0] if content is None else f"{match[1]}\n{content}\n{match[3]}"

    write_atomic(page, _BLOCK.sub(replaced, text))


def _markdown(header: tuple, rows: list[tuple]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    write_page(parser.parse_args().out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
