"""Evaluations charged are those that are made: the sum over pilots and runs, for every kernel and pilot.

Whole searches are counted where they are made anyway: `test_density_search.py`, `test_necks.py`, and of
discrete states `test_discrete_density.py`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import annealz
from annealz.diagnostics.findings import Kind
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.plan import Plan
from annealz.methods.problem import choose_problem
from support.counted import Counted
from support.discrete import Network
from support.path_examples import Plain

SHORT = {"schedule": "linear", "num_steps": 20, "num_chains": 50}
WALK = {"base": "standard", "kernel": annealz.RandomWalk(step_size=0.5)}
PLAIN = {"base": "uniform", "schedule": "linear", "second_opinion": False}
PRIOR = annealz.GaussianBase.from_moments(np.zeros(2), 4 * np.eye(2))


def shifted(x):
    return -0.5 * jnp.sum((x - 1) ** 2)


def density(**options: Any) -> tuple[Counted, annealz.LogDensity]:
    fn = Counted(shifted)
    return fn, annealz.LogDensity(fn, 2, **options)


def network(num_units: int = 5) -> tuple[Counted, annealz.DiscreteDensity]:
    kept: list[Counted] = []
    model = Network(num_units, 2).model(lambda fn: kept.append(Counted(fn)) or kept[0])
    return kept[0], model


def assert_charged(fn: Counted, estimate: Any) -> None:
    """As many as were made since this was asked last."""
    assert sum(estimate.evaluations.values()) == fn.since()


def test_chains_that_fill_a_block(tmp_path):
    """Of the run, of its approximate draws and of the way back: 1,025 chains are computed as 1,026."""
    fn, model = density()
    options: dict[str, Any] = {**WALK, "schedule": "linear", "num_steps": 5, "num_chains": 1025}
    one = annealz.estimate_log_z(model, **options, two_sided=True, out=tmp_path / "run")
    assert one.evaluations == {"pilot": 8, "main": 1026 * (6 + 100 + 6)}
    assert_charged(fn, one)
    assert one.run.num_filling == one.reverse.num_filling == 1
    assert annealz.resume(tmp_path / "run").evaluations == one.evaluations


def test_replicas(tmp_path):
    """Where they start, and those that fill a block."""
    fn, model = density()
    options: dict[str, Any] = {"num_rungs": 2, "num_ensembles": 513, "num_steps": 16}
    one = annealz.estimate_log_z(model, method="exchange", **WALK, **options, out=tmp_path / "run")
    assert one.evaluations == {"pilot": 8, "main": 1028 * 17}
    assert_charged(fn, one)
    assert one.exchange.num_filling == 2
    assert annealz.resume(tmp_path / "run").evaluations == one.evaluations


def test_enumeration_once_for_log_z_and_once_for_draws():
    fn, model = network()
    one = annealz.estimate_log_z(model, **PLAIN, num_steps=5, num_chains=50, two_sided=True)
    assert one.evaluations == {"pilot": 64 + 32, "main": 50 * (1 + 5 * 5) + 32 + 50 * (1 + 5 * 6)}
    assert_charged(fn, one)
    assert one.plan.draws == "exact"


def test_an_exact_value_that_is_given_is_not_enumerated():
    fn, model = network()
    problem = choose_problem(model, base="uniform")
    assert problem.cost.evaluations == fn.since() == 64
    assert problem.with_exact(3.0).cost.evaluations == 64
    assert fn.since() == 0
    found = problem.with_exact()
    assert found.with_exact() == found  # known
    assert found.cost.evaluations - 64 == fn.since() == 32
    simple = choose_problem(model).enumerated()
    assert simple.with_exact().cost.evaluations == fn.since() == 64 + 32


def test_a_path_that_carries_no_value_is_not_counted():
    """Weights and records evaluate as well: no number is better than a wrong one."""
    model = density()[1]
    path = Plain(model.path(annealz.GaussianBase.standard(2)))
    kernel = annealz.RandomWalk(step_size=0.5)
    request = AnnealingRequest(model=model)
    given = Plan.of(request, choose_problem(model, path=path, kernel=kernel))
    assert (given.evaluations_a_sweep, given.is_density) == (None, True)
    own = Plan.of(request, choose_problem(model, base="standard", kernel=kernel))
    assert (own.evaluations_a_sweep, own.is_density) == (1, True)


def test_runs_along_it(monkeypatch):
    model = density()[1]
    path = Plain(model.path(annealz.GaussianBase.standard(2)))
    kernel = annealz.RandomWalk(step_size=0.5)
    monkeypatch.setattr("annealz.methods.annealing.diagnose._EXCHANGE_FROM", 1e-6)
    one = annealz.estimate_log_z(model, path=path, kernel=kernel, num_steps=20, num_chains=50)
    assert one.evaluations is None
    assert "evaluations" not in one.to_dict()
    assert Kind.SLOW_CHAINS in one.findings
    options: dict[str, Any] = {"num_rungs": 2, "num_ensembles": 16, "num_steps": 16}
    assert (
        annealz.estimate_log_z(
            model, method="exchange", path=path, kernel=kernel, **options
        ).evaluations
        is None
    )


class Trajectories(annealz.AbstractKernel):
    """A kernel of one's own, which says what it takes."""

    @property
    def inner(self) -> annealz.HMC:
        return annealz.HMC(3, step_size=0.5)

    def step(self, bits, x, path, beta):
        return self.inner.step(bits, x, path, beta)

    def extend(self, path):
        return self.inner.extend(path)

    def reversed(self):
        return self

    @property
    def evaluations(self) -> int:
        return 3


