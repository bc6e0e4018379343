"""Eight schedules at equal total cost on the six packaged RBMs.

    python studies/schedules/race.py [--out FOLDER] [--models NAME …] [--steps K …] [--replicates R]

A cell is (model, base, schedule, K). Each of its replicates has K x 1000 sweeps: its own pilot is charged,
and what is left goes into the steps of its 1000 chains. The pilot of mixing is charged a twentieth, all it
may take; that of gms13 is shrunk to a tenth; the four varopts of a replicate read one pilot, and each is
charged for it. Pilots of mixing run beside the rest in processes of their own, on CPU cores.

Cells that the folder already holds are not run again, so that an interrupted race goes on where it stopped.
`standings.py` makes the tables and the verdicts.
"""

import argparse
import concurrent.futures
import functools
import itertools
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from annealz.core.random import derive_seed
from annealz.core.weights import effective_sample_size, log_mean
from annealz.io.archive import load_archive, save_archive
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.formats.load import load_binary
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import pilot_sweeps, plan_schedule, survey
from annealz.pilots.survey_mixing import survey_mixing
from annealz.schedules.rules import linear, mixing, sm08, varopt
from annealz.schedules.terrain import Terrain
from batch import anneal_batch

MODELS = (
    "mnist-pcd-20",
    "mnist-cd1-20",
    "mnist-cd25-20",
    "mnist-pcd-500",
    "mnist-cd1-500",
    "mnist-cd25-500",
)
SCHEDULES = (
    "linear",
    "sm08",
    "gms13",
    "varopt",
    "varopt-0.009",
    "varopt-0.006",
    "varopt-0.003",
    "mixing",
)
NUM_STEPS = (1000, 10_000, 100_000)
NUM_CHAINS = 1000
NUM_REPLICATES = 20
GMS13_SHARE = 0.1
SEED = 2026
COLUMNS = ("log_z", "ess", "mean", "variance")
"""Of a replicate: log Z-hat, ESS, log Z_A + mean of log w, Var[log w]."""
CURVE_POINTS = 101


class Key(NamedTuple):
    """Which cell."""

    model: str
    base: str
    schedule: str
    num_steps: int

    def __str__(self) -> str:
        return "|".join(map(str, self))


def wanted(models, steps) -> list[Key]:
    """All schedules from the base rate; and from the uniform base, where varopt fails, some at 20 units."""
    main = [
        Key(m, "base-rate", s, k) for m, k in itertools.product(models, steps) for s in SCHEDULES
    ]
    uniform = [
        Key(m, "uniform", s, k)
        for m, k in itertools.product(models, steps)
        if m.endswith("-20") and k > 1000
        for s in ("linear", "sm08", "varopt", "mixing")
    ]
    return main + uniform


def make_path(model: str, base: str) -> GeometricPath:
    rbm, _ = load_binary(model)
    return GeometricPath(rbm.choose_base(base), rbm)


def pilot_of(key: Key) -> tuple[int, float]:
    """Sweeps of the pilot, and the scale of that of gms13."""
    budget, scale = key.num_steps * NUM_CHAINS, 1.0
    if key.schedule == "gms13":
        scale = min(1.0, GMS13_SHARE * budget / pilot_sweeps("gms13", budget))
    return pilot_sweeps(key.schedule, budget, scale), scale


def survey_cell(key: Key, replicate: int, file: Path) -> Path:
    """The pilot of one replicate of mixing, in a file."""
    if not file.exists():
        budget, _ = pilot_of(key)
        path, seed = make_path(key.model, key.base), derive_seed(SEED, *key, replicate)
        survey_mixing(path, BlockGibbs(), budget=budget, seed=seed).save(file)
    return file


