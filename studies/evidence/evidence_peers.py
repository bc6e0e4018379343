"""Runs of all peers on all problems, a process each, in an environment of their own.

    .venv-peers/bin/python studies/evidence/evidence_peers.py [--seeds R] [--limit S] [--methods NAME …]
        [--problems NAME …] [--again S] [--budget S] [--out FILE]

    results/peers.jsonl    one line per run, appended as it comes, here or to FILE; what is there is not run
                           again, except what a shorter limit had cut

A run ends at `--limit` seconds of CPU time, and is then recorded with the evaluations that it had made.
Seeds after the first are run where the first took at most `--again` seconds. Times are CPU seconds of one
core: other programs on the machine change the wall clock, and hardly these.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE / "results" / "peers.jsonl"
Run = tuple[str, str, int]
"""Method, problem and seed."""
PACKAGES = {
    "dynesty": "dynesty",
    "ultranest": "ultranest",
    "nautilus": "nautilus-sampler",
    "pocomc": "pocomc",
    "pymc": "pymc",
    "blackjax-smc": "blackjax",
    "blackjax-nss": "blackjax",
}
MOST_DIM = 100
"""Above it only methods that take gradients run: the others would need days."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


def run_here(method: str, name: str, seed: int, limit: float) -> dict[str, Any]:
    """One run in this process, which ends with it."""
    from peer_methods import METHODS, Counter
    from problems_with_truth import problem

    given = problem(name)
    counter = Counter(given)
    row = {"method": method, "problem": name, "seed": seed, "truth": given.truth}
    row |= {
        "version": importlib.metadata.version(PACKAGES[method]),
        "python": platform.python_version(),
    }
    began = time.process_time()

    def stop(*_):
        end = {"status": "time limit", "evaluations": counter.calls, "limit": limit}
        print(json.dumps(row | end | {"seconds": time.process_time() - began}), flush=True)
        os._exit(0)

    signal.signal(signal.SIGXCPU, stop)
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + limit), int(used + 1.5 * limit + 30)))
    try:
        row |= METHODS[method](given, seed, counter)
        row["status"] = "done"
    except Exception as error:
        row |= {"status": "failed", "message": f"{type(error).__name__}: {error}"[:300]}
    for key in ("log_z", "std_err"):
        if row.get(key) is not None:
            row[key] = float(row[key])
    row |= {"evaluations": counter.calls, "seconds": round(time.process_time() - began, 2)}
    return row


def run_apart(method: str, name: str, seed: int, limit: float) -> dict[str, Any]:
    """One run in a process of its own; one that dies is recorded too."""
    command = [sys.executable, __file__, "--one", method, name, str(seed), "--limit", str(limit)]
    done = subprocess.run(
        command, env=os.environ | ONE_THREAD, capture_output=True, text=True, cwd=HERE, check=False
    )
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    if done.returncode < 0:
        status = {"status": "time limit", "limit": limit, "seconds": limit}
    else:
        status = {"status": "failed", "message": done.stderr.strip().splitlines()[-1:]}
    return {"method": method, "problem": name, "seed": seed} | status


def read_rows(file: Path = OUT) -> list[dict[str, Any]]:
    """The runs so far."""
    text = file.read_text("utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line]


def by_run(rows: Iterable[dict[str, Any]]) -> dict[Run, dict[str, Any]]:
    """The best row of every run: a number before none, then the longest limit, then the latest."""

    def rank(row: dict[str, Any]) -> tuple[bool, float]:
        return row["status"] == "done", row.get("limit", 0.0)

    best: dict[Run, dict[str, Any]] = {}
    for row in rows:
        key = (row["method"], row["problem"], row["seed"])
        if key not in best or rank(row) >= rank(best[key]):
            best[key] = row
    return best


def is_final(row: dict[str, Any] | None, limit: float) -> bool:
    """Whether a run would give nothing new within so many seconds."""
    if row is None:
        return False
    return row["status"] != "time limit" or row["limit"] >= 0.9 * limit


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=90.0)
    parser.add_argument("--again", type=float, default=20.0)
    parser.add_argument("--budget", type=float, default=float("inf"), help="CPU seconds in all")
    parser.add_argument("--methods", nargs="+", default=list(PACKAGES))
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", nargs=3, metavar=("METHOD", "PROBLEM", "SEED"))
    a = parser.parse_args()
    if a.one:
        method, name, seed = a.one
        print(json.dumps(run_here(method, name, int(seed), a.limit)), flush=True)
        return
    from problems_with_truth import NAMES, problem

    rows = by_run([*read_rows(), *read_rows(a.out)])
    spent = 0.0
    for seed in range(a.seeds):
        for name in a.problems or NAMES:
            for method in a.methods:
                first = rows.get((method, name, 0))
                if is_final(rows.get((method, name, seed)), a.limit) or spent > a.budget:
                    continue
                if problem(name).dim > MOST_DIM and method != "blackjax-smc":
                    continue
                if seed and (first is None or first["status"] != "done"):
                    continue
                if seed and first is not None and first["seconds"] > a.again:
                    continue
                row = run_apart(method, name, seed, a.limit)
                rows[method, name, seed] = row
                spent += row.get("seconds", 0.0)
                with a.out.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
                shown = {k: row.get(k) for k in ("log_z", "std_err", "evaluations", "seconds")}
                print(method, name, seed, row["status"], shown, f"{spent:.0f} s", flush=True)


if __name__ == "__main__":
    main()
