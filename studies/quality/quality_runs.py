"""Runs that show whether a change of the code changed the quality of estimates.

    PYTHONPATH=SOURCE:studies/schedules:studies/trust python studies/quality/quality_runs.py --out FOLDER
        [--cells MODEL:K …] [--problems NAME …] [--replicates R] [--seconds S] [--commit NAME]

    FOLDER/MODEL-K-SCHEDULE.jsonl    replicates of the race of schedules
    FOLDER/NAME.jsonl                runs of `studies/trust`

of the annealz in SOURCE, with the same seeds whatever it is. Race: as in `studies/schedules`, a replicate
has K x 1000 sweeps, from which its own pilot is taken; but pilot and run are those of the library, one
replicate after the other, so that fused steps are among them. Trust: `estimate_log_z` with its defaults.

One line per run, written as it comes; what is there is not run again. The first replicate of all comes
first, then the second, so that all have about as many when time is up. Several processes may share a
folder, each with cells and problems of its own. `quality_page.py` compares two such folders, or files
joined from them.
"""

import argparse
import dataclasses
import functools
import itertools
import json
import sys
import time
from pathlib import Path

from annealz.core.devices import versions
from annealz.core.random import derive_seed
from annealz.core.weights import effective_sample_size, log_mean
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.pilots.plan import plan_schedule
from problems import PROBLEMS, Problem
from race import NUM_CHAINS, SEED, Key, make_path, pilot_of
from trust import read_rows, run_problem

__all__ = ["CELLS", "SCHEDULES", "TRUSTED", "run_all", "run_replicate"]

CELLS = (
    ("mnist-cd25-20", 10_000),
    ("mnist-pcd-500", 10_000),
    ("mnist-pcd-20", 1000),
    ("mnist-cd25-500", 1000),
)
"""Small and large models, long and short runs."""
SCHEDULES = ("mixing", "varopt", "sm08", "linear")
TRUSTED = (
    "cd1-20-stripped",
    "pcd-20-stripped",
    "cd25-20-means",
    "digits-pcd",
    "ferro-30x40-even",
    "hopfield-18x90",
    "glass-15x70",
    "ising-8-field",
    "potts-3-cold",
    "gaussian-12x6",
)
"""Trained with and without means, two phases, patterns, random weights, lattices, real units."""
NUM_REPLICATES = 20

_path = functools.cache(make_path)


@functools.cache
def _problem(name: str) -> Problem:
    """Built once: its exact value takes a while."""
    problem = PROBLEMS[name]
    return dataclasses.replace(problem, make=functools.cache(problem.make))


def run_replicate(key: Key, replicate: int) -> dict:
    """Pilot, schedule and run of one replicate, as a row."""
    path, seed = _path(key.model, key.base), derive_seed(SEED, *key, replicate)
    pilot, scale = pilot_of(key)
    began = time.monotonic()
    schedule = plan_schedule(
        key.schedule,
        path,
        BlockGibbs(),
        num_steps=key.num_steps - -(-pilot // NUM_CHAINS),
        num_chains=NUM_CHAINS,
        seed=seed,
        pilot_scale=scale,
    )
    planned = time.monotonic()
    run = anneal(path, BlockGibbs(), schedule, num_chains=NUM_CHAINS, seed=seed, purpose="race")
    log_weights = run.log_weights
    return {
        **key._asdict(),
        "index": replicate,
        "log_z": path.log_z0 + log_mean(log_weights),
        "ess": effective_sample_size(log_weights),
        "mean": path.log_z0 + log_weights.mean(),
        "variance": log_weights.var(),
        "seconds": [round(planned - began, 3), round(time.monotonic() - planned, 3)],
        "versions": versions(),
    }


def _race(key: Key, folder: Path, commit: str | None, index: int) -> None:
    file = folder / f"{key.model}-{key.num_steps}-{key.schedule}.jsonl"
    if index in {row["index"] for row in read_rows(file)}:
        return
    row = run_replicate(key, index) | {"commit": commit}
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")
    print(f"{key} {index}: ESS {row['ess']:.1f}, {row['seconds']} s", file=sys.stderr, flush=True)


def _trust(name: str, folder: Path, index: int, end: float) -> None:
    run_problem(_problem(name), folder / f"{name}.jsonl", index + 1, {}, end=end)


def run_all(
    folder: Path, keys, names, num_replicates: int, seconds: float, commit: str | None
) -> bool:
    """Run what is missing, for about so long; whether all is there."""
    end = time.time() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    works: list[functools.partial[None]] = [
        *(functools.partial(_race, key, folder, commit) for key in keys),
        *(functools.partial(_trust, name, folder, end=end) for name in names),
    ]
    is_whole = True
    for index, work in itertools.product(range(num_replicates), tuple(works)):
        if time.time() > end:
            return False
        if work not in works:
            continue
        try:
            work(index)
        except Exception as error:  # one that fails stops no other
            print(f"{work.args[0]}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            works.remove(work)
            is_whole = False
    return is_whole


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cells", nargs="*", default=[f"{m}:{k}" for m, k in CELLS])
    parser.add_argument("--problems", nargs="*", default=TRUSTED, metavar="NAME")
    parser.add_argument("--replicates", type=int, default=NUM_REPLICATES)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--commit", help="what SOURCE is, for the page")
    a = parser.parse_args()
    cells = [cell.split(":") for cell in a.cells]
    keys = [Key(m, "base-rate", s, int(k)) for m, k in cells for s in SCHEDULES]
    return 0 if run_all(a.out, keys, a.problems, a.replicates, a.seconds, a.commit) else 1


if __name__ == "__main__":
    sys.exit(main())
