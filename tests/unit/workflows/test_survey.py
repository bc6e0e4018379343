"""The pilot: its mean and variance of the slope against closed forms, its streams, its cost."""

from collections.abc import Callable

import numpy as np
import pytest

from annealz.engine.anneal import anneal
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.abstract import AbstractPath
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import survey, survey_knots
from annealz.schedules.rules import linear
from annealz.schedules.terrain import Terrain
from annealz.testing import (
    GaussianPath,
    PerfectKernel,
    assert_within_mc_error,
    random_rbm,
    spins_moments,
    spins_path,
)

NUM_SEEDS = 20
STEPS, CHAINS = 40, 1000
POINTS = [0, 4, 19, 34, 39]  # of the 40 betas of the pilot
SPINS = spins_path([2.0, -1.0, 0.5], [-1.0, 1.5, 0.25], [1.5])

Closed = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def gaussian(mean: float, scale: float) -> tuple[AbstractPath, AbstractKernel, Closed]:
    path = GaussianPath(mean, scale)
    return path, PerfectKernel(), lambda beta: (path.slope_mean(beta), path.g(beta))


SYSTEMS = {
    "narrower": gaussian(1.0, 0.5),
    "wider": gaussian(-0.75, 1.5),
    "shifted": gaussian(1.25, 1.0),
    "spins": (SPINS, BlockGibbs(), lambda beta: spins_moments(SPINS, beta)),
}
systems = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())


# --- mutants ---------------------------------------------------------------------------------


class WrongSign(GaussianPath):
    """Mutant: the slope is f_B + f_A where f_B - f_A is due; weights and moves are right."""

    def slope(self, x, beta):
        return -(x**2 + ((x - self.mean) / self.scale) ** 2) / 2

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * GaussianPath(self.mean, self.scale).slope(x, beta0)


class StaleKernel(AbstractKernel):
    """Mutant: draws from p of 0.8 beta."""

    def step(self, bits, x, path, beta):
        return path.draw(bits, 0.8 * beta)


# --- the closed forms themselves -------------------------------------------------------------


@systems
def test_closed_forms_are_consistent(system):
    """dE[U]/dbeta = g + E[dU/dbeta], the last term being that of the hidden units alone."""
    path, _, closed = system
    betas, h = np.linspace(0.1, 0.9, 9), 1e-5
    _, g = closed(betas)
    rise = (closed(betas + h)[0] - closed(betas - h)[0]) / (2 * h)
    if isinstance(path, GeometricPath):
        s = 1 / (1 + np.exp(-1.5 * betas))
        g = g + 1.5**2 * s * (1 - s)
    np.testing.assert_allclose(rise, g, rtol=1e-6)


def test_the_mean_slope_integrates_to_log_z():
    path = GaussianPath(1.0, 0.5)
    betas = np.linspace(0, 1, 20_001)
    area = np.trapezoid(path.slope_mean(betas), betas)
    assert path.log_z0 + area == pytest.approx(path.log_z, abs=1e-7)


def test_log_z_of_a_gaussian(seed: int):
    path = GaussianPath(1.0, 0.5)
    log_z = []
    for replicate in range(NUM_SEEDS):
        run = anneal(path, PerfectKernel(), linear(STEPS), num_chains=CHAINS, seed=seed + replicate)
        log_z.append(np.exp(run.log_weights + run.log_z0 - path.log_z).mean())
    std_err = np.std(log_z, ddof=1) / np.sqrt(NUM_SEEDS)
    assert_within_mc_error(np.mean(log_z), 1.0, std_err, num_replicates=NUM_SEEDS)


# --- survey ----------------------------------------------------------------------------------


def check(terrains: list[Terrain], closed: Closed, points: list[int]) -> None:
    """Means over seeds at these points against the closed forms, errors from the seeds."""
    betas = terrains[0].betas[points]
    for name, truth in zip(("mean", "variance"), closed(betas), strict=True):
        values = np.array([getattr(terrain, name)[points] for terrain in terrains])
        std_err = values.std(0, ddof=1) / np.sqrt(len(values))
        assert_within_mc_error(values.mean(0), truth, std_err, num_replicates=len(values))


def surveys(path: AbstractPath, kernel: AbstractKernel, seed: int) -> list[Terrain]:
    return [
        survey(path, kernel, num_steps=STEPS, num_chains=CHAINS, seed=seed + replicate)
        for replicate in range(NUM_SEEDS)
    ]


@systems
def test_survey_agrees_with_closed_forms(system, seed: int):
    path, kernel, closed = system
    terrains = surveys(path, kernel, seed)
    np.testing.assert_allclose(terrains[0].betas, np.arange(1, STEPS + 1) / STEPS, rtol=1e-6)
    check(terrains, closed, POINTS)


@pytest.mark.parametrize(
    ("path", "kernel"),
    [(WrongSign(1.0, 0.5), PerfectKernel()), (GaussianPath(1.0, 0.5), StaleKernel())],
    ids=["wrong sign", "stale beta"],
)
def test_survey_of_mutants_does_not(path: GaussianPath, kernel: AbstractKernel, seed: int):
    closed = SYSTEMS["narrower"][2]
    with pytest.raises(AssertionError, match="z = "):
        check(surveys(path, kernel, seed), closed, POINTS)


def test_few_chains_do_not_make_g_small(seed: int):
    """With 4 chains a variance about the weighted mean is low by a quarter, which is divided out."""
    path = GaussianPath(1.25, 1.0)
    found = [
        survey(path, PerfectKernel(), num_steps=100, num_chains=4, seed=seed + i).variance[:30]
        for i in range(60)
    ]
    mean, std_err = np.mean(found), np.mean(found, -1).std(ddof=1) / np.sqrt(60)
    assert_within_mc_error(mean, path.g(0.0), std_err, num_replicates=60)
    with pytest.raises(AssertionError, match="z = "):  # a mutant: not divided out
        assert_within_mc_error(0.75 * mean, path.g(0.0), 0.75 * std_err, num_replicates=60)


