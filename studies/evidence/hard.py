"""Is ok to be believed on hard densities? Runs of `estimate_log_z` with its defaults.

    python studies/evidence/hard.py --set tuning --seeds 5 --out FILE [--problems NAME …] [--kinds KIND …]
        [--workers W] [--steps K] [--chains N] [--seconds S]

FILE gets one JSON line per run, as it comes; what is there is not run again. Then the summary, of all lines
of FILE: a run is wrong if it is off by more than 4 stated errors and by more than 0.05 nats; of an improper
target every number is wrong, and refusing it is right. Workers are
processes with a share of the cores each.
"""

import argparse
import concurrent.futures
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a device is shared

from hard_problems import HARD, Hard

__all__ = ["outcome", "read_rows", "run_one", "summary"]

SEED = 20261117
FEWEST_ERRORS, LEAST_NATS = 4.0, 0.05
OUTCOMES = (
    "ok and right",
    "ok and wrong",
    "unreliable and right",
    "unreliable and wrong",
    "refused",
    "failed",
)


def run_one(problem: Hard, index: int, options: dict) -> dict:
    """One run, whatever comes of it."""
    import annealz
    from annealz.core.random import derive_seed

    row = {"problem": problem.name, "kind": problem.kind, "set": problem.set, "dim": problem.dim}
    row |= {"seed": index, "truth": problem.truth, "options": options}
    began = time.monotonic()
    try:
        seed = derive_seed(SEED, f"{problem.set} {problem.name}", index)
        estimate = annealz.estimate_log_z(problem.model(), seed=seed, **options)
        evaluations = estimate.evaluations or {}
        row |= {
            "log_z": estimate.log_z,
            "std_err": estimate.std_err,
            "status": estimate.status.value,
            "evaluations": sum(evaluations.values()),
            "of_evaluations": evaluations,
            "base": estimate.base,
            "num_steps": estimate.num_steps,
            "num_chains": estimate.num_chains,
            "findings": [kind.name for kind in estimate.findings],
            "messages": list(estimate.messages),
        }
    except ValueError as error:  # a refusal is a sentence; what JAX raises inside is a failure
        status = "failed" if "\n" in str(error) else "refused"
        row |= {"status": status, "messages": [str(error)[:1000]]}
    except Exception as error:
        row |= {"status": "failed", "messages": [f"{type(error).__name__}: {error}"]}
    return row | {"seconds": round(time.monotonic() - began, 2)}


def outcome(row: dict) -> str:
    """Which of OUTCOMES a run is."""
    if row["status"] in ("refused", "failed"):
        return row["status"]
    off = abs(row["log_z"] - row["truth"])
    is_wrong = not off <= max(FEWEST_ERRORS * row["std_err"], LEAST_NATS)
    return f"{row['status']} and {'wrong' if is_wrong else 'right'}"


def read_rows(file: Path) -> list[dict]:
    """The runs of a file; a line that was cut short is left out."""
    rows = {}
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows[row["set"], row["problem"], row["seed"]] = row
    return list(rows.values())


def summary(rows: list[dict]) -> str:
    """Runs by outcome, of every problem and in all, as a table."""
    lines = [
        f"| set | problem | {' | '.join(OUTCOMES)} | mean error | mean s.e. | evaluations | seconds |",
        f"|---|---|{'---:|' * (len(OUTCOMES) + 4)}",
    ]

    def line(where: str, name: str, here: list[dict]) -> str:
        counts = Counter(map(outcome, here))
        done = [row for row in here if "log_z" in row and abs(row["truth"]) < float("inf")]
        shown = ["–"] * 3
        if done:
            mean = [sum(row[key] for row in done) / len(done) for key in ("log_z", "std_err")]
            truth = sum(row["truth"] for row in done) / len(done)
            shown[:2] = f"{mean[0] - truth:+.3f}", f"{mean[1]:.3f}"
        ended = [row for row in here if "log_z" in row]
        if ended:
            shown[2] = f"{sum(row['evaluations'] for row in ended) / len(ended):,.0f}"
        seconds = sum(row["seconds"] for row in here) / len(here)
        cells = [str(counts[name] or "") for name in OUTCOMES]
        return f"| {where} | {name} | {' | '.join(cells)} | {' | '.join(shown)} | {seconds:.1f} |"

    order = {(problem.set, problem.name): i for i, problem in enumerate(HARD)}
    rows = sorted(rows, key=lambda row: order.get((row["set"], row["problem"]), len(order)))
    for (where, name), here in itertools.groupby(rows, lambda row: (row["set"], row["problem"])):
        lines.append(line(where, name, list(here)))
    for where in dict.fromkeys(row["set"] for row in rows):
        lines.append(line(where, "**all**", [row for row in rows if row["set"] == where]))
    counts = Counter(map(outcome, rows))
    share = counts["ok and wrong"] / max(len(rows), 1)
    lines += ["", f"ok and wrong: {counts['ok and wrong']} of {len(rows)} runs ({share:.1%})."]
    return "\n".join(lines)


def _share_cores(ticket, workers: int) -> None:
    """A worker's own cores, before JAX counts them."""
    with ticket.get_lock():
        mine, ticket.value = ticket.value, ticket.value + 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[mine % len(cores) :: workers] or [cores[mine % len(cores)]])


def _run_problem(place: int, seeds: list[int], options: dict, out: Path, end: float) -> None:
    """The seeds of one problem, which share their compiled programs; a line each."""
    for index in seeds:
        if time.time() > end:
            return
        row = run_one(HARD[place], index, options)
        with out.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        words = f"{row['log_z']:.4f} ± {row['std_err']:.4f}" if "log_z" in row else ""
        print(
            f"{row['set']} {row['problem']} {row['seed']}: {outcome(row)} {words} "
            f"(truth {row['truth']:.4f}), {row['seconds']} s",
            file=sys.stderr,
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--set",
        choices=["tuning", "seen", "seen-2", "testing", "testing-2", "beyond", "all"],
        default="all",
    )
    parser.add_argument("--problems", nargs="+", metavar="NAME")
    parser.add_argument("--kinds", nargs="+", choices=sorted({problem.kind for problem in HARD}))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, help="instead of the default")
    parser.add_argument("--chains", type=int, help="instead of the default")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start none after this")
    a = parser.parse_args()
    asked = {"num_steps": a.steps, "num_chains": a.chains}
    options = {name: value for name, value in asked.items() if value is not None}
    done = {(row["set"], row["problem"], row["seed"]) for row in read_rows(a.out)}
    end = time.time() + a.seconds
    jobs = []
    for place, problem in enumerate(HARD):
        if a.set not in ("all", problem.set) or problem.name not in (a.problems or [problem.name]):
            continue
        if problem.kind not in (a.kinds or [problem.kind]):
            continue
        seeds = [i for i in range(a.seeds) if (problem.set, problem.name, i) not in done]
        if seeds:
            jobs.append((place, seeds, options, a.out, end))
    if a.workers == 1:
        for job in jobs:
            _run_problem(*job)
    elif jobs:
        context = multiprocessing.get_context("spawn")
        given = (context.Value("i", 0), a.workers)
        with concurrent.futures.ProcessPoolExecutor(
            a.workers, context, _share_cores, given
        ) as pool:
            for future in [pool.submit(_run_problem, *job) for job in jobs]:
                future.result()
    print(summary(read_rows(a.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
