"""Seconds of a whole run on a GPU, by fused steps and by XLA's.

    python benchmarks/device.py [FILE [PART …]]

    annealing of N chains over K steps, as `anneal` runs it, traces, transfers and all: median of five
    the two bare products of a step in half precision, as often as a step needs them

    whole default estimates of some models, pilots and all: first and later calls (`whole.py`)
    models other than RBMs, beside other programs on the same work and the bare arithmetic (`others.py`)

Parts are estimates, rows (of RBMs) and others, by default all of them; what else FILE holds stays.
The share of the half-precision peak counts four products of 2 N D M operations a step, two half-precision
terms each, whatever the kernel does instead.
"""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from annealz.engine import run_program
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.formats.load import load_binary
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from machine import machine
from others import OTHERS
from problem import Timing
from targets import AT_MOST_OF_BARE
from whole import ON_GPU, estimates

PEAK = 989e12  # operations a second, dense half precision, of an H100 or H200 (SXM)
CASES = [
    ("mnist-cd25-20", 1000, 100_000),
    ("mnist-cd25-500", 1000, 100_000),
    ("mnist-cd25-20", 16384, 10_000),
    ("mnist-cd25-500", 16384, 20_000),
]


def seconds(path, num_chains: int, num_steps: int, repeats: int) -> tuple[float, float]:
    """Of the first run, which compiles, and the median of the others."""
    taken = []
    for seed in range(repeats + 1):
        began = time.perf_counter()
        anneal(path, BlockGibbs(), linear(num_steps), num_chains=num_chains, seed=seed)
        taken.append(time.perf_counter() - began)
    return taken[0], float(np.median(taken[1:]))


def product_seconds(num_chains: int, units: int, latent: int) -> float:
    """Of the four half-precision products of a step, a loop of 1,000 of them."""

    def make(*shape: int):
        return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float16)

    up, down = make(units, 2 * latent), make(2 * latent, units)

    @jax.jit
    def many(v):
        def one(_, v):
            h = jnp.matmul(v, up, preferred_element_type=jnp.float32).astype(jnp.float16)
            return (
                jnp.matmul(h, down, preferred_element_type=jnp.float32).astype(jnp.float16) * 1e-3
            )

        return jax.lax.fori_loop(0, 1000, one, v)

    v = make(num_chains, units)
    taken = []
    for _ in range(4):
        began = time.perf_counter()
        jax.block_until_ready(many(v))
        taken.append(time.perf_counter() - began)
    return float(np.median(taken[1:])) / 1000


def others(num_chains: int = 1000) -> list[dict]:
    """Seconds of every contestant, the same chains and steps, median of three that take turns."""
    rows = []
    for other in OTHERS:
        lane, num_steps = other.contestants(num_chains), other.steps_on_gpu
        taken: dict[str, list[Timing]] = {contestant.name: [] for contestant in lane}
        for seed in range(4):  # the first compiles
            for contestant in lane:
                taken[contestant.name].append(contestant(num_steps, seed))
        seconds = {
            name: float(np.median([one.seconds for one in found[1:]]))
            for name, found in taken.items()
        }
        own = seconds["annealz"]
        row = {
            "name": other.name,
            "chains": num_chains,
            "steps": num_steps,
            "seconds": seconds,
            "first_seconds": {name: found[0].seconds for name, found in taken.items()},
            "of_annealz": {name: one / own for name, one in seconds.items()},
            "exact_log_z": other.exact,
            "log_z": {name: found[1].log_z for name, found in taken.items()},
            "std_err": {name: found[1].std_err for name, found in taken.items()},
            "is_within_target": own <= AT_MOST_OF_BARE * seconds["bare arithmetic"],
        }
        print(row, flush=True)
        rows.append(row)
    return rows


def rows_of_rbms() -> list[dict]:
    """Seconds by fused steps, by XLA's, and of the bare products."""
    rows = []
    choose = run_program.choose_fused
    for name, num_chains, num_steps in CASES:
        model, _ = load_binary(name)
        path = GeometricPath(model.choose_base(), model)
        latent, units = model.num_hidden, model.num_visible
        row = {"model": name, "chains": num_chains, "steps": num_steps}
        steps = {"fused": choose, "xla": lambda *_: None}
        for kind, chooser in steps.items():
            run_program.choose_fused = chooser
            few = num_steps if kind == "fused" else num_steps // 5
            first, median = seconds(path, num_chains, few, 5 if kind == "fused" else 2)
            row[f"{kind} first"], row[kind] = first, median * num_steps / few
        row["products"] = num_steps * product_seconds(num_chains, units, latent)
        row["share of peak"] = 4 * 2 * num_chains * units * latent * num_steps / row["fused"] / PEAK
        rows.append(row)
        print(
            {k: v if isinstance(v, str | int) else round(v, 4) for k, v in row.items()}, flush=True
        )
    run_program.choose_fused = choose
    return rows


def whole_estimates() -> list[dict]:
    """Of processes of their own: to be called before this one takes the device's memory."""
    rows = estimates(ON_GPU)
    for row in rows:
        print({key: row[key] for key in ("model", "first_seconds", "later_seconds", "pilot_share")})
    return rows


PARTS = {"estimates": whole_estimates, "rows": rows_of_rbms, "others": others}


def main(out: Path | None, *parts: str) -> None:
    found = {name: PARTS[name]() for name in PARTS if not parts or name in parts}
    if out is not None:
        about = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
        about |= {"machine": machine()}
        before = json.loads(out.read_text()) if out.exists() else {}
        out.write_text(json.dumps(before | about | found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, *sys.argv[2:])