def schedules_of(key: Key, path: GeometricPath, num_replicates: int, terrains) -> np.ndarray:
    """(replicates, steps + 1)."""
    pilot, scale = pilot_of(key)
    steps = key.num_steps - -(-pilot // NUM_CHAINS)
    if key.schedule in ("linear", "sm08"):
        rule = {"linear": linear, "sm08": sm08}[key.schedule]
        return np.tile(rule(steps).betas, (num_replicates, 1))
    if key.schedule == "mixing":
        return np.stack([mixing(Terrain.load(t.result()), steps).betas for t in terrains])
    if key.schedule == "gms13":
        return np.stack(
            [
                plan_schedule(
                    "gms13",
                    path,
                    BlockGibbs(),
                    num_steps=steps,
                    num_chains=NUM_CHAINS,
                    seed=derive_seed(SEED, *key, replicate),
                    pilot_scale=scale,
                ).betas
                for replicate in range(num_replicates)
            ]
        )
    _, _, limit = key.schedule.partition("-")
    max_step = float(limit) if limit else None
    pilots = [survey_once(key.model, key.base, r) for r in range(num_replicates)]
    return np.stack([varopt(terrain, steps, max_step=max_step).betas for terrain in pilots])


@functools.cache
def survey_once(model: str, base: str, replicate: int) -> Terrain:
    """The pilot of varopt."""
    seed = derive_seed(SEED, model, base, "varopt", replicate)
    return survey(make_path(model, base), BlockGibbs(), num_steps=1000, num_chains=100, seed=seed)


def run_cell(key: Key, path: GeometricPath, betas: np.ndarray) -> np.ndarray:
    """(replicates, COLUMNS)."""
    seed = derive_seed(SEED, *key)
    log_weights = anneal_batch(
        path, BlockGibbs(), betas, num_chains=NUM_CHAINS, seed=seed, purpose="race"
    )
    rows = [
        [path.log_z0 + log_mean(w), effective_sample_size(w), path.log_z0 + w.mean(), w.var()]
        for w in log_weights
    ]
    return np.array(rows)


def race(folder: Path, models, steps, num_replicates: int, seconds: float) -> bool:
    """Run the cells that are missing, for about so long; whether all are there."""
    file, began = folder / "results.npz", time.monotonic()
    (folder / "terrains").mkdir(parents=True, exist_ok=True)
    arrays, record = load_archive(file) if file.exists() else ({}, {})
    missing = [key for key in wanted(models, steps) if str(key) not in arrays]
    # the base rate first, and mixing last: its pilots take time
    missing.sort(key=lambda key: (key.base == "uniform", key.schedule == "mixing"))
    record |= _record(num_replicates)
    workers = max(1, (os.cpu_count() or 2) - 1)
    cores = multiprocessing.get_context("spawn").Queue()
    for core in range(workers):
        cores.put(core)
    with concurrent.futures.ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), _start_worker, (cores,)
    ) as pool:
        terrains = {
            key: [
                pool.submit(survey_cell, key, r, _terrain_file(folder, key, r))
                for r in range(num_replicates)
            ]
            for key in missing
            if key.schedule == "mixing"
        }
        for key in missing:
            if time.monotonic() - began > seconds:
                break
            start = time.monotonic()
            path = make_path(key.model, key.base)
            betas = schedules_of(key, path, num_replicates, terrains.get(key, ()))
            planned = time.monotonic()
            arrays[str(key)] = run_cell(key, path, betas)
            if key.num_steps == max(steps):
                at = np.linspace(0, betas.shape[1] - 1, CURVE_POINTS).round().astype(int)
                arrays[f"curve|{key}"] = betas[:, at].astype(np.float32)
            took = time.monotonic() - planned
            print(f"{key}: {planned - start:.1f} s, {took:.1f} s", file=sys.stderr, flush=True)
            save_archive(file, arrays, record)
        pool.shutdown(cancel_futures=True)
    return all(str(key) in arrays for key in wanted(models, steps))


def _terrain_file(folder: Path, key: Key, replicate: int) -> Path:
    return folder / "terrains" / f"{key.model}-{key.base}-{key.num_steps}-{replicate}.npz"


def _start_worker(cores) -> None:
    """One core to itself, and no GPU."""
    jax.config.update("jax_platforms", "cpu")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})


def _record(num_replicates: int) -> dict:
    device = jax.devices()[0]
    exact = {name: load_binary(name)[1].get("exact_log_z") for name in MODELS}
    return {
        "kind": "race",
        "num_chains": NUM_CHAINS,
        "num_replicates": num_replicates,
        "seed": SEED,
        "exact_log_z": exact,
        "device": f"{device.platform} {device.device_kind}",
        "jax": jax.__version__,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--steps", nargs="+", type=int, default=NUM_STEPS)
    parser.add_argument("--replicates", type=int, default=NUM_REPLICATES)
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after about so long")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    return 0 if race(a.out, a.models, a.steps, a.replicates, a.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
