"""What each part of a shared run costs, on 1, 2, 4, 8 emulated devices and processes: docs/scale.md.

    python benchmarks/scale.py [--chains 8192] [--steps 20]

Devices are those of --xla_force_host_platform_device_count, processes talk over loopback. All share the
cores of this machine, so that seconds per step do not fall with their number; what is measured is what
sharing adds: joining, compiling, the exchange at the end of a chunk, gathering the blocks.
"""

import argparse
import hashlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time

_COUNTS = (1, 2, 4, 8)


def measure(num_chains: int, num_steps: int, address: str, size: int, index: int) -> None:
    """One process of a run; the first prints what it took."""
    began = time.perf_counter()
    import annealz
    from annealz import distributed
    from annealz.core.devices import local_devices
    from annealz.engine.observers import Slope
    from annealz.engine.statistics import merge_records, recorded_steps
    from annealz.engine.work import Work
    from annealz.engine.workers.crew import Crew
    from annealz.workflows.problem import choose_problem
    from annealz.workflows.settings import Given, ProblemSettings
    from annealz.workflows.workers.assist import assist, pack_inputs

    imported = time.perf_counter()
    team = distributed.initialize(address, size, index)
    observers = {"slope": Slope()}
    if not team.is_leader:
        assist(team, observers)
        return
    joined = time.perf_counter()
    problem, schedule = choose_problem("mnist-pcd-20"), annealz.linear(10_000)
    settings = ProblemSettings(
        model=problem.name,
        model_digest=problem.model.digest,
        source=None,
        base=problem.base_name,
        marginal=problem.marginal,
        given=Given(path=False, kernel=False, base=False),
    )
    if size > 1:
        team.tell("inputs", pack_inputs(problem, schedule, settings))
    kernel = problem.kernel
    work = Work(problem.path, kernel, observers, schedule, num_chains, 0, "scale", 10)
    crew = Crew(work, team)
    crew.begin(None)
    clock = time.perf_counter()
    crew.advance(0, 1)
    compiled = time.perf_counter() - clock
    step, chunks, exchanges, merges = 1, [], [], []
    for _ in range(3):
        clock = time.perf_counter()
        parts = crew.advance(step, step + num_steps)
        chunks.append(time.perf_counter() - clock)
        clock = time.perf_counter()
        steps = recorded_steps(step, step + num_steps, work.every, work.num_steps)
        merge_records([part.record for part in parts], steps)
        merges.append(time.perf_counter() - clock)
        step += num_steps
    for _ in range(9):  # a chunk of one step is nearly all exchange
        clock = time.perf_counter()
        crew.advance(step, step + 1)
        exchanges.append(time.perf_counter() - clock)
        step += 1
    clock = time.perf_counter()
    blocks = crew.at(step)
    gathered = time.perf_counter() - clock
    bits = hashlib.sha256(b"".join(bytes(memoryview(b.log_weights)) for b in blocks))
    team.tell("done")
    print(json.dumps({
        "processes": size, "devices": len(local_devices()), "import": imported - began,
        "join": joined - imported, "compile": compiled,
        "step_ms": 1e3 * statistics.median(chunks) / num_steps,
        "one_step_ms": 1e3 * statistics.median(exchanges),
        "merge_ms": 1e3 * statistics.median(merges), "gather_ms": 1e3 * gathered,
        "bits": bits.hexdigest()[:12],
    }))  # fmt: skip


def run(options: argparse.Namespace, size: int, devices: int) -> dict:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    flag = f"--xla_force_host_platform_device_count={devices}"
    common = [sys.executable, __file__, "--chains", options.chains, "--steps", options.steps]
    processes = [
        subprocess.Popen(
            [*map(str, common), "--process", address, str(size), str(index)],
            env=os.environ | {"XLA_FLAGS": flag},
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(size)
    ]
    first, *_ = [process.communicate()[0] for process in processes]
    return json.loads(first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        address, size, index = options.process
        measure(options.chains, options.steps, address, int(size), int(index))
        return
    shapes = [(1, count) for count in _COUNTS] + [(count, 1) for count in _COUNTS[1:]]
    for shape in shapes:
        row = run(options, *shape)
        if shape == shapes[0]:
            print("| " + " | ".join(row) + " |\n" + "|---" * len(row) + "|")
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