def test_one_chain_gives_a_terrain():
    terrain = survey(GaussianPath(1.0, 0.5), PerfectKernel(), num_steps=5, num_chains=1)
    assert (terrain.variance == 0).all()


# --- at knots --------------------------------------------------------------------------------


def knots(path: AbstractPath, kernel: AbstractKernel, seed: int) -> list[Terrain]:
    return [
        survey_knots(
            path,
            kernel,
            num_knots=5,
            num_chains=100,
            num_updates=60,
            num_burn_in=10,
            seed=seed + replicate,
        )
        for replicate in range(NUM_SEEDS)
    ]


@systems
def test_knots_agree_with_closed_forms(system, seed: int):
    path, kernel, closed = system
    terrains = knots(path, kernel, seed)
    np.testing.assert_allclose(terrains[0].betas, np.linspace(0, 1, 5))
    check(terrains, closed, [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("path", "kernel"),
    [(WrongSign(1.0, 0.5), PerfectKernel()), (GaussianPath(1.0, 0.5), StaleKernel())],
    ids=["wrong sign", "stale beta"],
)
def test_knots_of_mutants_do_not(path: GaussianPath, kernel: AbstractKernel, seed: int):
    with pytest.raises(AssertionError, match="z = "):
        check(knots(path, kernel, seed), SYSTEMS["narrower"][2], [0, 1, 2, 3, 4])


class SlowKernel(AbstractKernel):
    """Stays where it is four times in five: invariant, and mixes in some ten sweeps."""

    def step(self, bits, x, path, beta):
        from jax import numpy as jnp

        moves = bits.uniforms(1, draw=1)[:, 0] < 0.2
        return jnp.where(moves, path.draw(bits, beta), x)


def test_burn_in_is_left_out(seed: int):
    """Without it the chains of the knot before are averaged in: at 1 the mean slope is too low."""
    path = GaussianPath(1.0, 0.5)
    settings = {"num_knots": 2, "num_chains": 100, "num_updates": 120}
    for burn_in, is_right in ((70, True), (0, False)):
        found = [
            survey_knots(path, SlowKernel(), **settings, num_burn_in=burn_in, seed=seed + i).mean[1]
            for i in range(NUM_SEEDS)
        ]
        std_err = np.std(found, ddof=1) / np.sqrt(NUM_SEEDS)
        test = (np.mean(found), path.slope_mean(1.0), std_err)
        if is_right:
            assert_within_mc_error(*test, num_replicates=NUM_SEEDS)
        else:
            with pytest.raises(AssertionError, match="z = "):
                assert_within_mc_error(*test, num_replicates=NUM_SEEDS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_knots": 1},
        {"num_chains": 0},
        {"num_updates": 5, "num_burn_in": 5},
        {"num_burn_in": -1},
    ],
)
def test_knots_refuse(wrong: dict):
    with pytest.raises(ValueError, match="a survey at knots takes"):
        survey_knots(GaussianPath(1.0, 0.5), PerfectKernel(), **wrong)


# --- streams and cost ------------------------------------------------------------------------


def test_the_pilot_has_streams_of_its_own(seed: int):
    """At one seed: no number of the pilot is that of the run, or of the other pilot."""
    path, schedule = GaussianPath(1.0, 0.5), linear(STEPS)
    settings = {"num_chains": 50, "seed": seed, "record_every": 1}
    pilot = survey(path, PerfectKernel(), num_steps=STEPS, num_chains=50, seed=seed)
    same = anneal(path, PerfectKernel(), schedule, purpose="survey", **settings)
    np.testing.assert_array_equal(pilot.mean, same.trace.means["slope"])
    for purpose in ("anneal", "anneal 0", "knots", "compare varopt"):
        run = anneal(path, PerfectKernel(), schedule, purpose=purpose, **settings)
        assert not np.isin(run.log_weights, same.log_weights).any()
        assert not np.isin(run.trace.means["slope"], pilot.mean).any()


def test_equal_seeds_give_equal_terrains(seed: int):
    path = GeometricPath(spins_path([0.0] * 6, [0.0] * 6).base, random_rbm(4, 6, 0.7, 1))
    for make in (
        lambda s: survey(path, BlockGibbs(), num_steps=30, num_chains=20, seed=s),
        lambda s: survey_knots(
            path, BlockGibbs(), num_knots=3, num_chains=20, num_updates=20, num_burn_in=5, seed=s
        ),
    ):
        one, same, other = make(seed), make(seed), make(seed + 1)
        np.testing.assert_array_equal(one.variance, same.variance)
        assert (one.variance != other.variance).all()


def test_sweeps_are_charged():
    path = GaussianPath(1.0, 0.5)
    pilot = survey(path, PerfectKernel(), num_steps=30, num_chains=50)
    assert pilot.sweeps == 30 * 50
    assert pilot.provenance == {"pilot": "annealed", "num_steps": 30, "num_chains": 50, "seed": 0}
    seen = []
    at_knots = survey_knots(
        path, PerfectKernel(), num_knots=3, num_chains=100, num_updates=130, num_burn_in=20,
        on_progress=seen.append,
    )  # fmt: skip
    assert at_knots.sweeps == 3 * 100 * 130
    assert at_knots.provenance["pilot"] == "knots"
    assert [progress.step for progress in seen] == [100, 130, 230, 260, 360, 390]
    assert {progress.num_steps for progress in seen} == {390}
