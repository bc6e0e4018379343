"""A scheduler and workers of Dask, each a process."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import annealz

WAIT = 120  # seconds, on a busy machine
SOURCE = str(Path(annealz.__file__).parents[1])


class Processes:
    """A scheduler and its workers, each a process, all on this machine."""

    def __init__(self, folder: Path):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.file.unlink(missing_ok=True)
        self.workers: list[subprocess.Popen] = []
        self.scheduler = self._start(
            "scheduler", "--no-dashboard", "--port", "0", "--scheduler-file", str(self.file)
        )
        deadline = time.monotonic() + WAIT
        while not self.file.exists() or not self.file.read_text().endswith("}"):
            assert self.scheduler.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, what: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1"]
        return subprocess.Popen(
            [*command, *options],
            env=os.environ | {"PYTHONPATH": f"{SOURCE}:{self.folder}", "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def add(self, count: int) -> None:
        for _ in range(count):
            options = "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "20"
            self.workers.append(self._start("worker", "--scheduler-file", str(self.file), *options))

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextlib.contextmanager
def processes(folder: Path, count: int) -> Iterator[Processes]:
    with contextlib.closing(Processes(folder)) as cluster:
        cluster.add(count)
        yield cluster
