"""Small runs of every kind whose bits are pinned; they use public names only."""

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import annealz
from annealz.testing import random_rbm
from support.bumps import BUMP
from support.programs import Programs, lowered_programs

SMALL = {"num_steps": 200, "num_chains": 200}
QUICK = SMALL | {"schedule": "linear", "second_opinion": False}
Observed = dict[
    str, Any
]  # log_z, std_err, status, schedule, sweeps, and digests of arrays as `bits`


def symmetric(size: int, scale: float) -> np.ndarray:
    upper = np.triu(np.random.default_rng(size).normal(0, scale, (size, size)), 1)
    return upper + upper.T


def normal(*shape: int, scale: float = 0.4) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0.1, scale, shape)


def density() -> annealz.LogDensity:
    def log_p(x):
        return -jnp.sum((x - 0.5) ** 2 / 2) + 0.1 * jnp.sum(jnp.cos(x))

    return annealz.LogDensity(log_p, 4)


def discrete(**options: Any) -> annealz.DiscreteDensity:
    weights = jnp.asarray(normal(8, 6))
    return annealz.DiscreteDensity(lambda x: jnp.sum(jnp.tanh(weights @ x)), 6, **options)


def factors() -> annealz.FactorGraph:
    tables = [((i, i + 1), np.exp(normal(2 + i % 2, 2 + (i + 1) % 2))) for i in range(5)]
    return annealz.FactorGraph([2, 3, 2, 3, 2, 3], tables)


def observed(result: Any, *arrays: Any, **more: Any) -> Observed:
    bits = hashlib.sha256()
    for array in (*arrays, result.std_err):
        bits.update(np.ascontiguousarray(array).tobytes())
    numbers = {"log_z": float(result.log_z), "std_err": float(result.std_err)}
    return numbers | {"status": result.status.value, "bits": bits.hexdigest()[:16]} | more


def estimated(model: Any, **options: Any) -> Observed:
    result = annealz.estimate_log_z(model, seed=3, **options)
    arrays = [run.log_weights for run in result.runs if run is not None]
    arrays += [result.schedule.betas, result.interval()]
    return observed(result, *arrays, schedule=result.schedule.name, sweeps=result.sweeps)


def exchanged(model: Any, **options: Any) -> Observed:
    result = annealz.estimate_log_z(model, method="exchange", seed=3, **options)
    return observed(result, result.interval(), sweeps=result.sweeps)


def nested(**options: Any) -> Observed:
    result = annealz.estimate_log_z(
        BUMP, method="nested", num_live=120, num_runs=3, num_inner_steps=10, seed=3
    )
    return observed(result, result.draws, result.log_weights)


def compared() -> Observed:
    result = annealz.compare_schedules(
        random_rbm(6, 10), schedules=["linear", "mixing", "varopt"], num_steps=100, num_chains=50,
        num_replicates=3,
    )  # fmt: skip
    first, *others = result.contenders
    names = ", ".join(one.name for one in result.contenders)
    bits = hashlib.sha256(np.array([one.log_z for one in others]).tobytes()).hexdigest()[:16]
    return {"log_z": float(first.log_z), "std_err": 0.2, "schedule": names, "bits": bits}


def likely() -> Observed:
    data = np.random.default_rng(0).integers(0, 2, (50, 12)).astype(float)
    result = annealz.log_likelihood(random_rbm(5, 12), data, **QUICK)
    return observed(result.estimate, result.log_likelihood, result.std_err)


def conserved() -> Observed:
    data = np.random.default_rng(0).integers(0, 2, (20, 12)).astype(float)
    result = annealz.conservative_log_z(random_rbm(5, 12), data, annealz.linear(50), num_chains=10)
    return {"log_z": float(result.log_z), "std_err": 0.2, "bits": float(result.log_z).hex()}


def disordered() -> Observed:
    entropy = annealz.estimate_log_z(random_rbm(5, 12), seed=3, **QUICK).entropy()
    return observed(entropy.estimate, entropy.value, entropy.std_err)


RUNS: dict[str, Callable[[], Observed]] = {
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
    "rbm, exchange": lambda: exchanged(random_rbm(12, 30), num_steps=400),
    "rbm, wanted error": lambda: estimated(random_rbm(6, 10), target_std_err=0.02),
    "rbm, varopt": lambda: estimated(random_rbm(12, 30), schedule="varopt", **SMALL),
    "rbm, gms13": lambda: estimated(random_rbm(12, 30), schedule="gms13", **SMALL),
    "rbm, sm08, 1000 chains": lambda: estimated(
        random_rbm(12, 30), schedule="sm08", num_steps=300, num_chains=1000
    ),
    "ising, full graph": lambda: estimated(annealz.Ising(symmetric(7, 0.5), normal(7)), **SMALL),
    "ising, lattice": lambda: estimated(annealz.Ising.square((8, 8), 0.3), **SMALL),
    "ising, exchange": lambda: exchanged(annealz.Ising.square((6, 6), 0.4), num_steps=400),
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
    "discrete density": lambda: estimated(discrete(), **QUICK),
    "factor graph": lambda: estimated(factors(), **QUICK),
    "nested": nested,
    "compare": compared,
    "likelihood": likely,
    "conservative": conserved,
    "entropy": disordered,
}
ADAPTIVE = {  # shapes of their programs follow from what their pilots see
    "rbm, no data: base search",
    "rbm, exchange",
    "rbm, wanted error",
    "rbm, sm08, 1000 chains",
    "ising, exchange",
}


@functools.cache
def result_of(name: str) -> tuple[Observed, Programs]:
    """What a run gives, and the programs that it lowers."""
    with lowered_programs() as programs:
        return RUNS[name](), programs
