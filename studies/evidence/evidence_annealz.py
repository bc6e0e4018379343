"""annealz on the problems of the peers: with its defaults, at the evaluations of the best peer, and nested.

    python studies/evidence/evidence_annealz.py [--seeds R] [--problems NAME …] [--budget S]

    results/annealz.jsonl    one line per run, appended as it comes; what is there is not run again

The likelihood is given with its prior, in JAX (`from_prior`). "equal" scales steps and chains of the
default run by the same factor, so that a run costs as many evaluations, pilots included, as those of the
peer with the smallest error. "nested" is nested sampling with its defaults. Times are CPU seconds of one
core, as those of the peers; the first run of a problem compiles, the others use its programs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from evidence_peers import OUT as PEERS
from evidence_peers import read_rows
from problems_with_truth import NAMES, problem

HERE = Path(__file__).parent
OURS, EQUAL, NESTED = "annealz", "annealz-equal", "annealz-nested"
OUT = HERE / "results" / "annealz.jsonl"
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


def model(name: str) -> Any:
    """The prior and the likelihood: a transform of the cube as dynesty takes it, or a normal prior."""
    import numpyro.distributions as dist

    import annealz

    given = problem(name)
    if given.low is None:
        prior = dist.Normal(0.0, 1.0).expand([given.dim]).to_event(1)
        return annealz.from_prior(given.in_jax, prior=prior, name=name)
    return annealz.from_prior(given.in_jax, given.transform_in_jax, given.dim, name=name)


def typical_error(rows: list[dict[str, Any]], truth: float) -> float:
    """Rms error of few runs: the stated error, where there is one, counts as one run more.

    One run may be right by luck; without this the luckiest of seven peers would be the best.
    """
    squares = [(row["log_z"] - truth) ** 2 for row in rows]
    stated = [row["std_err"] ** 2 for row in rows if row.get("std_err") is not None]
    return float(np.sqrt(np.mean(squares + ([np.mean(stated)] if stated else []))))


def best_peer(rows: list[dict[str, Any]], name: str) -> tuple[str, float, float] | None:
    """The peer with the smallest typical error on a problem, that error, and its evaluations."""
    truth, found = problem(name).truth, []
    for method in dict.fromkeys(row["method"] for row in rows):
        here = [r for r in rows if r["method"] == method and r["problem"] == name]
        here = [r for r in here if r["status"] == "done"]
        if here and truth is not None:
            evaluations = float(np.mean([r["evaluations"] for r in here]))
            found.append((typical_error(here, truth), evaluations, method))
    if not found:
        return None
    error, evaluations, method = min(found)
    return method, error, evaluations


def run(method: str, name: str, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """One run in this process."""
    import annealz
    from annealz.core.devices import versions

    given = model(name)
    row: dict[str, Any] = {"problem": name, "seed": seed, "options": options}
    began = time.process_time()
    try:
        if method == NESTED:
            estimate = annealz.estimate_log_z(given, method="nested", seed=seed, **options)
            row |= {"evaluations": estimate.evaluations["main"], "num_live": estimate.num_live}
        else:
            estimate = annealz.estimate_log_z(given, seed=seed, **options)
            evaluations = estimate.evaluations
            assert evaluations is not None
            row |= {
                "evaluations": sum(evaluations.values()),
                "of_evaluations": evaluations,
                "num_steps": estimate.num_steps,
                "num_chains": estimate.num_chains,
                "base": estimate.base,
            }
        row |= {
            "log_z": estimate.log_z,
            "std_err": estimate.std_err,
            "interval": list(estimate.interval()),
            "status": estimate.status.value,
            "findings": [kind.name for kind in estimate.findings],
        }
    except ValueError as error:  # a refusal is a sentence; what JAX raises inside is a failure
        status = "failed" if "\n" in str(error) else "refused"
        row |= {"status": status, "message": str(error)[:300]}
    return row | {"seconds": round(time.process_time() - began, 2), "versions": versions()}


def run_apart(
    method: str, name: str, seeds: list[int], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """The same in a process of its own, where the seeds share compiled programs."""
    given = [method, name, ",".join(map(str, seeds)), json.dumps(options)]
    done = subprocess.run(
        [sys.executable, __file__, "--one", *given],
        env=os.environ | _ONE_THREAD,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not rows:
        print(done.stderr[-2000:], file=sys.stderr)
    return rows


def equal_options(default: dict[str, Any], evaluations: float) -> dict[str, int]:
    """Steps and chains that cost about so many evaluations."""
    factor = np.sqrt(evaluations / default["evaluations"])
    return {
        "num_steps": max(int(default["num_steps"] * factor), 20),
        "num_chains": max(int(default["num_chains"] * factor), 50),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", nargs="+", default=list(NAMES))
    parser.add_argument("--budget", type=float, default=float("inf"), help="CPU seconds in all")
    parser.add_argument("--one", nargs=4, metavar=("METHOD", "PROBLEM", "SEEDS", "OPTIONS"))
    a = parser.parse_args()
    if a.one:
        method, name, seeds, options = a.one
        for seed in seeds.split(","):
            print(json.dumps(run(method, name, int(seed), json.loads(options))), flush=True)
        return
    rows = {(row["method"], row["problem"], row["seed"]): row for row in read_rows(OUT)}
    peers, spent = read_rows(PEERS), 0.0
    for name in a.problems:
        for method in (OURS, EQUAL, NESTED):
            seeds = [seed for seed in range(a.seeds) if (method, name, seed) not in rows]
            if not seeds or spent > a.budget:
                continue
            options, more = {}, {}
            if method == EQUAL:
                best, first = best_peer(peers, name), rows.get((OURS, name, 0))
                if best is None or first is None or "log_z" not in first:
                    continue
                options, more = equal_options(first, best[2]), {"peer": best[0]}
            for found in run_apart(method, name, seeds, options):
                row = {"method": method, **found, **more}
                rows[method, name, row["seed"]] = row
                spent += row["seconds"]
                with OUT.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
                shown = {k: row.get(k) for k in ("log_z", "std_err", "evaluations", "seconds")}
                print(method, name, row["seed"], row["status"], shown, flush=True)


if __name__ == "__main__":
    main()
