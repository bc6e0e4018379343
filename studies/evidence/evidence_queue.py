"""Many runs of the study on a machine with many cores, within a time limit, the most important first.

    python studies/evidence/evidence_queue.py --out DIR [--workers 16] [--seconds 520] [--limit 240]
        [--seeds 20] [--only PART …] [--problems NAME …] [--methods NAME …]

    DIR/hard.jsonl       hard densities, sets testing and testing-2 (`hard.py`)
    DIR/peers.jsonl      runs of peers that results/peers.jsonl lacks, or has a shorter limit of
    DIR/annealz.jsonl    annealz on the problems of the peers: defaults, and at the evaluations of the best
    DIR/entries.jsonl    every way in, against closed forms (`evidence_entries.py`)
    DIR/queue.log        what ran when, and what failed

Every run is a process of one thread on a core of its own. Half of the cores begin with annealz, the others
with the peers that are installed (`peer_plan.py`); whoever is done with his part takes of the other. Rows
are written as they come, and what DIR holds is not run again. Near the end what still runs is stopped, and
peers are recorded with the evaluations they had made. With --merge FILE-OR-DIR the rows go into results/,
where the pages read them: those of annealz are replaced for the problems that were run, peers.jsonl gets
what is new; a FILE holds rows of peers.
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
from evidence_peers import ONE_THREAD, PACKAGES, Run, by_run, read_rows
from peer_plan import Plan, is_installed
from problems_with_truth import NAMES

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SETS = ("testing", "testing-2")
_PARTS = ["hard", "peers", "annealz", "equal", "entries"]
LAST_SECONDS = 8.0
"""Before the end, when what still runs is stopped."""
_ALONE = {**ONE_THREAD, "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}


class Job(NamedTuple):
    """One process."""

    name: str
    command: list[str]
    file: str
    """Where its rows go; empty if it writes them itself."""
    more: dict[str, Any]
    """What is added to every row."""
    peer: Run | None = None
    """Which run of a peer it is."""


class Queue:
    """Jobs of annealz, runs of peers, and the workers that take them."""

    def __init__(self, out: Path, seconds: float, jobs: list[Job], plan: Plan):
        self.out, self.end, self.plan = out, time.time() + seconds - LAST_SECONDS, plan
        self.jobs, self.lock = collections.deque(jobs), threading.Lock()
        self.last: Callable[[], list[Job]] | None = None

    @property
    def left(self) -> float:
        """Seconds until what runs is stopped."""
        return self.end - time.time()

    def take(self, worker: int) -> Job | None:
        """The next job of a worker's part, of the other one, or of what comes last."""
        with self.lock:
            run = None
            if worker % 2 or not self.jobs:
                run = self.plan.take(self.left)
            if run is not None:
                return peer_job(run, self.plan.limit)
            if not self.jobs and self.last is not None and not self.plan.running:
                last, self.last = self.last, None
                self.jobs.extend(last())
            return self.jobs.popleft() if self.jobs else None

    def waits(self) -> bool:
        """Whether there may be a job later."""
        with self.lock:
            return self.last is not None or self.plan.waits

    def work(self, worker: int) -> None:
        """Run jobs until there are none, or no time."""
        cores = sorted(os.sched_getaffinity(0))
        core = {cores[worker % len(cores)]}
        while self.left > LAST_SECONDS:
            job = self.take(worker)
            if job is not None:
                self._run(job, core)
            elif self.waits():
                time.sleep(0.5)
            else:
                return

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
        stopper = threading.Timer(max(self.left, 1.0), _stop, (process, job.peer is not None))
        stopper.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()))
        reader.start()
        count, row = 0, None
        for line in process.stdout or ():
            if line.startswith("{"):
                row = self._write(job, json.loads(line), time.time() - began)
                count += 1
        process.wait()
        if job.peer is not None:
            with self.lock:
                self.plan.end(job.peer, row)
        stopper.cancel()
        reader.join(5)
        failure = "" if process.returncode == 0 else " | ".join(e.strip() for e in errors[-3:])
        words = f"{job.name}: {count} rows, {time.time() - began:.0f} s, rc {process.returncode}"
        self._append("queue.log", f"{words} {failure}".strip())

    def _write(self, job: Job, row: dict[str, Any], seconds: float) -> dict[str, Any]:
        if row.get("status") == "time limit":
            row["limit"] = round(min(row.get("limit", seconds), seconds))
        if job.file:
            self._append(f"{job.file}.jsonl", json.dumps(job.more | row))
        return row

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
    from hard_problems import HARD

    first = {"scale": 0, "funnel": 1, "modes": 2, "wells": 3, "cauchy": 4}
    chosen = [h for h in HARD if h.set in SETS and h.name in (a.problems or [h.name])]
    jobs = []
    for one in sorted(chosen, key=lambda h: first.get(h.kind, 5)):
        left = str(max(a.seconds - 30, 1))
        command = ["hard.py", "--set", one.set, "--problems", one.name, "--seeds", str(a.seeds)]
        command += ["--out", str(a.out / "hard.jsonl"), "--seconds", left]
        jobs.append(Job(f"hard {one.set} {one.name}", command, "", {}))
    return jobs


