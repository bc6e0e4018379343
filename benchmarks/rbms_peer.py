"""Contestant "rbms": the PyPI package rbms (PyTorch) as a long-lived process of another Python.

A process starts once and waits between requests, so that it can alternate with the others, no
start-up is counted and it takes no time while others are timed. It measures its own seconds.

It races twice, and the faster one counts: "rbms" as installed, and "rbms, passive" with
OMP_WAIT_POLICY=passive. As installed, the threads of PyTorch spin at every barrier, and once another
program takes a core they wait for each other's time slices: 155 against 15 ms per step on 2 cores.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from problem import Timing

__all__ = ["RBMS", "RbmsPeer", "RbmsWorker"]

RBMS: dict[str, dict[str, str]] = {
    "rbms": {},
    "rbms, passive": {"OMP_WAIT_POLICY": "passive"},
}  # contestant: environment
_SCRIPT = Path(__file__).with_name("rbms_worker.py")


class RbmsWorker:
    """The process; a context. `OSError` says that it could not be started or died."""

    def __init__(self, name: str, python: str):
        self.name = name
        self._process = subprocess.Popen(
            [python, str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | RBMS[name],
        )
        self.pid = self._process.pid
        self.versions = self._reply()

    def __enter__(self) -> "RbmsWorker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its stdin, at which it ends

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"the rbms process ended with status {self._process.wait()}")
        return json.loads(line)


class RbmsPeer:
    """rbms on one model file."""

    def __init__(self, worker: RbmsWorker, model_file: Path, num_chains: int):
        self.name, self._worker = worker.name, worker
        self._settings = {"model": str(model_file), "num_chains": num_chains}

    def __call__(self, num_steps: int, seed: int = 0) -> Timing:
        return Timing(**self._worker.ask(**self._settings, num_steps=num_steps, seed=seed))
