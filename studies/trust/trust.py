"""Is ok to be believed? Runs of `estimate_log_z` with its defaults, on problems whose log Z is known.

    python studies/trust/trust.py [--set tuning|testing|ferromagnets] [--problems NAME …] [--seeds R]
        [--uai FOLDER] [--steps K] [--chains N] [--two-sided] [--jobs J] [--seconds S] [--out FOLDER]

    FOLDER/results/NAME.jsonl    one line per run, appended as it comes; what is there is not run again
                                 (results-two-sided with --two-sided)

The status of a line is found without the exact value: what is found by comparing with it is left out.
`trust_page.py` writes the tables. Several jobs are processes of their own, a problem each;
JAX_PLATFORMS=cpu keeps them off an accelerator.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from problems import PROBLEMS, SETS, Problem, set_of

__all__ = ["NUM_SEEDS", "blind_findings", "blind_status", "read_rows", "run_problem"]

SEED = 20261116
NUM_SEEDS = 20
_OF_EXACT = "CONTRADICTS_EXACT"
"""The kind of finding that knows the exact value."""


def blind_findings(estimate: Any) -> dict[Any, str]:
    """What was found without the exact value."""
    found = getattr(estimate, "findings", None)
    if found is None:
        found = (estimate.two_sided or estimate.judgement).findings
    return {kind: words for kind, words in found.items() if kind.name != _OF_EXACT}


def blind_status(estimate: Any) -> str:
    """The status as it would be had nobody known the exact value."""
    if getattr(estimate, "findings", None) is None:
        return estimate.status.value
    return "unreliable" if any(kind.is_fatal for kind in blind_findings(estimate)) else "ok"


def read_rows(file: Path) -> list[dict]:
    """The runs of a file, by seed; a line that was cut short is left out."""
    rows = {}
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[row["index"]] = row
    return [rows[index] for index in sorted(rows)]


def run_problem(
    problem: Problem,
    file: Path,
    num_seeds: int,
    options: dict[str, Any],
    uai: Path | None = None,
    end: float = float("inf"),
) -> int:
    """Run the seeds that `file` lacks, until the time `end`; how many it then lacks."""
    done = read_rows(file)
    if any(row["options"] != options for row in done):
        raise ValueError(f"{file} holds runs of other options: move it away.")
    missing = sorted(set(range(num_seeds)) - {row["index"] for row in done})
    if not missing or time.time() > end:
        return len(missing)
    from annealz.api import estimate_log_z
    from annealz.core.devices import versions
    from annealz.core.random import derive_seed

    model, exact = problem.build(uai)
    _end_line(file)
    while missing and time.time() <= end:
        index = missing[0]
        began = time.monotonic()
        estimate = estimate_log_z(model, seed=derive_seed(SEED, problem.name, index), **options)
        seconds = time.monotonic() - began
        row = {
            "problem": problem.name,
            "set": set_of(problem.name),
            "index": index,
            "options": options,
            "exact": exact,
            "error": estimate.log_z - exact,
            "status": blind_status(estimate),
            "findings": [kind.name for kind in blind_findings(estimate)],
            "seconds": round(seconds, 3),
            "estimate": estimate.to_dict(),
            "versions": versions(),
        }
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        print(
            f"{problem.name} {index}: {row['error']:+.4f} ± {estimate.std_err:.4f} {row['status']}, "
            f"{estimate.base}, {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        missing.pop(0)
    return len(missing)


def _end_line(file: Path) -> None:
    """A line that was cut short is ended, so that the next one is not lost with it."""
    if file.exists() and not file.read_bytes().endswith(b"\n"):
        with file.open("a", encoding="utf-8") as stream:
            stream.write("\n")


def _run_named(name: str, *arguments: Any) -> int:
    return run_problem(PROBLEMS[name], *arguments)


def study(
    folder: Path,
    problems: Iterable[Problem],
    num_seeds: int,
    options: dict[str, Any],
    *,
    uai: Path | None = None,
    jobs: int = 1,
    seconds: float = float("inf"),
) -> int:
    """Run what is missing; how many problems are not done."""
    end = time.time() + seconds
    results = folder / ("results-two-sided" if options.get("two_sided") else "results")
    results.mkdir(parents=True, exist_ok=True)
    chosen, num_open = [], 0
    for problem in problems:
        file = results / f"{problem.name}.jsonl"
        if not problem.is_at_hand(uai) and len(read_rows(file)) < num_seeds:
            print(
                f"{problem.name} is left out: {problem.file} is not at hand (--uai).",
                file=sys.stderr,
            )
            num_open += 1
            continue
        chosen.append((problem.name, file, num_seeds, options, uai, end))
    if jobs == 1:
        return num_open + sum(_run(lambda a=a: _run_named(*a), a[0]) for a in chosen)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a device is shared
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = {pool.submit(_run_named, *arguments): arguments[0] for arguments in chosen}
        for future in concurrent.futures.as_completed(waiting):
            num_open += _run(future.result, waiting[future])
    return num_open


def _run(work, name: str) -> bool:
    """Whether it is not done; an error of one problem stops no other."""
    try:
        return work() > 0
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=list(SETS))
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=NUM_SEEDS)
    parser.add_argument("--steps", type=int, help="instead of the default")
    parser.add_argument("--chains", type=int, help="instead of the default")
    parser.add_argument("--two-sided", action="store_true")
    parser.add_argument("--uai", type=Path, help="folder of DBN_11.uai, DBN_12.uai, DBN_14.uai")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after about so long"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    a = parser.parse_args()
    chosen = PROBLEMS.values() if a.set is None else SETS[a.set]
    if a.problems is not None:
        chosen = [problem for problem in chosen if problem.name in a.problems]
    asked = {"num_steps": a.steps, "num_chains": a.chains, "two_sided": a.two_sided or None}
    options = {name: value for name, value in asked.items() if value is not None}
    num_open = study(
        a.out, chosen, a.seeds, options, uai=a.uai, jobs=a.jobs, seconds=a.seconds
    )  # fmt: skip
    if num_open:
        print(f"{num_open} problems are not done.", file=sys.stderr)
    return int(num_open > 0)


if __name__ == "__main__":
    sys.exit(main())
