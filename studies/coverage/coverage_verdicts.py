"""The table and the verdicts of the coverage study: pure functions of the diagnoses.

Asked for, of the issue's must-show 1, and read literally:

    calibrated    of the runs with status ok, the nominal 95 % interval covers exact log Z in 92 to 98 %
    warned        of the runs of a hard case whose error exceeds 1 nat, 90 % or more are not ok

A share of few runs is uncertain: beside it stands its 95 % Clopper-Pearson interval, which no verdict uses.
"""

import csv
import dataclasses
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from annealz.io.archive import load_archive, save_archive
from annealz.io.files import write_atomic

__all__ = ["COLUMNS", "Outcome", "Share", "Summary", "fill", "summarise", "write_page"]

COLUMNS = (
    "error",  # log Z-hat - log Z
    "std_err",
    "low",  # ends of the 95 % interval, less log Z
    "high",
    "low_68",
    "high_68",
    "ess",
    "variance",  # of log w
    "pareto_k",
    "is_ok",
    "bar_error",  # of BAR, NaN where nothing was run in reverse
    "bar_std_err",
    "bar_low",
    "bar_high",
    "bar_is_ok",
)
CALIBRATED = (0.92, 0.98)
WARNED = 0.9
LARGE_ERROR = 1.0  # nats


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The diagnoses of one model's runs."""

    rows: np.ndarray
    """(seeds, COLUMNS)."""
    messages: list[list[str]]
    """Kinds of message, of every seed."""
    facts: dict

    def __getitem__(self, column: str) -> np.ndarray:
        return self.rows[:, COLUMNS.index(column)]

    def save(self, path: Path) -> None:
        meta = {"kind": "coverage", "columns": COLUMNS, "messages": self.messages, **self.facts}
        save_archive(path, {"rows": self.rows}, meta)

    @classmethod
    def load(cls, path: Path) -> "Outcome":
        arrays, meta = load_archive(path)
        if tuple(meta.pop("columns", ())) != COLUMNS or meta.pop("kind", "") != "coverage":
            raise ValueError(f"{path} holds no results of this coverage study.")
        return cls(arrays["rows"], meta.pop("messages"), meta)


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
        tail = (1 - level) / 2
        low = stats.beta.ppf(tail, self.hits, self.size - self.hits + 1) if self.hits else 0.0
        high = (
            stats.beta.isf(tail, self.hits + 1, self.size - self.hits)
            if self.hits < self.size
            else 1.0
        )
        return float(low), float(high)

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} %" if self.size else "–"

    @property
    def with_interval(self) -> str:
        if not self.size:
            return "–"
        low, high = self.interval()
        return f"{self} ({100 * low:.0f}–{100 * high:.0f})"

    @classmethod
    def of(cls, which: np.ndarray) -> "Share":
        return cls(int(np.sum(which)), int(np.size(which)))


@dataclasses.dataclass(frozen=True)
class Summary:
    """One row of the table."""

    ok: Share
    covered: Share
    """Of the ok runs."""
    covered_68: Share
    covered_all: Share
    missed_low: int
    """Ok runs whose interval lies below the truth."""
    rms: float
    bias: float
    bias_ok: float
    warned: Share
    """Not ok, of the runs with an error above 1 nat."""
    bar_ok: Share
    bar_covered: Share
    """Of the two-sided runs with status ok."""
    bar_rms: float
    caught: Share
    """BAR not ok, or within 1 nat: of the pairs whose forward half is ok and more than 1 nat off."""

    @property
    def is_calibrated(self) -> bool | None:
        """None where no run was ok."""
        low, high = CALIBRATED
        return low <= self.covered.value <= high if self.covered.size else None

    @property
    def is_warned(self) -> bool | None:
        """None where no run was that far off."""
        return self.warned.value >= WARNED if self.warned.size else None


