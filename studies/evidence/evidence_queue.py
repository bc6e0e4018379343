"""Many runs of the study on a machine with many cores, within a time limit, the most important first.

    python studies/evidence/evidence_queue.py --out DIR [--workers 16] [--seconds 520] [--limit 240]
        [--seeds 20] [--only PART …] [--problems NAME …]

    DIR/hard.jsonl       hard densities, sets testing and testing-2 (`hard.py`)
    DIR/peers.jsonl      runs of peers that results/peers.jsonl lacks, or has a time limit of
    DIR/annealz.jsonl    annealz on the problems of the peers: defaults, and at the evaluations of the best
    DIR/queue.log        what ran when, and what failed

Every run is a process of one thread on a core of its own. Half of the cores begin with hard densities, the
others with peers; whoever is done with his part takes of the other. Rows are written as they come. Near
the end what still runs is stopped, and peers are recorded with the evaluations they had made. With --merge
DIR the rows go into results/, where the pages read them: hard.jsonl and annealz.jsonl are replaced for the
problems that were run, peers.jsonl gets what is new.
"""

import argparse
import collections
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from evidence_annealz import EQUAL, OURS, best_peer, equal_options
from evidence_peers import MOST_DIM, ONE_THREAD, read_rows
from hard_problems import HARD
from problems_with_truth import NAMES, problem

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SETS = ("testing", "testing-2")
SLOW_PEERS = ("nautilus", "pocomc")
OTHERS = ("dynesty", "ultranest", "blackjax-smc", "blackjax-nss")
MOST_DIM_ON_HOST = 12
"""Above it nested samplers without gradients take longer than the limit."""
LAST_SECONDS = 8.0
"""Before the end, when what still runs is stopped."""
_ALONE = {**ONE_THREAD, "PYTHONUNBUFFERED": "1"}


class Job(NamedTuple):
    """One process."""

    name: str
    command: list[str]
    file: str
    """Where its rows go; empty if it writes them itself."""
    more: dict[str, Any]
    """What is added to every row."""


class Queue:
    """Jobs in two lanes, and the workers that take them."""

    def __init__(self, out: Path, seconds: float, workers: int):
        self.out, self.end, self.workers = out, time.time() + seconds, workers
        self.lanes: list[collections.deque[Job]] = [collections.deque(), collections.deque()]
        self.lock, self.last = threading.Lock(), list[Callable[[], list[Job]]]()

    def take(self, worker: int) -> Job | None:
        """The next job of a worker's lane, of the other one, or of what comes last."""
        with self.lock:
            lanes = self.lanes if worker % 2 == 0 else self.lanes[::-1]
            for lane in lanes:
                if lane:
                    return lane.popleft()
            if self.last:
                self.lanes[1].extend(self.last.pop(0)())
                return self.lanes[1].popleft() if self.lanes[1] else None
            return None

    def work(self, worker: int) -> None:
        """Run jobs until there are none, or no time."""
        cores = sorted(os.sched_getaffinity(0))
        core = {cores[worker % len(cores)]}
        while self.end - time.time() > 2 * LAST_SECONDS:
            job = self.take(worker)
            if job is None and not self.last:
                return
            if job is not None:
                self._run(job, core)

    def _run(self, job: Job, core: set[int]) -> None:
        began = time.time()
        process = subprocess.Popen(
            [sys.executable, *job.command],
            env=os.environ | _ALONE,
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, core),
        )
        stopper = threading.Timer(
            max(self.end - LAST_SECONDS - time.time(), 1.0), _stop, (process, job.file == "peers")
        )
        stopper.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()))
        reader.start()
        count = 0
        for line in process.stdout or ():
            if line.startswith("{"):
                self._write(job, json.loads(line), time.time() - began)
                count += 1
        process.wait()
        stopper.cancel()
        reader.join(5)
        failure = "" if process.returncode == 0 else " | ".join(e.strip() for e in errors[-3:])
        words = f"{job.name}: {count} rows, {time.time() - began:.0f} s, rc {process.returncode}"
        self._append("queue.log", f"{words} {failure}".strip())

    def _write(self, job: Job, row: dict[str, Any], seconds: float) -> None:
        if not job.file:
            return
        if row.get("status") == "time limit":
            row["limit"] = round(min(row.get("limit", seconds), seconds))
        self._append(f"{job.file}.jsonl", json.dumps(job.more | row))

    def _append(self, name: str, line: str) -> None:
        with self.lock, (self.out / name).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")


