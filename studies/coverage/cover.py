"""Do the intervals mean what they say? Many seeds of models whose log Z is known.

    python studies/coverage/cover.py [--cases NAME …] [--seeds R] [--out FOLDER] [--seconds S] [--fresh]

Every seed is one run as a user has it (`anneal`), diagnosed as a user's is (`diagnostics.judge`), and for
the two-sided column one run in reverse from exact draws (`judge_two_sided`). Two things differ from
`estimate_log_z`: a schedule that takes a pilot is built once per model, not once per seed, and the exact
draws of all seeds come from one enumeration.

    FOLDER/weights/NAME.npz    log weights, written every few seeds: what an interrupted study resumes from
    FOLDER/results/NAME.npz    the diagnoses, made again from the weights if these are there; without
                               weights (they are not committed) taken as they are, except with --fresh
    FOLDER/coverage.csv, FOLDER/README.md    the table and the verdicts (`coverage_verdicts.py`)
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from annealz.core.random import derive_seed
from annealz.diagnostics.diagnostics import judge
from annealz.diagnostics.two_sided import judge_two_sided
from annealz.engine.anneal import anneal
from annealz.io.archive import load_archive, save_archive
from annealz.schedules.schedule import Schedule
from cases import AGAIN, CASES, SEED, Case, Target
from coverage_verdicts import COLUMNS, Outcome, write_page

__all__ = ["judge_all", "run_case"]

NUM_SEEDS = 200
NUM_SEEDS_AGAIN = 400
SAVE_EVERY = 10  # seeds


@dataclasses.dataclass
class Weights:
    """What was run so far."""

    schedule: Schedule
    forward: np.ndarray
    """(seeds, chains), log w."""
    reverse: np.ndarray
    """(seeds run in reverse, chains), -log w."""


def settings_of(case: Case, target: Target) -> dict:
    """What the weights depend on; weights of other settings are not gone on from."""
    return {
        "case": case.name,
        "num_steps": case.num_steps,
        "num_chains": case.num_chains,
        "schedule": case.schedule,
        "log_z": target.log_z,
        "log_z0": target.path.log_z0,
        "seed": SEED,
    }


def run_case(
    case: Case,
    num_seeds: int,
    num_two_sided: int,
    file: Path | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> tuple[Target, Weights]:
    """Forward and reverse weights of the first seeds; `file` keeps them as they come."""
    target = case.build()
    settings = settings_of(case, target)
    weights = None if file is None else _load(file, settings)
    if weights is None:
        none = np.empty((0, case.num_chains))
        weights = Weights(case.plan(target), none, none)

    def keep() -> None:
        if file is not None:
            arrays = {
                "betas": weights.schedule.betas,
                "forward": weights.forward,
                "reverse": weights.reverse,
            }
            save_archive(file, arrays, settings)

    def extend(name: str, wanted: int, run: Callable[[int], np.ndarray]) -> None:
        new = []
        for index in range(len(getattr(weights, name)), wanted):
            if is_over():
                break
            new.append(run(index))
            if len(new) == SAVE_EVERY or index == wanted - 1:
                setattr(weights, name, np.vstack([getattr(weights, name), *new]))
                new = []
                keep()
                print(f"{case.name}: {name} {index + 1} of {wanted}", file=sys.stderr, flush=True)

    def run(index: int, **options) -> np.ndarray:
        return anneal(
            target.path,
            target.kernel,
            weights.schedule,
            num_chains=case.num_chains,
            seed=derive_seed(SEED, case.name, index),
            observers={},
            record_every=case.num_steps,
            **options,
        ).work

    extend("forward", num_seeds, run)
    if len(weights.reverse) < num_two_sided and not is_over():
        size = case.num_chains
        draws = target.draw(num_two_sided * size, derive_seed(SEED, case.name, "draws"))
        draws = draws.reshape(num_two_sided, size, *draws.shape[1:])
        extend(
            "reverse",
            num_two_sided,
            lambda i: run(i, start=draws[i], reverse=True, purpose="reverse"),
        )
    return target, weights


def judge_all(case: Case, target: Target, weights: Weights) -> Outcome:
    """The diagnosis of every seed, as a user gets it."""
    rows, messages = [], []
    offset = target.path.log_z0 - target.log_z
    for index, forward in enumerate(weights.forward):
        verdict = judge(forward)
        (low, high), (low_68, high_68) = verdict.interval(0.95), verdict.interval(0.68)
        row = {
            "error": offset + verdict.log_mean,
            "std_err": verdict.std_err,
            "low": offset + low,
            "high": offset + high,
            "low_68": offset + low_68,
            "high_68": offset + high_68,
            "ess": verdict.ess,
            "variance": verdict.variance,
            "pareto_k": verdict.pareto_k,
            "is_ok": not any(kind.is_fatal for kind in verdict.findings),
        }
        kinds = [kind.name for kind in verdict.findings]
        if index < len(weights.reverse):
            both = judge_two_sided(forward, weights.reverse[index], are_exact=True)
            low, high = both.interval(0.95)
            row |= {
                "bar_error": offset + both.log_ratio,
                "bar_std_err": both.std_err,
                "bar_low": offset + low,
                "bar_high": offset + high,
                "bar_is_ok": not any(kind.is_fatal for kind in both.findings),
            }
            kinds += [f"BAR {kind.name}" for kind in both.findings]
        rows.append([float(row.get(column, np.nan)) for column in COLUMNS])
        messages.append(kinds)
    facts = {
        "name": case.name,
        "what": case.what,
        "num_steps": case.num_steps,
        "num_chains": case.num_chains,
        "schedule": case.schedule,
        "is_hard": case.is_hard,
        "log_z": target.log_z,
        "seed": SEED,
    }
    return Outcome(np.array(rows).reshape(-1, len(COLUMNS)), messages, facts)


def study(
    folder: Path,
    cases: Iterable[Case],
    num_seeds: int,
    seconds: float = np.inf,
    *,
    fresh: bool = False,
) -> list[Outcome]:
    """Run what is missing, for about so long; what there is then, in the order of CASES."""
    end = time.monotonic() + seconds
    for name in ("weights", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    outcomes = []
    for case in cases:
        kept = folder / "results" / f"{case.name}.npz"
        file = folder / "weights" / f"{case.name}.npz"
        if kept.exists() and not file.exists() and not fresh:
            found = Outcome.load(kept)
            if len(found.rows) >= num_seeds:
                outcomes.append(found)
                continue
        target, weights = run_case(
            case,
            num_seeds,
            min(num_seeds, case.num_two_sided),
            file,
            lambda: time.monotonic() > end,
        )
        if len(weights.forward):
            outcomes.append(judge_all(case, target, weights))
            outcomes[-1].save(kept)
    return outcomes


def _load(file: Path, settings: dict) -> Weights | None:
    if not file.exists():
        return None
    arrays, found = load_archive(file)
    if found != settings:
        raise ValueError(f"{file} holds weights of other settings: move it away.")
    schedule = Schedule(arrays["betas"], settings["schedule"])
    return Weights(schedule, arrays["forward"], arrays["reverse"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", type=int, default=NUM_SEEDS)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after about so long")
    parser.add_argument("--fresh", action="store_true", help="run where only results are at hand")
    a = parser.parse_args()
    cases = [case for case in CASES if case.name in a.cases]
    outcomes = study(a.out, cases, a.seeds, a.seconds, fresh=a.fresh)
    if len(cases) == len(CASES):
        again = study(a.out, AGAIN, NUM_SEEDS_AGAIN, a.seconds, fresh=a.fresh)
        write_page(a.out, outcomes, again)
    return 0


if __name__ == "__main__":
    sys.exit(main())