def entry_jobs(a: argparse.Namespace) -> list[Job]:
    """A process per entry point and problem; PyMC's where it is installed."""
    from evidence_entries import ENTRIES, PROBLEMS

    jobs = []
    for entry, name in itertools.product(ENTRIES, PROBLEMS):
        if entry == "pymc" and not is_installed("pymc"):
            continue
        command = ["evidence_entries.py", "--entries", entry, "--problems", name]
        command += ["--out", str(a.out / "entries.jsonl")]
        jobs.append(Job(f"entry {entry} {name}", command, "", {}))
    return jobs


def annealz_job(name: str, method: str, options: dict[str, Any], more: dict[str, Any]) -> Job:
    """Three seeds of one problem."""
    given = ["evidence_annealz.py", "--one", method, name, "0,1,2", json.dumps(options)]
    return Job(f"{method} {name}", given, "annealz", {"method": method} | more)


def peer_job(run: Run, limit: float) -> Job:
    """One run of a peer."""
    method, name, seed = run
    given = ["evidence_peers.py", "--one", method, name, str(seed), "--limit", str(limit)]
    return Job(f"{method} {name} {seed}", given, "peers", {}, run)


def equal_jobs(a: argparse.Namespace) -> list[Job]:
    """At the evaluations of the best peer, where default runs and peers are there."""
    rows = [*read_rows(RESULTS / "annealz.jsonl"), *read_rows(a.out / "annealz.jsonl")]
    ours = {r["problem"]: r for r in rows if r["method"] == OURS and "log_z" in r}
    jobs, peers = [], [*_peers(), *read_rows(a.out / "peers.jsonl")]
    for name, first in ours.items():
        if name not in (a.problems or NAMES):
            continue
        best = best_peer(peers, name)
        if best is not None:
            options = equal_options(first, best[2])
            jobs.append(annealz_job(name, EQUAL, options, {"peer": best[0]}))
    return jobs


def merge(out: Path) -> None:
    """Rows into results/: what was run again replaces what was there, of peers the better row stays."""
    for name, keys in (
        ("hard", ("set", "problem")),
        ("annealz", ("method", "problem")),
        ("entries", ("entry", "problem")),
    ):
        new = read_rows(out / f"{name}.jsonl") if out.is_dir() else []
        again = {tuple(row[key] for key in keys) for row in new}
        old = read_rows(RESULTS / f"{name}.jsonl")
        kept = [row for row in old if tuple(row[key] for key in keys) not in again]
        _save(name, [*kept, *new], len(new))
    new = read_rows(out / "peers.jsonl" if out.is_dir() else out)
    _save("peers", list(by_run([*_peers(), *new]).values()), len(new))


def _save(name: str, rows: list[dict[str, Any]], new: int) -> None:
    if new:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (RESULTS / f"{name}.jsonl").write_text(text, encoding="utf-8")
    print(f"{name}: {new} rows read, {len(rows)} in all")


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
    parser.add_argument("--only", nargs="+", choices=_PARTS)
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--methods", nargs="+", default=list(PACKAGES), help="of the peers")
    parser.add_argument("--merge", type=Path, metavar="FILE-OR-DIR")
    a = parser.parse_args()
    if a.merge:
        merge(a.merge)
        return
    if a.out is None:
        parser.error("--out is needed")
    a.out = a.out.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    parts = a.only or _PARTS
    names = [name for name in a.problems or NAMES if name in NAMES]
    own = (
        [annealz_job(name, OURS, {}, {}) for name in reversed(names)] if "annealz" in parts else []
    )
    jobs = [*own, *(hard_jobs(a) if "hard" in parts else [])]
    jobs += entry_jobs(a) if "entries" in parts else []
    methods = [m for m in a.methods if is_installed(m)] if "peers" in parts else []
    rows = [*_peers(), *read_rows(a.out / "peers.jsonl")]
    queue = Queue(a.out, a.seconds, jobs, Plan(rows, names, methods, a.limit, a.workers))
    if "equal" in parts:
        queue.last = lambda: equal_jobs(a)
    threads = [threading.Thread(target=queue.work, args=(i,)) for i in range(a.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = a.out / "queue.log"
    print(log.read_text("utf-8") if log.exists() else "nothing to run")


if __name__ == "__main__":
    main()
