"""Seconds of a whole run on a GPU, by fused steps and by XLA's: `python benchmarks/device.py`.

    annealing of N chains over K steps, as `anneal` runs it, traces, transfers and all: median of five
    the two bare products of a step in half precision, as often as a step needs them

    whole default estimates of some models, pilots and all: first and later calls (`whole.py`)
    a density and a lattice, beside plain JAX programs on the same work (`density.py`, `lattice.py`)

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

from annealz.engine import work
from annealz.engine.anneal import anneal
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.formats.load import load_binary
from annealz.paths.bases.choose import choose_base
from annealz.paths.geometric import GeometricPath
from annealz.schedules.linear import linear
from density import DensityEngine, PlainDensity
from lattice import LatticeEngine, PlainLattice
from machine import machine
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


def beside_plain_jax(num_chains: int = 1000, num_steps: int = 10_000) -> list[dict]:
    """Seconds of the engine and of a plain program, the same chains and steps, median of three."""
    rows = []
    for name, contestants in (
        ("density, 50 dimensions, HAIS", (DensityEngine, PlainDensity)),
        ("Ising, 32 x 32 spins", (LatticeEngine, PlainLattice)),
    ):
        row = {"name": name, "chains": num_chains, "steps": num_steps}
        for make in contestants:
            contestant = make(num_chains)
            taken = [contestant(num_steps, seed).seconds for seed in range(4)]
            row[contestant.name] = float(np.median(taken[1:]))
        print(row, flush=True)
        rows.append(row)
    return rows


def main(out: Path | None) -> None:
    whole = estimates(ON_GPU)  # before this process takes the device's memory
    for row in whole:
        print({key: row[key] for key in ("model", "first_seconds", "later_seconds", "pilot_share")})
    rows = []
    choose = work.choose_fused
    for name, num_chains, num_steps in CASES:
        model, _ = load_binary(name)
        path = GeometricPath(choose_base(model), model)
        latent, units = model.num_hidden, model.num_visible
        row = {"model": name, "chains": num_chains, "steps": num_steps}
        steps = {"fused": choose, "xla": lambda *_: None}
        for kind, chooser in steps.items():
            work.choose_fused = chooser
            few = num_steps if kind == "fused" else num_steps // 5
            first, median = seconds(path, num_chains, few, 5 if kind == "fused" else 2)
            row[f"{kind} first"], row[kind] = first, median * num_steps / few
        row["products"] = num_steps * product_seconds(num_chains, units, latent)
        row["share of peak"] = 4 * 2 * num_chains * units * latent * num_steps / row["fused"] / PEAK
        rows.append(row)
        print(
            {k: v if isinstance(v, str | int) else round(v, 4) for k, v in row.items()}, flush=True
        )
    work.choose_fused = choose
    others = beside_plain_jax()
    if out is not None:
        about = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
        about |= {"machine": machine()}
        results = about | {"rows": rows, "others": others, "estimates": whole}
        out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
