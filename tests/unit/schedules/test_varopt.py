"""VAROPT: the optimal curve in closed form, Theorem 1, and the two methods side by side."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from annealz.engine.anneal import anneal
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.abstract import AbstractPath
from annealz.pilots.plan import survey
from annealz.schedules.rules import linear, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.testing import (
    GaussianPath,
    PerfectKernel,
    assert_within_mc_error,
    spins_moments,
    spins_path,
)

BETAS = np.linspace(0, 1, 1001)
GAUSSIAN = GaussianPath(1.0, 0.5)
MILD = GaussianPath(0.4, 0.8)
SPINS = spins_path([0.0, -0.5, 0.25], [5.0, -6.0, 4.0], [1.5])


def spins_g(beta):
    return spins_moments(SPINS, beta)[1]


def terrain_of(g: Callable) -> Terrain:
    return Terrain(BETAS, 0 * BETAS, g(BETAS), np.full(BETAS.shape, 1e9))


def six_decades(sign: float) -> Terrain:
    return terrain_of(lambda beta: 10.0 ** (sign * 6 * beta))


# --- the curve -------------------------------------------------------------------------------


def root(g: Callable) -> Callable:
    return lambda beta: np.sqrt(g(beta))


def optimal_curve(g: Callable, times: np.ndarray) -> np.ndarray:
    """beta(t) by solving ∫_0^beta √g = t ∫_0^1 √g with scipy."""
    whole = quad(root(g), 0, 1)[0]
    return np.array(
        [brentq(lambda b, t=t: quad(root(g), 0, b)[0] - t * whole, 0, 1) for t in times]
    )


@pytest.mark.parametrize(
    "g",
    [GAUSSIAN.g, GaussianPath(-0.75, 4.0).g, spins_g],
    ids=["narrower", "wider", "spins"],
)
def test_the_curve_is_the_closed_form(g: Callable):
    times = np.linspace(0, 1, 21)
    schedule = varopt(terrain_of(g), 20)
    np.testing.assert_allclose(schedule.betas, optimal_curve(g, times), atol=1e-3)
    np.testing.assert_allclose(schedule.betas, optimal_curve(g, times), atol=1e-5)


@pytest.mark.parametrize("scale", [0.2, 0.7, 3.0])
def test_a_width_alone_is_annealed_geometrically(scale: float):
    """√g ∝ d log lambda / dbeta, so lambda = scale^(-2 t)."""
    times = np.linspace(0, 1, 51)
    exact = (scale ** (-2 * times) - 1) / (scale**-2.0 - 1)
    schedule = varopt(terrain_of(GaussianPath(0.0, scale).g), 50)
    np.testing.assert_allclose(schedule.betas, exact, atol=1e-4)


def test_a_shift_is_annealed_linearly():
    schedule = varopt(terrain_of(GaussianPath(1.7, 1.0).g), 30)
    np.testing.assert_allclose(schedule.betas, linear(30).betas, atol=1e-9)


@pytest.mark.parametrize("g", [GAUSSIAN.g, spins_g], ids=["gaussian", "spins"])
def test_costs_are_reported(g: Callable):
    report = varopt(terrain_of(g), 2000).provenance
    least, straight = quad(root(g), 0, 1)[0] ** 2, quad(g, 0, 1)[0]
    assert report["linear_cost"] == pytest.approx(straight, rel=1e-4)
    assert report["least_cost"] == pytest.approx(least, rel=1e-4)
    assert report["cost"] == pytest.approx(least, rel=1e-3)
    assert report["predicted_gain"] == pytest.approx(straight / least, rel=2e-3)


def test_provenance_tells_the_pilot():
    pilot = survey(GAUSSIAN, PerfectKernel(), num_steps=10, num_chains=100)
    schedule = varopt(pilot, 60)
    assert schedule.name == "varopt"
    assert schedule.num_steps == 60
    assert schedule.provenance["pilot_sweeps"] == 1000
    assert schedule.provenance["smoothing_width"] > 0
    assert varopt(pilot, 60, max_step=0.05).name == "varopt-0.05"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "newton"}, "method must be"),
        ({"deceleration": "none"}, "deceleration must be"),
        ({"num_steps": 0}, "num_steps must be at least 1"),
        ({"max_step": 0.01}, "smallest feasible one is 0.05"),
        ({"max_step": 0.0}, "infeasible"),
        ({"max_step": np.nan}, "infeasible"),
        ({"width": -1.0}, "width must lie"),
        ({"method": "fixed_point", "max_step": 0.1, "deceleration": "exact"}, "quadrature"),
    ],
)
def test_varopt_refuses(options: dict, words: str):
    with pytest.raises(ValueError, match=words):
        varopt(terrain_of(GAUSSIAN.g), **{"num_steps": 20, **options})


MUTANTS: dict[str, Callable] = {
    "g for √g": lambda g: g**2,
    "inverse": lambda g: 1 / g,
    "fourth root": lambda g: g**0.5,
    "reversed": lambda g: g[::-1],
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
@pytest.mark.parametrize("g", [GAUSSIAN.g, spins_g], ids=["gaussian", "spins"])
def test_mutants_cost_more(g: Callable, mutant: Callable):
    terrain = terrain_of(g)
    wrong = varopt(terrain_of(lambda beta: mutant(g(beta))), 500)
    best = terrain.cost(varopt(terrain, 500).betas)
    assert terrain.cost(wrong.betas) > 1.05 * best
    assert best < terrain.linear_cost


def test_a_pilot_of_the_default_size_is_enough(seed: int):
    """The schedule of a noisy pilot costs a few per cent more than the best, and less than linear."""
    terrain = terrain_of(GAUSSIAN.g)
    for replicate in range(5):
        pilot = survey(GAUSSIAN, PerfectKernel(), seed=seed + replicate)
        cost = terrain.cost(varopt(pilot, 1000).betas)
        assert cost < 1.03 * terrain.least_cost
        assert terrain.linear_cost > 1.2 * cost


# --- Theorem 1: K Var[log w] -> J under perfect transitions -----------------------------------

KS = np.array([8, 16, 32, 64, 128])
NUM_REPLICATES = 16
NUM_CHAINS = 2000

Rule = Callable[[int], Schedule]
SYSTEMS = {
    "gaussian": (GAUSSIAN, PerfectKernel(), GAUSSIAN.g),
    "spins": (SPINS, BlockGibbs(), spins_g),
}
systems = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())


def rules(g: Callable) -> dict[str, tuple[Rule, float]]:
    """Each schedule with its J, by quadrature of the closed form."""
    terrain = terrain_of(g)
    return {
        "linear": (linear, quad(g, 0, 1)[0]),
        "varopt": (lambda k: varopt(terrain, k), quad(root(g), 0, 1)[0] ** 2),
    }


def intercept(scaled_variances: np.ndarray) -> np.ndarray:
    """The limit 1 / K -> 0 of K Var[log w] (…, Ks), by a quadratic in 1 / K."""
    return np.polynomial.polynomial.polyfit(1 / KS, np.atleast_2d(scaled_variances).T, 2)[0]


def exact_scaled_variance(schedule: Schedule, g: Callable) -> float:
    """K Var[log w] = K sum_k (beta_k - beta_{k-1})^2 g(beta_{k-1}): the states are independent."""
    steps = np.diff(schedule.betas)
    return float(steps.size * (steps**2 * g(schedule.betas[:-1])).sum())


@systems
@pytest.mark.parametrize("name", ["linear", "varopt"])
def test_exact_variance_tends_to_j(system, name: str):
    """Without noise: the gap falls as 1 / K, and the regression finds its limit."""
    g = system[2]
    rule, cost = rules(g)[name]
    gaps = [abs(exact_scaled_variance(rule(k), g) - cost) for k in (500, 1000, 2000)]
    assert gaps[-1] < 0.01 * cost
    assert gaps[1] / gaps[2] == pytest.approx(2, abs=0.3) or gaps[-1] < 1e-3 * cost
    found = intercept(np.array([exact_scaled_variance(rule(int(k)), g) for k in KS]))
    np.testing.assert_allclose(found, cost, rtol=0.01)


def limits(path: AbstractPath, kernel: AbstractKernel, rule: Rule, seed: int) -> np.ndarray:
    """The intercept of every replicate."""
    scaled = np.zeros((NUM_REPLICATES, KS.size))
    for j, k in enumerate(KS):
        schedule = rule(int(k))
        for i in range(NUM_REPLICATES):
            run = anneal(
                path, kernel, schedule, num_chains=NUM_CHAINS, seed=seed + i, purpose=f"theorem {k}",
                observers={}, chunk_steps=128,
            )  # fmt: skip
            scaled[i, j] = k * run.log_weights.var(ddof=1)
    return intercept(scaled)


def z_test(values: np.ndarray, truth: float) -> None:
    std_err = values.std(ddof=1) / np.sqrt(values.size)
    assert_within_mc_error(values.mean(), truth, std_err, num_replicates=values.size)


@pytest.mark.usefixtures("optimised")
@systems
def test_theorem_1(system, seed: int):
    """Each schedule has its own J for a limit, and not the other's; VAROPT's is the smaller."""
    path, kernel, g = system
    found = {name: limits(path, kernel, rule, seed) for name, (rule, _) in rules(g).items()}
    costs = {name: cost for name, (_, cost) in rules(g).items()}
    for name, other in (("linear", "varopt"), ("varopt", "linear")):
        z_test(found[name], costs[name])
        with pytest.raises(AssertionError, match="z = "):
            z_test(found[name], costs[other])
    gain = found["linear"] - found["varopt"]
    with pytest.raises(AssertionError, match="z = "):
        z_test(gain, 0.0)
    assert gain.mean() > 0


class FrozenKernel(AbstractKernel):
    """Mutant: invariant, but never moves."""

    def step(self, bits, x, path, beta):
        return x


@pytest.mark.usefixtures("optimised")
def test_theorem_1_needs_perfect_transitions(seed: int):
    with pytest.raises(AssertionError, match="z = "):
        z_test(limits(GAUSSIAN, FrozenKernel(), linear, seed), quad(GAUSSIAN.g, 0, 1)[0])


# --- the paper's iteration -------------------------------------------------------------------


@pytest.mark.parametrize(
    "g",
    [
        MILD.g,
        GaussianPath(0.5, 1.2).g,
        lambda beta: np.exp(np.sin(5 * beta)),
        lambda beta: np.exp(1.5 * beta),
    ],
    ids=["narrower", "wider", "waves", "exponential"],
)
def test_the_methods_agree(g: Callable):
    terrain = terrain_of(g)
    quadrature = varopt(terrain, 200)
    iterated = varopt(terrain, 200, method="fixed_point")
    np.testing.assert_allclose(iterated.betas, quadrature.betas, atol=1e-3)
    assert np.abs(quadrature.betas - linear(200).betas).max() > 5e-3  # what it is tested against
    assert iterated.name == "varopt-fixed-point"
    assert iterated.provenance["residual"] < 1e-8
    assert 1 < iterated.provenance["iterations"] < 500


def test_the_iteration_solves_the_differential_equation():
    terrain = terrain_of(lambda beta: np.exp(1.5 * beta))
    betas, h = varopt(terrain, 1000, method="fixed_point").betas, 1e-3
    speed, bend = np.gradient(betas, h), np.diff(betas, 2) / h**2
    np.testing.assert_allclose(bend + 0.75 * speed[1:-1] ** 2, 0, atol=0.01)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_six_decades(sign: float):
    """The iteration is refused with the way out; the quadrature knows the answer."""
    terrain = six_decades(sign)
    with pytest.raises(ValueError, match=r"does not converge .*6\.0 decades.*method='quadrature'"):
        varopt(terrain, 300, method="fixed_point")
    schedule = varopt(terrain, 300)
    assert (np.diff(schedule.betas) > 0).all()
    rate = sign * 3 * np.log(10)
    exact = np.log1p(np.linspace(0, 1, 301) * np.expm1(rate)) / rate
    np.testing.assert_allclose(schedule.betas, exact, atol=1e-3)