def _stop(process: subprocess.Popen, is_peer: bool) -> None:
    """A peer is asked for what it has; then all of its processes are ended."""
    if is_peer:
        process.send_signal(signal.SIGXCPU)
        time.sleep(3)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def hard_jobs(a: argparse.Namespace) -> list[Job]:
    """A process per problem, whose seeds share compiled programs; hierarchies and funnels first."""
    first = {"scale": 0, "funnel": 1, "modes": 2, "wells": 3, "cauchy": 4}
    chosen = [h for h in HARD if h.set in SETS and h.name in (a.problems or [h.name])]
    jobs = []
    for one in sorted(chosen, key=lambda h: first.get(h.kind, 5)):
        left = str(max(a.seconds - 30, 1))
        command = ["hard.py", "--set", one.set, "--problems", one.name, "--seeds", str(a.seeds)]
        command += ["--out", str(a.out / "hard.jsonl"), "--seconds", left]
        jobs.append(Job(f"hard {one.set} {one.name}", command, "", {}))
    return jobs


def annealz_job(name: str, method: str, options: dict[str, Any], more: dict[str, Any]) -> Job:
    """Three seeds of one problem."""
    given = ["evidence_annealz.py", "--one", method, name, "0,1,2", json.dumps(options)]
    return Job(f"{method} {name}", given, "annealz", {"method": method} | more)


def peer_jobs(a: argparse.Namespace) -> list[Job]:
    """What results/peers.jsonl lacks: slow peers first, then the others, then further seeds."""
    done = {(r["method"], r["problem"], r["seed"]) for r in _peers() if r["status"] == "done"}
    names = [name for name in a.problems or NAMES if name in NAMES]

    def job(method: str, name: str, seed: int) -> Job:
        given = ["evidence_peers.py", "--one", method, name, str(seed), "--limit", str(a.limit)]
        return Job(f"{method} {name} {seed}", given, "peers", {})

    wanted = []
    for seed, methods in ((0, SLOW_PEERS), (0, OTHERS), (1, OTHERS), (2, OTHERS)):
        for name, method in itertools.product(names, methods):
            dim = problem(name).dim
            most = 40 if method.startswith("blackjax") else MOST_DIM_ON_HOST
            if method == "blackjax-smc" or dim <= min(most, MOST_DIM):
                wanted.append((method, name, seed))
    return [job(*one) for one in wanted if one not in done]


def equal_jobs(a: argparse.Namespace) -> list[Job]:
    """At the evaluations of the best peer, where default runs and peers are there."""
    rows = read_rows(a.out / "annealz.jsonl")
    ours = {r["problem"]: r for r in rows if r["method"] == OURS and "log_z" in r}
    jobs, peers = [], [*_peers(), *read_rows(a.out / "peers.jsonl")]
    for name, first in ours.items():
        best = best_peer(peers, name)
        if best is not None:
            options = equal_options(first, best[2])
            jobs.append(annealz_job(name, EQUAL, options, {"peer": best[0]}))
    return jobs


def merge(out: Path) -> None:
    """Rows of a folder into results/; what was run again replaces what was there."""
    for name, keys in (
        ("hard", ("set", "problem")),
        ("annealz", ("method", "problem")),
        ("peers", ("method", "problem", "seed")),
    ):
        new = read_rows(out / f"{name}.jsonl")
        again = {tuple(row[key] for key in keys) for row in new}
        file = RESULTS / f"{name}.jsonl"
        old = [row for row in read_rows(file) if tuple(row[key] for key in keys) not in again]
        text = "".join(json.dumps(row) + "\n" for row in [*old, *new])
        file.write_text(text, encoding="utf-8")
        print(f"{name}: {len(new)} rows new, {len(old)} kept")


def _peers() -> list[dict[str, Any]]:
    return read_rows(RESULTS / "peers.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=520.0, help="in all")
    parser.add_argument("--limit", type=float, default=240.0, help="CPU seconds of a peer's run")
    parser.add_argument("--seeds", type=int, default=20, help="of hard densities")
    parser.add_argument("--only", nargs="+", choices=["hard", "peers", "annealz", "equal"])
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--merge", type=Path, metavar="DIR")
    a = parser.parse_args()
    if a.merge:
        merge(a.merge)
        return
    if a.out is None:
        parser.error("--out is needed")
    a.out = a.out.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    queue, parts = (
        Queue(a.out, a.seconds, a.workers),
        a.only or ["hard", "peers", "annealz", "equal"],
    )
    own = [
        annealz_job(name, OURS, {}, {}) for name in reversed(a.problems or NAMES) if name in NAMES
    ]
    peers = peer_jobs(a) if "peers" in parts else []
    slow = [job for job in peers if job.name.split()[0] in SLOW_PEERS]
    queue.lanes[0].extend(hard_jobs(a) if "hard" in parts else [])
    both = itertools.zip_longest(own if "annealz" in parts else [], slow)
    queue.lanes[1].extend(job for pair in both for job in pair if job is not None)
    queue.lanes[1].extend(job for job in peers if job not in slow)
    if "equal" in parts:
        queue.last.append(lambda: equal_jobs(a))
    threads = [threading.Thread(target=queue.work, args=(i,)) for i in range(a.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print((a.out / "queue.log").read_text("utf-8"))


if __name__ == "__main__":
    main()
