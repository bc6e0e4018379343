"""The bits of a run, for a table of before and after: `python .ci/bits.py before.json`, then
`python .ci/bits.py after.json before.json`, which compares the two and ends with 1 where one differs.

Every run uses public names only, so that the script serves any version. Bits depend on the processor and
on JAX: compare runs of one machine.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import annealz
from annealz.testing import random_rbm

SMALL = {"num_steps": 200, "num_chains": 200}
QUICK = SMALL | {"schedule": "linear", "second_opinion": False}


def symmetric(size: int, scale: float) -> np.ndarray:
    upper = np.triu(np.random.default_rng(size).normal(0, scale, (size, size)), 1)
    return upper + upper.T


def normal(*shape: int, scale: float = 0.4) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0.1, scale, shape)


def density(num_dims: int = 4) -> annealz.LogDensity:
    def log_p(x):
        return -jnp.sum((x - 0.5) ** 2 / 2) + 0.1 * jnp.sum(jnp.cos(x))

    return annealz.LogDensity(log_p, num_dims)


def digest(*arrays) -> str:
    one = hashlib.sha256()
    for array in arrays:
        one.update(np.ascontiguousarray(array).tobytes())
    return one.hexdigest()[:16]


def estimated(model, **options) -> dict:
    result = annealz.estimate_log_z(model, seed=3, **options)
    runs = [run.log_weights for run in result.runs if run is not None]
    return {
        "log_z": float(result.log_z).hex(),
        "std_err": float(result.std_err).hex(),
        "weights": digest(*runs),
        "schedule": digest(result.schedule.betas),
        "sweeps": result.sweeps,
        "status": result.status.value,
    }


def exchanged(model, **options) -> dict:
    result = annealz.exchange_log_z(model, seed=3, **options)
    return {
        "log_z": float(result.log_z).hex(),
        "std_err": float(result.std_err).hex(),
        "status": result.status.value,
        "sweeps": result.sweeps,
    }


def compared() -> dict:
    result = annealz.compare_schedules(
        random_rbm(6, 10), schedules=["linear", "mixing", "varopt"], num_steps=100, num_chains=50,
        num_replicates=3,
    )  # fmt: skip
    return {one.name: float(one.log_z).hex() for one in result.contenders}


def likely() -> dict:
    data = np.random.default_rng(0).integers(0, 2, (50, 12)).astype(float)
    result = annealz.log_likelihood(random_rbm(5, 12), data, **QUICK)
    return {"log_likelihood": float(result.log_likelihood).hex()}


def conserved() -> dict:
    data = np.random.default_rng(0).integers(0, 2, (20, 12)).astype(float)
    result = annealz.conservative_log_z(random_rbm(5, 12), data, annealz.linear(50), num_chains=10)
    return {"log_z": float(result.log_z).hex()}


RUNS: dict[str, Callable[[], dict]] = {
    "rbm, packaged, defaults": lambda: estimated("mnist-pcd-20", **SMALL),
    "rbm, no data: base search": lambda: estimated(random_rbm(12, 30, 0.5), **SMALL),
    "rbm, hidden marginal": lambda: estimated(random_rbm(12, 30), marginal="hidden", **QUICK),
    "rbm, two sides, exact draws": lambda: estimated(random_rbm(8, 30), two_sided=True, **QUICK),
    "rbm, two sides, approximate draws": lambda: estimated(
        random_rbm(40, 50, 0.3), two_sided=True, **QUICK
    ),
    "rbm, two sides, exchange draws": lambda: estimated(
        random_rbm(40, 50, 0.3), two_sided=True, draws="exchange", **QUICK
    ),
    "rbm, resampling": lambda: estimated(random_rbm(12, 30), resample=0.5, **QUICK),
    "rbm, exchange": lambda: exchanged(random_rbm(12, 30), num_sweeps=400),
    "rbm, wanted error": lambda: estimated(random_rbm(6, 10), target_std_err=0.02),
    "rbm, metropolised Gibbs": lambda: estimated(
        random_rbm(12, 30),
        path=annealz.QPath(random_rbm(12, 30).path(annealz.BernoulliBase.uniform(30)), q=0.9),
        kernel=annealz.Metropolised(annealz.BlockGibbs()),
        **QUICK,
    ),
    "rbm, varopt": lambda: estimated(random_rbm(12, 30), schedule="varopt", **SMALL),
    "rbm, gms13": lambda: estimated(random_rbm(12, 30), schedule="gms13", **SMALL),
    "rbm, sm08, 1000 chains": lambda: estimated(
        random_rbm(12, 30), schedule="sm08", num_steps=300, num_chains=1000
    ),
    "ising, full graph": lambda: estimated(annealz.Ising(symmetric(7, 0.5), normal(7)), **SMALL),
    "ising, lattice": lambda: estimated(annealz.Ising.square((8, 8), 0.3), **SMALL),
    "ising, exchange": lambda: exchanged(annealz.Ising.square((6, 6), 0.4), num_sweeps=400),
    "potts": lambda: estimated(annealz.Potts.square((3, 4), 3, 0.7), **QUICK),
    "dbm, two sides": lambda: estimated(
        annealz.DBM([normal(6, 8), normal(4, 6)], [normal(8), normal(6), normal(4)]),
        two_sided=True,
        **QUICK,
    ),
    "gaussian rbm": lambda: estimated(
        annealz.GaussianRBM(normal(6, 8), normal(6), normal(8), 0.7), **SMALL
    ),
    "softmax rbm, resampling": lambda: estimated(
        annealz.SoftmaxRBM(normal(4, 5, 3), normal(4), normal(5, 3)), resample=0.5, **QUICK
    ),
    "density, HAIS": lambda: estimated(density(), num_steps=100, num_chains=100),
    "density, HMC, two sides": lambda: estimated(
        density(), kernel=annealz.HMC(), two_sided=True, **QUICK
    ),
    "density, MALA": lambda: estimated(density(), kernel=annealz.MALA(), **QUICK),
    "density, random walk": lambda: estimated(density(), kernel=annealz.RandomWalk(), **QUICK),
    "compare": compared,
    "likelihood": likely,
    "conservative": conserved,
}


def main(out: str, before: str | None = None) -> int:
    known = {} if before is None else json.loads(Path(before).read_text())
    bits, differ = {}, []
    for name, run in RUNS.items():
        bits[name] = run()
        is_same = "" if before is None else ("same" if bits[name] == known[name] else "DIFFERS")
        differ += [name] if is_same == "DIFFERS" else []
        number = float.fromhex(next(iter(bits[name].values())))
        Path(out).write_text(json.dumps(bits, indent=1))
        print(f"{name:36} {number:12.6f} {bits[name].get('weights', ''):18} {is_same}", flush=True)
    print(f"{len(bits)} runs, {len(differ)} differ" if before else f"{len(bits)} runs")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
