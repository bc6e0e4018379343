"""Quality before and after a change: tables from the runs of `quality_runs.py`.

    PYTHONPATH=studies/schedules:studies/trust python studies/quality/quality_page.py [BEFORE AFTER]

Without arguments the blocks of README.md from results/before.jsonl and results/after.jsonl; with two files,
or folders of files, the same tables printed.

Losses, of which a larger one is worse:

    race     log Var[log w], -log ESS, (log Z-hat - log Z)^2            of every cell and schedule
    trust    log stated error, z^2 = (log Z-hat - log Z)^2 / stated error^2     of every problem
    status   runs that are ok before alone against those that are ok after alone, all problems together

All p are one-sided, of pairs of one seed (`quality_pairs.py`). Two families, each with Holm's correction:
the losses over all cells, over all problems, and the status, six tests, which answer the question; and
every cell and problem by itself, which few pairs cannot decide. Squared errors of a cell are divided by
their mean, before and after together, where they are joined. log Z of 500 units is the reference of
`studies/schedules`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from annealz.io.files import write_atomic
from outcome import Outcome
from quality_pairs import Pairs, Ratio, log_ratio, made_on, worse_p
from quality_runs import CELLS, SCHEDULES, TRUSTED
from race import Key
from significance import holm
from standings import fill
from trust_page import Counts, count

__all__ = ["LEVEL", "Study", "blocks", "main"]

HERE = Path(__file__).parent
RACE = HERE.parent / "schedules" / "results" / "results.npz"
LEVEL = 0.05


class Finding(NamedTuple):
    """A comparison, and the chance of one as bad by accident."""

    what: str
    p: float


class Study:
    """Two sets of runs, matched by seed."""

    def __init__(self, before: Path, after: Path):
        rows = [_by_name(file) for file in (before, after)]
        cells = (Key(m, "base-rate", s, k) for m, k in CELLS for s in SCHEDULES)
        both = [(str(key), key) for key in cells] + [(name, None) for name in TRUSTED]
        found = {
            name: (key, Pairs.match(*(side.get(name, []) for side in rows))) for name, key in both
        }
        self.race = {key: pairs for key, pairs in found.values() if key and pairs.size}
        self.trust = {name: pairs for name, (key, pairs) in found.items() if not key and pairs.size}
        race = Outcome.load(RACE)
        self.log_z = {model: race.truth(model).log_z for model, _ in CELLS}

    def errors(self, key: Key) -> tuple[np.ndarray, np.ndarray]:
        """Of log Z-hat, before and after."""
        return self.race[key].values(lambda row: row["log_z"] - self.log_z[key.model])

    def losses(self) -> Iterator[tuple[str, str, tuple[np.ndarray, np.ndarray]]]:
        """What is measured, of which cell or problem, and the losses before and after."""
        for key, pairs in self.race.items():
            squares = np.square(self.errors(key))
            yield "Var[log w]", str(key), tuple(np.log(pairs.values(_variance)))
            yield "ESS", str(key), tuple(-np.log(pairs.values(_ess)))
            yield "squared error", str(key), tuple(squares / squares.mean())
        for name, pairs in self.trust.items():
            yield "stated error", name, tuple(np.log(pairs.values(_std_err)))
            yield "z²", name, tuple(np.square(pairs.values(_z)))

    def findings(self) -> list[Finding]:
        """Every cell and problem by itself."""
        return [Finding(f"{what} of {name}", worse_p(*loss)) for what, name, loss in self.losses()]

    def together(self) -> list[Finding]:
        """Every measure over all cells or problems, and the status."""
        joined: dict[str, list] = {}
        for what, _, loss in self.losses():
            joined.setdefault(what, []).append(loss)
        found = [
            Finding(what, worse_p(*(np.concatenate(side) for side in zip(*losses, strict=True))))
            for what, losses in joined.items()
        ]
        return [*found, Finding("status", self.status_p())] if self.trust else found

    def changed(self) -> tuple[int, int]:
        """Runs that are ok before alone, and after alone."""
        lost = gained = 0
        for pairs in self.trust.values():
            before, after = pairs.values(_is_ok)
            lost += int((before > after).sum())
            gained += int((after > before).sum())
        return lost, gained

    def status_p(self) -> float:
        """McNemar's test, exact."""
        lost, gained = self.changed()
        if not lost + gained:
            return 1.0
        return float(stats.binomtest(lost, lost + gained, alternative="greater").pvalue)

    def variance_ratio(self, is_wanted: Callable[[Key], bool]) -> Ratio:
        """Of all replicates of some schedules and cells together."""
        chosen = [pairs.values(_variance) for key, pairs in self.race.items() if is_wanted(key)]
        before, after = (np.concatenate(side) for side in zip(*chosen, strict=True))
        return log_ratio(before, after)

    def totals(self) -> tuple[Counts, Counts]:
        """Of all problems, before and after."""
        sides = zip(*self.trust.values(), strict=True)
        before, after = (sum(map(count, side), Counts()) for side in sides)
        return before, after