def summarise(outcome: Outcome) -> Summary:
    error, is_ok = outcome["error"], outcome["is_ok"] == 1
    inside = (outcome["low"] <= 0) & (outcome["high"] >= 0)
    inside_68 = (outcome["low_68"] <= 0) & (outcome["high_68"] >= 0)
    far = np.abs(error) > LARGE_ERROR
    two = np.isfinite(outcome["bar_error"])
    bar_ok = outcome["bar_is_ok"] == 1
    bar_inside = (outcome["bar_low"] <= 0) & (outcome["bar_high"] >= 0)
    silent = two & far & is_ok
    bar_right = ~bar_ok | (np.abs(outcome["bar_error"]) <= LARGE_ERROR)
    return Summary(
        ok=Share.of(is_ok),
        covered=Share.of(inside[is_ok]),
        covered_68=Share.of(inside_68[is_ok]),
        covered_all=Share.of(inside),
        missed_low=int((outcome["high"][is_ok] < 0).sum()),
        rms=_rms(error),
        bias=_mean(error),
        bias_ok=_mean(error[is_ok]),
        warned=Share.of(~is_ok[far]),
        bar_ok=Share.of(bar_ok[two]),
        bar_covered=Share.of(bar_inside[two & bar_ok]),
        bar_rms=_rms(outcome["bar_error"][two & bar_ok]),
        caught=Share.of(bar_right[silent]),
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else np.nan


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean())) if values.size else np.nan


_BLOCK = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def write_page(folder: Path, outcomes: list[Outcome], again: Sequence[Outcome] = ()) -> None:
    """coverage.csv, and the generated blocks of README.md; `again` enters no verdict."""
    summaries = [summarise(outcome) for outcome in outcomes]
    write_atomic(folder / "coverage.csv", as_csv(outcomes, summaries))
    page = folder / "README.md"
    found = {
        "models": models_table(outcomes),
        "coverage": coverage_table(outcomes, summaries),
        "far": far_table(outcomes, summaries),
        "two-sided": two_sided_table(outcomes, summaries),
        "messages": messages_table(outcomes),
        "verdicts": verdicts(outcomes, summaries),
        "again": coverage_table(list(again), [summarise(outcome) for outcome in again]),
    }
    if page.exists():
        write_atomic(page, fill(page.read_text("utf-8"), found))


def fill(text: str, found: dict[str, str]) -> str:
    """The text with its blocks replaced; a block that was not found stays as it is."""

    def replaced(match: re.Match) -> str:
        content = found.get(match["name"])
        return match[0] if content is None else f"{match[1]}\n{content}\n{match[3]}"

    return _BLOCK.sub(replaced, text)


def as_csv(outcomes: list[Outcome], summaries: list[Summary]) -> str:
    """All numbers of the tables, one row a model."""
    rows = []
    for outcome, s in zip(outcomes, summaries, strict=True):
        low, high = s.covered.interval() if s.covered.size else (np.nan, np.nan)
        numbers = {
            "share_ok": s.ok.value,
            "coverage_ok": s.covered.value,
            "coverage_ok_low": low,
            "coverage_ok_high": high,
            "coverage_68_ok": s.covered_68.value,
            "coverage_all": s.covered_all.value,
            "rms_error": s.rms,
            "mean_error": s.bias,
            "mean_error_ok": s.bias_ok,
            "share_not_ok_of_far": s.warned.value,
            "bar_share_ok": s.bar_ok.value,
            "bar_coverage_ok": s.bar_covered.value,
            "bar_rms_error_ok": s.bar_rms,
        }
        counts = {
            "num_ok": s.ok.hits,
            "num_ok_below": s.missed_low,
            "num_far": s.warned.size,
            "num_far_and_ok": s.warned.size - s.warned.hits,
            "num_two_sided": s.bar_ok.size,
        }
        facts = ("name", "num_steps", "num_chains", "schedule", "is_hard", "log_z")
        rows.append(
            {key: outcome.facts[key] for key in facts}
            | {"num_seeds": len(outcome.rows)}
            | counts
            | {key: "" if np.isnan(value) else f"{value:.4g}" for key, value in numbers.items()}
        )
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def models_table(outcomes: list[Outcome]) -> str:
    return _markdown(
        ("model", "what it is", "hard", "K", "N", "schedule", "seeds", "median Var[log w]", "median ESS",
         "median k̂"),
        [
            (o.facts["name"], o.facts["what"], "yes" if o.facts["is_hard"] else "",
             f"{o.facts['num_steps']:,}", o.facts["num_chains"], o.facts["schedule"], len(o.rows),
             f"{np.median(o['variance']):.2f}", f"{np.median(o['ess']):.0f}",
             f"{np.median(o['pareto_k']):.2f}")
            for o in outcomes
        ],
    )  # fmt: skip


