"""GMS13: steps by √cost of a segment, and VAROPT as its limit of many knots."""

import numpy as np
import pytest

from annealz.kernels.gibbs import BlockGibbs
from annealz.pilots.plan import survey_knots
from annealz.schedules.rules import gms13, linear, varopt
from annealz.schedules.terrain import Terrain
from annealz.testing import GaussianPath, PerfectKernel, spins_moments, spins_path

GAUSSIAN = GaussianPath(1.0, 0.5)
NARROW = GaussianPath(1.0, 0.1)
SPINS = spins_path([2.0, -1.0, 0.5], [-4.0, 5.0, 0.25])  # no hidden bias: U does not depend on beta


def gaussian_terrain(path: GaussianPath, num_knots: int) -> Terrain:
    betas = np.linspace(0, 1, num_knots)
    return Terrain(betas, path.slope_mean(betas), path.g(betas), np.full(num_knots, 1e9))


def spins_terrain(num_knots: int) -> Terrain:
    betas = np.linspace(0, 1, num_knots)
    return Terrain(betas, *spins_moments(SPINS, betas), np.full(num_knots, 1e9))


SYSTEMS = {
    "gaussian": lambda n: gaussian_terrain(GAUSSIAN, n),
    "narrow": lambda n: gaussian_terrain(NARROW, n),
    "spins": spins_terrain,
}
systems = pytest.mark.parametrize("terrain_of", SYSTEMS.values(), ids=SYSTEMS.keys())


@systems
def test_many_knots_converge_to_varopt(terrain_of):
    """The gap falls with the square of the spacing, or nearly."""
    optimal = varopt(terrain_of(2001), 400, width=0).betas
    gaps = [np.abs(gms13(terrain_of(n), 400).betas - optimal).max() for n in (11, 41, 161, 641)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 2e-3
    assert gaps[-1] < gaps[0] / 10


def test_ten_knots_differ():
    """On a terrain that moves within a segment ten knots are far from VAROPT, towards linear."""
    optimal = varopt(gaussian_terrain(NARROW, 2001), 400, width=0)
    coarse = gms13(gaussian_terrain(NARROW, 10), 400)
    truth = gaussian_terrain(NARROW, 2001)
    assert np.abs(coarse.betas - optimal.betas).max() > 0.01
    costs = [truth.cost(s.betas) for s in (optimal, coarse, linear(400))]
    assert costs[0] * 1.2 < costs[1] < costs[2]


@systems
@pytest.mark.parametrize("num_knots", [3, 10])
def test_steps_of_a_segment_are_proportional_to_root_cost(terrain_of, num_knots: int):
    terrain, num_steps = terrain_of(num_knots), 5000
    shares = np.sqrt(np.diff(terrain.betas) * np.diff(terrain.mean))
    schedule = gms13(terrain, num_steps)
    counts = np.histogram(schedule.betas[1:], terrain.betas)[0]
    np.testing.assert_allclose(counts, num_steps * shares / shares.sum(), atol=2)
    for low, high in zip(terrain.betas[:-1], terrain.betas[1:], strict=True):  # linear inside
        inside = np.diff(schedule.betas)[(schedule.betas[:-1] > low) & (schedule.betas[1:] < high)]
        assert inside.size == 0 or np.ptp(inside) < 1e-12


def test_decreasing_means_are_tolerated():
    """A segment whose noisy cost is negative is crossed fast, but crossed."""
    betas = np.linspace(0, 1, 6)
    terrain = Terrain(betas, [0.0, 1.0, 0.9, 2.0, 1.5, 4.0], np.ones(6), np.full(6, 10.0))
    schedule = gms13(terrain, 1000)
    steps = np.diff(schedule.betas)
    assert (steps > 0).all()
    counts = np.histogram(schedule.betas[1:], betas)[0]
    assert counts[1] <= 2
    assert counts[3] <= 2
    flat = Terrain(betas, np.zeros(6), np.ones(6), np.full(6, 10.0))
    np.testing.assert_allclose(gms13(flat, 10).betas, linear(10).betas, atol=1e-9)
    falling = Terrain(betas, -betas, np.ones(6), np.full(6, 10.0))
    np.testing.assert_allclose(gms13(falling, 10).betas, linear(10).betas, atol=1e-9)


def test_knots_need_not_reach_the_ends():
    terrain = Terrain([0.1, 0.5, 0.9], [0.0, 1.0, 3.0], np.ones(3), np.full(3, 10.0))
    schedule = gms13(terrain, 100)
    assert (np.diff(schedule.betas) > 0).all()
    assert (schedule.betas[0], schedule.betas[-1]) == (0, 1)


@pytest.mark.parametrize(
    ("path", "kernel", "terrain_of"),
    [(GAUSSIAN, PerfectKernel(), SYSTEMS["gaussian"]), (SPINS, BlockGibbs(), spins_terrain)],
    ids=["gaussian", "spins"],
)
def test_from_measured_moments(path, kernel, terrain_of, seed: int):
    """The whole rule, knots measured: close to the schedule of the exact moments."""
    knots = survey_knots(path, kernel, num_chains=200, num_updates=120, num_burn_in=20, seed=seed)
    measured = gms13(knots, 200)
    exact = gms13(terrain_of(10), 200)
    np.testing.assert_allclose(measured.betas, exact.betas, atol=0.02)
    assert measured.name == "gms13"
    assert measured.provenance["pilot_sweeps"] == 10 * 200 * 120
    assert measured.provenance["pilot"] == "knots"


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="num_steps must be at least 1"):
        gms13(spins_terrain(5), 0)
