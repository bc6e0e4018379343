"""Replica exchange against annealing at equal sweeps, from the base rate.

    python studies/exchange/exchange_runs.py [--seeds R] [--seconds S]

Each seed has 32 ladders of 32 values of beta over 10,000 sweeps, and 1,000 chains of 9,728 steps with a
mixing schedule and its pilot: 10.24 million sweeps either way. One line per seed and model is appended to
`results.jsonl`; what is there is not run again. Then the table of the page is printed. log Z of
mnist-pcd-500 is the reference of `studies/schedules` (634.5546 ± 0.0017), of the others exact.
"""

import argparse
import csv
import json
import sys
import time
from pathlib import Path

import numpy as np

import annealz
from annealz.diagnostics.diagnostics import judge
from annealz.models.formats.load import read_model

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
REFERENCES = HERE.parent / "schedules" / "results" / "standings.csv"
MODELS = ("mnist-cd25-20", "mnist-pcd-20", "mnist-pcd-500")
NUM_SWEEPS, NUM_STEPS, NUM_CHAINS, FIRST_SEED = 10_000, 9_728, 1_000, 1_000


def reference(name: str) -> float:
    """log Z of a model: exact where its file has it."""
    exact = read_model(name)[1].get("exact_log_z")
    if exact is not None:
        return exact
    with REFERENCES.open(encoding="utf-8") as stream:
        return next(float(row[6]) for row in csv.reader(stream) if row[0] == name)


def run(name: str, index: int) -> dict:
    """Both methods on one model with one seed."""
    model, exact, seed = read_model(name)[0], reference(name), FIRST_SEED + index
    path, kernel = model.path(model.choose_base("auto")), model.kernel()
    began = time.monotonic()
    found = annealz.exchange(path, kernel, num_sweeps=NUM_SWEEPS, seed=seed)
    middle = time.monotonic()
    schedule = annealz.plan_schedule(
        "mixing", path, kernel, num_steps=NUM_STEPS, num_chains=NUM_CHAINS, seed=seed
    )
    annealed = annealz.anneal(path, kernel, schedule, num_chains=NUM_CHAINS, seed=seed)
    judged = judge(annealed.log_weights)
    return {
        "model": name,
        "seed": index,
        "exact": exact,
        "exchange": {
            "error": found.log_z - exact,
            "std_err": found.std_err,
            "status": found.status.value,
            "barrier": float(found.last.barrier),
            "findings": [kind.name for kind in found.findings],
            "sweeps": found.sweeps,
            "seconds": middle - began,
        },
        "annealing": {
            "error": annealed.log_z0 + judged.log_mean - exact,
            "std_err": judged.std_err,
            "status": judged.status.value,
            "predicted": schedule.provenance["predicted_variance"],
            "variance": judged.variance,
            "ess": judged.ess,
            "sweeps": annealed.sweeps + schedule.provenance["pilot_sweeps"],
            "seconds": time.monotonic() - middle,
        },
    }


def table(rows: list[dict]) -> str:
    """Squared errors with bootstrap intervals, and calibration."""
    generator = np.random.default_rng(0)
    lines = [
        "| model | method | seeds | mean squared error (95 %) | median s.e. | mean z | s.d. of z | ok |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in MODELS:
        for method in ("exchange", "annealing"):
            here = [row[method] for row in rows if row["model"] == name]
            if not here:
                continue
            errors, std_errs = (
                np.array([row[key] for row in here]) for key in ("error", "std_err")
            )
            drawn = errors[generator.integers(0, errors.size, (4000, errors.size))]
            low, high = np.quantile((drawn**2).mean(1), [0.025, 0.975])
            z = errors / std_errs
            num_ok = sum(row["status"] == "ok" for row in here)
            lines.append(
                f"| {name} | {method} | {errors.size} | {np.mean(errors**2):.4f} ({low:.4f}–{high:.4f}) | "
                f"{np.median(std_errs):.3f} | {z.mean():+.2f} | {z.std(ddof=1):.2f} | {num_ok} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    a = parser.parse_args()
    lines = RESULTS.read_text("utf-8").splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    done, end = {(row["model"], row["seed"]) for row in rows}, time.monotonic() + a.seconds
    for index in range(a.seeds):
        for name in MODELS:
            if (name, index) in done or time.monotonic() > end:
                continue
            rows.append(run(name, index))
            with RESULTS.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