def test_a_kernel_of_ones_own_and_a_second_one():
    fn, model = density()
    one = annealz.estimate_log_z(model, kernel=Trajectories(), **SHORT)
    second, probe = one.runs.second, one.runs.probe
    assert one.evaluations["main"] == 50 * (1 + 20 * 3)
    assert one.evaluations["second"] == second.sweeps + 50 + 3 * probe.sweeps + probe.num_chains
    assert_charged(fn, one)


@pytest.mark.parametrize(
    ("of_model", "options"),
    [
        ({}, SHORT),
        ({"dtype": "float64"}, SHORT),
        ({"is_differentiable": False}, SHORT),
        ({"prior": PRIOR}, SHORT),
        ({"starts": np.zeros((3, 2))}, {**SHORT, "base": "laplace"}),
        ({}, {**SHORT, "base": "wide"}),
        ({}, {**SHORT, "base": "standard", "kernel": annealz.HMC(3)}),
        ({}, {**SHORT, "base": "standard", "kernel": annealz.MALA(step_size=0.5)}),
        ({}, {**WALK, **SHORT, "two_sided": True, "draws": "exchange"}),
        ({}, {**WALK, **SHORT, "two_sided": True, "draws": np.ones((50, 2))}),
        ({}, {**WALK, **SHORT, "resample": 0.5, "num_chains": 1100}),
        ({}, {**WALK, "schedule": "mixing", "num_steps": 20, "num_chains": 50}),
        ({}, {**WALK, "schedule": "varopt", "num_steps": 20, "num_chains": 50}),
        ({}, {**WALK, "target_std_err": 0.01, "schedule": "linear", "num_steps": 20}),
        ({}, {"max_seconds": 60}),
    ],
    ids=[
        "search", "float64", "walk", "prior", "starts", "wide", "hmc", "mala", "exchange", "given",
        "resampled", "mixing", "varopt", "target", "limit",
    ],
)  # fmt: skip
def test_densities(of_model: dict[str, Any], options: dict[str, Any]):
    fn, model = density(**of_model)
    assert_charged(fn, annealz.estimate_log_z(model, **options))


def test_a_likelihood_with_a_prior():
    fn = Counted(shifted)
    model = annealz.from_prior(
        lambda p: fn(jnp.stack([p["a"], p["b"]])),
        prior={"a": stats.norm(0, 2), "b": stats.norm(0, 2)},
    )
    assert_charged(fn, annealz.estimate_log_z(model, **SHORT))


def test_a_trace():
    fn, model = density()
    rows = np.random.default_rng(0).normal(1, 1, (4, 200, 2))
    options: dict[str, Any] = {"two_sided": True, "draws": {"x": rows}}
    assert_charged(fn, annealz.estimate_log_z(model, **SHORT, **options))


def test_nested_sampling():
    fn, model = density()
    assert_charged(fn, annealz.estimate_log_z(model, method="nested", base=PRIOR, num_live=200))


def test_replicas_of_a_searched_density():
    fn, model = density()
    options: dict[str, Any] = {"num_rungs": 6, "num_ensembles": 16, "num_steps": 100}
    assert_charged(fn, annealz.estimate_log_z(model, method="exchange", **options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "gradient", "num_steps": 50, "num_chains": 100},
        {"base": "fitted", "num_steps": 200, "num_chains": 1000},
        {"num_steps": 50, "num_chains": 100, "two_sided": True},
    ],
    ids=["simple", "gradient", "fitted", "exact"],
)
def test_discrete_states(options: dict[str, Any]):
    fn, model = network()
    assert_charged(fn, annealz.estimate_log_z(model, **options))
