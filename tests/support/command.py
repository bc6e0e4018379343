"""The command line called in this process."""

import subprocess
import time
from pathlib import Path

from annealz.cli.main import run as run_command

KEYS = [
    "model",
    "method",
    "log_z",
    "std_err",
    "interval",
    "ess",
    "num_steps",
    "num_chains",
    "schedule",
    "base",
    "seed",
    "exact_log_z",
    "sweeps",
    "seconds",
    "status",
    "messages",
]

PLAIN = ["--base", "visible-bias", "--no-second-opinion"]  # one base, no search


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    status = run_command([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def refused(capsys, *arguments: object) -> str:
    """The one line that a bad input gets."""
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("annealz: ")
    return err


def wait_for(path: Path, process: subprocess.Popen) -> None:
    for _ in range(1200):
        if path.exists() or process.poll() is not None:
            return
        time.sleep(0.05)
