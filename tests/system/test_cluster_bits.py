"""1, 2 and 4 workers, each a process, give the bits of this process: every kind of run."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import distributed
import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.testing import random_rbm
from support.clusters import WAIT, processes

MODEL = random_rbm(6, 9, 1.0, seed=3)
# 2,500 chains are 3 blocks.
QUICK = {"num_steps": 100, "num_chains": 2500, "schedule": "linear", "second_opinion": False}


DENSITY = annealz.LogDensity(lambda x: -jnp.sum((x - 0.5) ** 2 / 2) + 0.1 * jnp.sum(jnp.cos(x)), 4)
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no worker can import it


def _estimate(model: Any, **given: Any) -> Callable:
    def make(**options: Any) -> list[np.ndarray]:
        result = annealz.estimate_log_z(model, seed=3, **given, **options)
        runs = [run for run in result.runs if run is not None]
        arrays = [
            array
            for run in runs
            for array in (run.log_weights, run.states, *run.trace.means.values())
        ]
        return [np.array([result.log_z, result.std_err]), result.schedule.betas, *arrays]

    return make


def _exchange(**options: Any) -> list[np.ndarray]:
    result = annealz.estimate_log_z(
        MODEL, method="exchange", num_rungs=8, num_steps=400, num_ensembles=600, seed=3, **options
    )
    rounds = result.exchange.rounds
    arrays = [array for one in rounds for array in (one.betas, one.values, one.log_ratios)]
    return [np.array([result.log_z, result.std_err]), *arrays]


RUNS: dict[str, Callable] = {
    "RBM, visible marginal": _estimate(MODEL, marginal="visible", **QUICK),
    "RBM, hidden marginal": _estimate(MODEL, marginal="hidden", **QUICK),
    "RBM, defaults": _estimate(MODEL, num_steps=100, num_chains=2500),
    "RBM, two sides": _estimate(MODEL, two_sided=True, **QUICK),
    "RBM, resampling": _estimate(MODEL, resample=0.9, **QUICK),
    "Ising": _estimate(annealz.Ising.square((6, 6), 0.3), **QUICK),
    "density, HMC": _estimate(DENSITY, kernel=annealz.HMC(), two_sided=True, **QUICK),
    "RBM, exchange": _exchange,
}


@pytest.fixture(scope="module")
def here() -> dict[str, list[np.ndarray]]:
    return {name: make() for name, make in RUNS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4])
def test_workers_change_no_bit(count: int, here: dict[str, list[np.ndarray]], tmp_path: Path):
    with (
        processes(tmp_path, count) as cluster,
        distributed.Client(cluster.address, timeout=20, set_as_default=False) as client,
    ):
        client.wait_for_workers(count, timeout=WAIT)
        for name, make in RUNS.items():
            there = make(client=client)
            assert len(there) == len(here[name]) > 3
            for one, other in zip(there, here[name], strict=True):
                np.testing.assert_array_equal(one, other, err_msg=name)
