"""How the engine's cost grows: time per step with N and M, total time and peak memory with K and N.

Time per step comes from this process, warmed up, a few repeats; total time and memory from one
fresh process a case (`case.py`).
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import engine_on
from problem import NUM_CHAINS, NUM_HIDDEN, random_rbm
from race import summary, time_step, warm_up

__all__ = ["cases", "step_times"]

_CHAINS = (250, 1000, 4000)
_HIDDEN = (20, 100, 500)


def step_times(
    num_repeats: int, seconds: float, say: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """ms per step on the grid of N and M."""
    rows = []
    for num_hidden in _HIDDEN:
        model = random_rbm(num_hidden)
        for num_chains in _CHAINS:
            say(f"time per step, M = {num_hidden}, N = {num_chains}")
            engine = engine_on(model, num_chains)
            steps = warm_up(engine, seconds)
            raw = [time_step(engine, steps, seed) for seed in range(num_repeats)]
            row = {"num_hidden": num_hidden, "num_chains": num_chains, "num_steps": steps}
            rows.append(row | summary(raw))
    return rows


def cases(
    few_steps: int, many_steps: int, say: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Total time and peak memory: every N at the shorter K, then the longer K."""
    settings = [(num_chains, few_steps) for num_chains in _CHAINS] + [(NUM_CHAINS, many_steps)]
    rows = []
    for num_chains, num_steps in settings:
        say(f"fresh process, N = {num_chains}, K = {num_steps}")
        words = [str(n) for n in (NUM_HIDDEN[0], num_chains, num_steps)]
        script = str(Path(__file__).with_name("case.py"))
        done = subprocess.run(
            [sys.executable, script, *words], stdout=subprocess.PIPE, text=True, check=True
        )
        rows.append(json.loads(done.stdout))
    return rows