def _by_name(file: Path) -> dict[str, list[dict]]:
    """Rows by cell or problem, of a file or of a folder of them."""
    found: dict[str, list[dict]] = {}
    for part in sorted(file.glob("*.jsonl")) if file.is_dir() else [file]:
        for line in part.read_text("utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:  # cut short
                continue
            name = row.get("problem") or str(Key(*(row[field] for field in Key._fields)))
            found.setdefault(name, []).append(row)
    return found


def _variance(row: dict) -> float:
    return row["variance"]


def _ess(row: dict) -> float:
    return row["ess"]


def _log_z(row: dict) -> float:
    return row["log_z"] if "log_z" in row else row["estimate"]["log_z"]


def _is_ok(row: dict) -> float:
    return float(row["status"] == "ok")


def _std_err(row: dict) -> float:
    """Stated; one that is unknown is infinite."""
    stated = row["estimate"]["std_err"]
    return np.inf if stated is None else stated


def _z(row: dict) -> float:
    return row["error"] / _std_err(row)


# --- blocks of the page ---


def verdict(study: Study) -> str:
    sizes = [pairs.size for pairs in (*study.race.values(), *study.trust.values())]
    lines = [
        f"- {len(study.race)} of {len(CELLS) * len(SCHEDULES)} cells and schedules and "
        f"{len(study.trust)} of {len(TRUSTED)} problems were run, with {min(sizes)} to {max(sizes)} pairs "
        "each.",
        f"- *Worse over all of them*: {_worse(study.together())}.",
        f"- *Worse in a single one*: {_worse(study.findings())}.",
    ]
    if study.race:
        every = study.variance_ratio(lambda key: True)
        lines.append(f"- Var[log w], after over before, all cells and schedules together: {every}.")
        for group, piloted in (("with a pilot", True), ("without", False)):
            wanted = [k for k in study.race if (k.schedule in ("mixing", "varopt")) == piloted]
            if wanted:
                ratio = study.variance_ratio(lambda key, wanted=wanted: key in wanted)
                lines.append(f"- Of schedules {group}: {ratio}.")
    if study.trust:
        before, after = study.totals()
        lost, gained = study.changed()
        lines += [
            f"- *Ok and wrong*: {before.silent} before, **{after.silent}** after.",
            f"- *Ok*, of {before.num_runs}: {before.num_ok} before, {after.num_ok} after; "
            f"{lost} runs are ok before alone, {gained} after alone (McNemar's p {study.status_p():.2g}).",
            f"- *The 95 % interval of a run that is ok covers*: {before.covered} before, "
            f"{after.covered} after.",
        ]
    return "\n".join(lines) + "\n"


def _worse(findings: list[Finding]) -> str:
    """Which are significant, with the least p in any case."""
    adjusted = holm(np.array([finding.p for finding in findings]))
    worse = [
        f"{finding.what} (Holm's p {p:.2g})"
        for finding, p in zip(findings, adjusted, strict=True)
        if p < LEVEL
    ]
    least = min(findings, key=lambda finding: finding.p)
    return (
        f"**{'; '.join(worse) or 'none'}** of {len(findings)} tests at the level of {LEVEL} with Holm's "
        f"correction; the least p before correction is {least.p:.2g} ({least.what})"
    )


def race_table(study: Study) -> str:
    lines = [
        "| model | K | schedule | runs | same bits | Var[log w] | after / before | p | ESS | p "
        "| rms error | p |",
        "| --- " * 12 + "|",
    ]
    for key, pairs in study.race.items():
        variance, ess = pairs.values(_variance), pairs.values(_ess)
        before, after = study.errors(key)
        cells = [
            key.model,
            f"{key.num_steps:,}",
            key.schedule,
            pairs.size,
            pairs.num_same(_log_z),
            _two(variance, "{:.3f}"),
            log_ratio(*variance),
            f"{worse_p(*np.log(variance)):.2g}",
            _two(ess, "{:.1f}"),
            f"{worse_p(*-np.log(ess)):.2g}",
            _two((before, after), "{:.4f}", _rms),
            f"{worse_p(before**2, after**2):.2g}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def trust_table(study: Study) -> str:
    lines = [
        "| problem | device | runs | same bits | ok | ok and wrong | stated error, after / before | p "
        "| rms error | rms z | p |",
        "| --- " * 11 + "|",
    ]
    for name, pairs in study.trust.items():
        stated, z = pairs.values(_std_err), pairs.values(_z)
        before, after = count(pairs.before), count(pairs.after)
        devices = {row["versions"]["device"].split()[0] for side in pairs for row in side}
        cells = [
            name,
            ", ".join(sorted(devices)),
            pairs.size,
            pairs.num_same(_log_z),
            f"{before.num_ok}, {after.num_ok}",
            f"{before.ok_wrong}, {after.ok_wrong}",
            log_ratio(*stated),
            f"{worse_p(*np.log(stated)):.2g}",
            _two(pairs.values(lambda row: row["error"]), "{:.4f}", _rms),
            _two(z, "{:.2f}", _rms),
            f"{worse_p(*np.square(z)):.2g}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def made_with(study: Study) -> str:
    every = [*study.race.values(), *study.trust.values()]
    kinds = {made_on(row) for pairs in every for row in pairs.before}
    words = " or ".join(f"jax {jax}, device {device}" for jax, device in sorted(kinds))
    before, after = (
        ", ".join(
            sorted(
                {row.get("commit") or "?" for pairs in study.race.values() for row in pairs[side]}
            )
        )
        for side in (0, 1)
    )
    size = sum(pairs.size for pairs in every)
    return f"{size:,} pairs of one seed, of {before or '?'} and {after or '?'}; {words}.\n"


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _two(sides: tuple[np.ndarray, np.ndarray], form: str, of: Callable = np.mean) -> str:
    return ", ".join(form.format(of(side)) for side in sides)


def blocks(study: Study) -> dict[str, str]:
    """All that the page holds."""
    return {
        "verdict": verdict(study),
        "race": race_table(study),
        "trust": trust_table(study),
        "made-with": made_with(study),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="BEFORE AFTER")
    a = parser.parse_args()
    if len(a.files) not in (0, 2):
        parser.error("give two files, or none")
    page = HERE / "README.md"
    study = Study(*(a.files or (HERE / "results" / f"{n}.jsonl" for n in ("before", "after"))))
    if a.files:
        print("\n".join(blocks(study).values()))
    else:
        write_atomic(page, fill(page.read_text("utf-8"), blocks(study)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
