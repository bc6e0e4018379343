"""Results of every class, small and made once."""

from typing import Any

import numpy as np
import pytest

import annealz
from annealz.methods.annealing.method import METHOD
from annealz.models.formats.npz import save_rbm
from annealz.testing import random_rbm
from support.bumps import BUMP, SMALL
from support.views import HOSTILE, MODEL, PLAIN


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A finished run of a model with a hostile name."""
    home = tmp_path_factory.mktemp("run")
    save_rbm(home / "model.npz", MODEL, {"name": HOSTILE})
    annealz.estimate_log_z(
        home / "model.npz", num_steps=40, num_chains=100, out=home / "run", **PLAIN
    )
    return home / "run"


@pytest.fixture(scope="session")
def results(folder) -> dict[str, Any]:
    """By names that tests know."""
    observe = {"share": lambda x: x.mean(-1), "units": lambda x: x}
    brief = {"schedule": "linear", "num_chains": 100, **PLAIN}
    estimate = annealz.resume(folder)
    both = annealz.estimate_log_z(MODEL, num_steps=40, two_sided=True, observe=observe, **brief)
    poor = annealz.estimate_log_z(random_rbm(27, 28, 2.0, 3), num_steps=3, **brief)
    density = annealz.LogDensity(lambda x: -0.5 * (x**2).sum(), 2, name="normal")
    base, kernel = annealz.GaussianBase.standard(2), annealz.RandomWalk(0.5)
    normal = annealz.estimate_log_z(
        density, schedule="linear", num_steps=20, num_chains=100, base=base, kernel=kernel
    )
    exchange = annealz.estimate_log_z(
        MODEL, method="exchange", num_rungs=5, num_ensembles=8, num_steps=64, base="visible-bias"
    )
    comparison = annealz.compare_schedules(
        MODEL,
        schedules=["linear", "sm08"],
        num_steps=40,
        num_chains=100,
        num_replicates=2,
        base="visible-bias",
    )
    rows = np.random.default_rng(0).integers(0, 2, (20, 6))
    return {
        "estimate": estimate,
        "both": both,
        "poor": poor,
        "normal": normal,
        "exchange": exchange,
        "nested": annealz.estimate_log_z(BUMP, method="nested", **SMALL, exact_log_z=0.0),
        "comparison": comparison,
        "likelihood": annealz.log_likelihood(MODEL, rows, estimate=both),
        "entropy": both.entropy(),
        "posterior": normal.posterior,
        "models": annealz.compare_models({"<a>": both, "b": (8.0, 0.1)}),
        "factor": annealz.log_bayes_factor(both, (8.0, 0.1)),
        "run": both.run,
        "reverse": both.reverse,
        "two sides": both.two_sided,
        "rounds": exchange.exchange,
        "schedule": estimate.schedule,
        "terrain": estimate.terrain,
    }


@pytest.fixture
def rediagnosed():
    """A function that diagnoses an estimate's plan with other runs."""
    return METHOD.diagnose
