"""What a cluster adds to a run, and how many tasks its scheduler sustains: docs/scale.md.

    python benchmarks/scale.py [--steps 100000] [--chains 10000] [--blocks 10000] [--json results.json]

Three measurements on this machine, contestants in turn:

    overhead    seconds of one run by one local worker (with as many threads as there are cores) over those
                of the engine in this process
    processes   seconds of the same run by two local workers of one thread
    tasks       a span of blocks that do nothing but travel: a task a block

The model is an RBM of 20 x 30 units: its steps are short, so that a cluster adds more to them than to
those of most models.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import numpy as np

import annealz
from annealz.engine import cluster as tasks
from annealz.engine.cluster import Cluster
from annealz.engine.connect import connected
from annealz.testing import random_rbm
from machine import machine


def seconds_of(num_steps: int, num_chains: int, client=None) -> tuple[float, float]:
    """Of one run, programs compiled before; and its log Z."""
    model = random_rbm(20, 30)
    path, kernel = model.path(annealz.BernoulliBase.uniform(30)), annealz.BlockGibbs()
    options = {"num_chains": num_chains, "client": client}
    annealz.anneal(path, kernel, annealz.linear(300), **options, chunk_steps=20)
    began = time.perf_counter()
    run = annealz.anneal(path, kernel, annealz.linear(num_steps), **options)
    return time.perf_counter() - began, float(run.log_weights.sum())


def tasks_a_second(client, num_blocks: int, num_spans: int = 3) -> dict[str, float]:
    """Spans of a task a block, whose states come and go."""
    cluster, blocks = Cluster(client), [np.zeros(256, np.uint8)] * num_blocks
    cluster.gather(cluster.map(tasks.keep, blocks[:1]))
    spans = []
    for _ in range(num_spans):
        began = time.perf_counter()
        blocks = cluster.gather(cluster.map(tasks.keep, blocks))
        spans.append(time.perf_counter() - began)
    return {
        "blocks": num_blocks,
        "seconds_a_span": statistics.median(spans),
        "tasks_a_second": num_blocks / statistics.median(spans),
    }


@contextlib.contextmanager
def own_scheduler() -> Iterator[distributed.Client]:
    """A scheduler and one worker, each a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
        command = [sys.executable, "-m"]
        processes = [
            subprocess.Popen(
                [*command, f"distributed.cli.dask_{name}", *common, *more],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for name, more in (("scheduler", ["--port", "0"]), ("worker", ["--no-nanny"]))
        ]
        try:
            while not file.exists():
                time.sleep(0.1)
            with connected(str(file)) as client:
                yield client
        finally:
            for process in processes:
                process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--chains", type=int, default=10_000)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only-tasks", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.only_tasks:
        with own_scheduler() as client:
            print(json.dumps(tasks_a_second(client, options.blocks), indent=1))
        return
    given = options.steps, options.chains
    found: dict[str, list[float]] = {"here": [], "1 worker": [], "2 workers": []}
    sums = set()
    for _ in range(options.repeats):
        for name, count in (("here", 0), ("1 worker", 1), ("2 workers", 2)):
            if count == 0:
                seconds, total = seconds_of(*given)
            else:
                with connected(str(count)) as client:
                    seconds, total = seconds_of(*given, client)
            found[name].append(seconds)
            sums.add(total)
            print(f"{name:10} {seconds:8.2f} s", flush=True)
    middle = {name: statistics.median(values) for name, values in found.items()}
    with own_scheduler() as client:
        rate = tasks_a_second(client, options.blocks)
    result = {
        "machine": machine(),
        "num_steps": options.steps,
        "num_chains": options.chains,
        "seconds": found,
        "overhead": middle["1 worker"] / middle["here"],
        "two_over_one": middle["2 workers"] / middle["here"],
        "same_bits": len(sums) == 1,
        "tasks": rate,
    }
    print(json.dumps(result, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
