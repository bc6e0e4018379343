"""What a command imports, seen from a process of its own."""

import os
import subprocess
import sys

HEAVY = {"blackjax", "equinox", "jax", "jaxlib", "matplotlib", "numpy", "optax", "scipy"}


def annealz_in_a_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """The command, which says on stderr what it imports."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_COLOR")}
    command = [sys.executable, "-X", "importtime", "-m", "annealz", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=kept | environment
    )


def imported(stderr: str) -> set[str]:
    lines = stderr.splitlines()
    assert all(line.startswith("import time:") for line in lines), stderr
    return {line.rsplit("|", 1)[1].strip() for line in lines}