def coverage_table(outcomes: list[Outcome], summaries: list[Summary]) -> str:
    return _markdown(
        ("model", "status ok", "95 % covers, of ok", "ok but below", "ok but above", "68 % covers, of ok",
         "95 % covers, of all", "rms error", "mean error", "mean error of ok", "92–98 %"),
        [
            (o.facts["name"], f"{s.ok.hits} of {s.ok.size}", s.covered.with_interval, s.missed_low,
             s.covered.size - s.covered.hits - s.missed_low, s.covered_68, s.covered_all,
             f"{s.rms:.3f}", f"{s.bias:+.3f}", "–" if np.isnan(s.bias_ok) else f"{s.bias_ok:+.3f}",
             _answer(s.is_calibrated, "no run is ok"))
            for o, s in zip(outcomes, summaries, strict=True)
        ],
    )  # fmt: skip


def far_table(outcomes: list[Outcome], summaries: list[Summary]) -> str:
    return _markdown(
        ("model", "hard", "runs more than 1 nat off", "of these not ok", "90 % or more"),
        [
            (o.facts["name"], "yes" if o.facts["is_hard"] else "", s.warned.size,
             s.warned.with_interval, _answer(s.is_warned, "no such run"))
            for o, s in zip(outcomes, summaries, strict=True)
        ],
    )  # fmt: skip


def two_sided_table(outcomes: list[Outcome], summaries: list[Summary]) -> str:
    return _markdown(
        ("model", "pairs", "BAR ok", "95 % covers, of ok", "rms error of ok", "forward rms error",
         "forward ok and > 1 nat off", "of these BAR right or not ok"),
        [
            (o.facts["name"], s.bar_ok.size, s.bar_ok, s.bar_covered.with_interval,
             f"{s.bar_rms:.3f}", f"{s.rms:.3f}", s.caught.size, s.caught)
            for o, s in zip(outcomes, summaries, strict=True)
            if s.bar_ok.size
        ],
    )  # fmt: skip


def messages_table(outcomes: list[Outcome]) -> str:
    """How often every kind of message was given."""
    kinds = sorted({kind for o in outcomes for found in o.messages for kind in found})
    return _markdown(
        ("model", *kinds),
        [
            (o.facts["name"], *(sum(kind in found for found in o.messages) for kind in kinds))
            for o in outcomes
        ],
    )


def verdicts(outcomes: list[Outcome], summaries: list[Summary]) -> str:
    """The must-show, in its own words."""
    named = [
        (o.facts["name"], o.facts["is_hard"], s) for o, s in zip(outcomes, summaries, strict=True)
    ]
    low, high = (f"{100 * bound:.0f}" for bound in CALIBRATED)
    outside = [f"{name} ({s.covered} of {s.covered.size})" for name, _, s in named
               if s.is_calibrated is False]  # fmt: skip
    empty = [name for name, _, s in named if s.is_calibrated is None]
    loud = [(name, s) for name, is_hard, s in named if is_hard]
    silent = [f"{name} ({s.warned} of {s.warned.size})" for name, s in loud if s.is_warned is False]
    pooled = Share(sum(s.warned.hits for _, s in loud), sum(s.warned.size for _, s in loud))
    easy = [s for _, is_hard, s in named if not is_hard]
    joined = Share(sum(s.covered.hits for s in easy), sum(s.covered.size for s in easy))
    lines = [
        f"- *Nominal 95 % intervals with status ok cover exact log Z in {low}–{high} %* on every model: "
        f"**{'does not hold' if outside else 'holds'}**. "
        + (f"Outside: {', '.join(outside)}. " if outside else "")
        + (f"No run was ok on {', '.join(empty)}. " if empty else "")
        + f"All models that are not hard, pooled: {joined.with_interval} of {joined.size}.",
        "- *For hard cases the status is not ok in at least 90 % of the runs whose error exceeds 1 nat*, "
        f"on every hard case: **{'does not hold' if silent else 'holds'}**. "
        + (f"Below: {', '.join(silent)}. " if silent else "")
        + f"All hard cases, pooled: {pooled.with_interval} of {pooled.size}.",
    ]
    return "\n".join(lines) + "\n"


def _answer(is_so: bool | None, otherwise: str) -> str:
    return otherwise if is_so is None else "holds" if is_so else "**does not hold**"


def _markdown(header: tuple, rows: list[tuple]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
