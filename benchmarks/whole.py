"""Whole default estimates, from a model to its log Z, a fresh process a row.

    python benchmarks/whole.py NAME NUM_LATER      one row, as a line of JSON
    python benchmarks/whole.py first NAME ...      first calls, without kept programs and with them

`first_seconds` is the first call, which compiles or reads compiled programs from a cache; `later_seconds`
the median of the others, each with a seed of its own. What is not the runs themselves counts as pilot:
surveys, searches for bases, adaptation, the exact value, the diagnosis.

First calls are those of fresh processes that share a folder, empty for the first of them: its programs are
compiled (cold), those of the others read (warm). `process_seconds` count from the start of the process,
with all imports; `first_seconds` without JAX's own.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["ON_CPU", "ON_GPU", "estimates", "first_calls"]

NUM_WARM = 3
_OF_FIRST = ("import_seconds", "process_seconds", "first_seconds")
ON_CPU: Mapping[str, int] = {"mnist-pcd-20": 2, "gaussian-50": 1}  # later calls
ON_GPU: Mapping[str, int] = {
    "mnist-pcd-20": 5,
    "mnist-pcd-500": 5,
    "gaussian-50": 5,
    "ising-32x32": 5,
}


def estimates(
    cases: Mapping[str, int], platform: str | None = None, say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """A row for every model, of a process without kept programs, and the first call of one that finds them.

    `platform` is where JAX computes, by default where it likes.
    """
    rows, where = [], {} if platform is None else {"JAX_PLATFORMS": platform}
    for name, num_later in cases.items():
        say(f"whole estimates of {name}")
        with tempfile.TemporaryDirectory() as folder:
            cold, warm = (
                _in_a_process(name, count, where | _caches(folder)) for count in (num_later, 1)
            )
        rows.append(cold | {"kept": {word: warm[word] for word in _OF_FIRST}})
    return rows


def first_calls(names: list[str], say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Of every model, seconds of first calls cold and warm, and of a later one."""
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("cold", *NUM_WARM * ("warm",)):
                row = _in_a_process(name, 1, _caches(folder))
                found = {word: row[word] for word in (*_OF_FIRST, "later_seconds", "log_z")}
                rows.append({"model": name, "programs": kind} | found)
                say(json.dumps(rows[-1]))
    return rows


def _caches(folder: str) -> dict[str, str]:
    """Of all programs, the driver's too."""
    return {"XDG_CACHE_HOME": folder, "CUDA_CACHE_PATH": f"{folder}/driver"}


def _in_a_process(name: str, num_later: int, where: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, __file__, name, str(num_later)]
    env = {key: value for key, value in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=env | dict(where)
    )
    return json.loads(done.stdout.splitlines()[-1])


def _model(name: str) -> Any:
    import jax.numpy as jnp

    import annealz

    if name == "gaussian-50":
        return annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=50)
    if name.startswith("ising-"):
        return annealz.SquareIsing(int(name.split("x")[1]), coupling=0.3)
    return name


def _row(name: str, num_later: int) -> dict[str, Any]:
    import annealz

    imported = _seconds_of_process()
    model, calls, given = _model(name), [], []
    for seed in range(num_later + 1):
        began = time.perf_counter()
        estimate = annealz.estimate_log_z(model, seed=seed)
        seconds = time.perf_counter() - began
        runs = sum(run.seconds for run in estimate.runs[:4] if run is not None)
        since = _seconds_of_process()
        calls.append({"seconds": seconds, "pilot": seconds - runs, "since_start": since})
        given.append(estimate)
    first, later = calls[0], calls[1:]
    median = statistics.median(call["seconds"] for call in later)
    return {
        "model": name,
        "import_seconds": imported,
        "process_seconds": first["since_start"],
        "first_seconds": first["seconds"],
        "later_seconds": median,
        "first_pilot_share": first["pilot"] / first["seconds"],
        "pilot_share": statistics.median(call["pilot"] / call["seconds"] for call in later),
        "sweeps": given[0].sweeps,
        "log_z": given[0].log_z,
        "std_err": given[0].std_err,
        "status": given[0].status.value,
        "exact_log_z": given[0].exact_log_z,
        "calls": calls,
    }


def _seconds_of_process() -> float:
    """Since this process was started, where /proc says when; else since Python's own clock began."""
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return time.process_time()
    ticks = float(stat.read_text().rsplit(")", 1)[1].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return up - ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    if sys.argv[1] == "first":
        first_calls(sys.argv[2:])
    else:
        print(json.dumps(_row(sys.argv[1], int(sys.argv[2]))))
