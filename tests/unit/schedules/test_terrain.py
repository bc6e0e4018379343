"""Terrain: refused where it is no terrain, smoothed without loss, J against closed forms."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.integrate import quad

from annealz.schedules.rules import linear, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.testing import GaussianPath, assert_within_mc_error, spins_moments, spins_path

BETAS = np.linspace(0, 1, 501)
GAUSSIAN = GaussianPath(1.0, 0.5)
SPINS = spins_path([2.0, -1.0, 0.5], [-3.0, 4.0, 0.25], [1.5])
G: dict[str, Callable] = {
    "gaussian": GAUSSIAN.g,
    "widening": GaussianPath(-0.5, 3.0).g,
    "spins": lambda beta: spins_moments(SPINS, beta)[1],
    "exponential": lambda beta: np.exp(5 * beta),
}
known = pytest.mark.parametrize("g", G.values(), ids=G.keys())


def terrain_of(g: Callable, betas: np.ndarray = BETAS, ess: float = 1e9) -> Terrain:
    variance = g(betas)
    return Terrain(betas, np.zeros_like(betas), variance, np.full(betas.shape, ess))


def altered(**changes) -> dict:
    fields = {name: np.array([0.1, 0.5, 0.9]) for name in ("betas", "mean", "variance", "ess")}
    return {**fields, **changes}


# --- the type --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["betas", "mean", "variance", "ess"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(name: str, value: float):
    with pytest.raises(ValueError, match=f"terrain {name} must be finite"):
        Terrain(**altered(**{name: np.array([0.1, value, 0.9])}))


@pytest.mark.parametrize("name", ["mean", "variance", "ess"])
@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), ()])
def test_other_shapes_are_refused(name: str, shape: tuple):
    with pytest.raises(ValueError, match=rf"terrain {name} must be a vector as long as betas"):
        Terrain(**altered(**{name: np.ones(shape)}))


def test_an_empty_terrain_is_refused():
    with pytest.raises(ValueError, match="terrain betas must be a vector"):
        Terrain(**dict.fromkeys(("betas", "mean", "variance", "ess"), np.zeros(0)))


@pytest.mark.parametrize(
    "betas",
    [[0.5, 0.1, 0.9], [0.1, 0.1, 0.9], [0.1, 0.1 + 1e-13, 0.9], [-0.1, 0.5, 0.9], [0.1, 0.5, 1.1]],
)
def test_other_betas_are_refused(betas: list[float]):
    with pytest.raises(ValueError, match="betas must increase .*within"):
        Terrain(**altered(betas=np.array(betas)))


def test_negative_variance_is_refused():
    with pytest.raises(ValueError, match="variance must not be negative"):
        Terrain(**altered(variance=np.array([1.0, -1e-9, 1.0])))


def test_arrays_are_frozen_copies():
    mine = altered()
    terrain = Terrain(**mine)
    mine["variance"][1] = 7
    assert terrain.variance[1] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        terrain.variance[1] = 7


# --- smoothing -------------------------------------------------------------------------------


def noisy(g: Callable, ess: float, seed: int, num_points: int = 1000) -> Terrain:
    """log g + N(0, 2 / ESS): what a pilot of that many effective chains sees."""
    terrain = terrain_of(g, np.arange(1, num_points + 1) / num_points, ess)
    noise = np.random.default_rng(seed).normal(0, np.sqrt(2 / ess), num_points)
    return dataclasses.replace(terrain, variance=terrain.variance * np.exp(noise))


def rms_error(terrain: Terrain, g: Callable) -> float:
    return float(np.sqrt(np.mean((np.log(terrain.variance) - np.log(g(terrain.betas))) ** 2)))


@known
@pytest.mark.parametrize("ess", [20.0, 100.0])
def test_smoothing_removes_noise(g: Callable, ess: float, seed: int):
    """Two thirds of it and more, on smooth terrains of a thousand points."""
    for replicate in range(5):
        raw = noisy(g, ess, seed + replicate)
        assert rms_error(raw.smoothed(), g) < rms_error(raw, g) / 3


def test_smoothing_removes_no_truth():
    """Where there is no noise, g is kept."""
    for g in G.values():
        assert rms_error(terrain_of(g).smoothed(), g) < 1e-3


def test_a_structure_wider_than_the_noise_is_kept(seed: int):
    def g(beta):
        return np.exp(3 * np.sin(12 * beta))

    raw = noisy(g, 100.0, seed)
    assert rms_error(raw.smoothed(), g) < rms_error(raw, g) / 2
    assert rms_error(raw.smoothed(0.3), g) > 0.5  # a mutant: far too wide


def test_raw_values_are_kept_apart(seed: int):
    raw = noisy(GAUSSIAN.g, 50.0, seed)
    before = raw.variance.copy()
    smooth = raw.smoothed()
    np.testing.assert_array_equal(raw.variance, before)
    assert "smoothing_width" not in raw.provenance
    assert smooth.provenance["smoothing_width"] > 0
    assert np.mean(smooth.variance != raw.variance) > 0.99
    for name in ("betas", "mean", "ess"):
        np.testing.assert_array_equal(getattr(smooth, name), getattr(raw, name))


def test_width_0_is_the_identity(seed: int):
    raw = noisy(GAUSSIAN.g, 50.0, seed)
    np.testing.assert_allclose(raw.smoothed(0).variance, raw.variance, rtol=1e-12)


def test_the_width_given_is_used(seed: int):
    """The variance of white noise falls by 2 √pi width / spacing."""
    ess, width = 50.0, 0.02
    left = []
    for replicate in range(20):
        raw = noisy(np.ones_like, ess, seed + replicate)
        smooth = raw.smoothed(width)
        assert smooth.provenance["smoothing_width"] == width
        left.append(np.mean(np.log(smooth.variance[100:-100]) ** 2))
    expected = 2 / ess / (2 * np.sqrt(np.pi) * width * 1000)
    std_err = np.std(left, ddof=1) / np.sqrt(20)
    assert_within_mc_error(np.mean(left), expected, std_err, num_replicates=20)


@pytest.mark.parametrize("width", [-0.1, 1.0, np.nan])
def test_other_widths_are_refused(width: float):
    with pytest.raises(ValueError, match="width must lie in"):
        terrain_of(GAUSSIAN.g).smoothed(width)


@pytest.mark.parametrize("slope", [-8.0, 5.0])
def test_slopes_are_kept_up_to_the_ends(slope: float):
    terrain = terrain_of(lambda beta: np.exp(slope * beta))
    np.testing.assert_allclose(terrain.smoothed(0.1).variance, terrain.variance, rtol=1e-9)


def test_one_point_is_a_terrain():
    one = Terrain([0.5], [1.0], [4.0], [10.0])
    assert one.smoothed(0.1).variance == pytest.approx([4.0])
    assert one.linear_cost == pytest.approx(4)
    assert one.least_cost == pytest.approx(4)


# --- J ---------------------------------------------------------------------------------------


@known
def test_costs_are_the_integrals(g: Callable):
    terrain = terrain_of(g)
    assert terrain.linear_cost == pytest.approx(quad(g, 0, 1)[0], rel=1e-4)
    least = quad(lambda beta: np.sqrt(g(beta)), 0, 1)[0] ** 2
    assert terrain.least_cost == pytest.approx(least, rel=1e-4)


def test_costs_in_closed_form():
    """J_linear = E_1[U] - E_0[U] on a geometric path; J_min = 2 log(scale)^2 if only the width moves."""
    assert terrain_of(GAUSSIAN.g).linear_cost == pytest.approx(
        GAUSSIAN.slope_mean(1.0) - GAUSSIAN.slope_mean(0.0), rel=1e-4
    )
    assert terrain_of(GaussianPath(0.0, 0.3).g).least_cost == pytest.approx(
        2 * np.log(0.3) ** 2, rel=1e-4
    )
    shift = terrain_of(GaussianPath(1.7, 1.0).g)
    assert shift.linear_cost == pytest.approx(1.7**2)
    assert shift.least_cost == pytest.approx(1.7**2)


@known
@pytest.mark.parametrize("num_steps", [1, 7, 1000])
def test_cost_of_linear_is_the_linear_cost(g: Callable, num_steps: int):
    terrain = terrain_of(g)
    assert terrain.cost(linear(num_steps).betas) == pytest.approx(terrain.linear_cost, rel=1e-9)


@known
def test_cost_of_a_curve_is_its_integral(g: Callable):
    """beta = t^2: J = ∫ 4 t^2 g(t^2) dt; and the optimal curve has the least cost."""
    terrain = terrain_of(g)
    curve = quad(lambda t: 4 * t**2 * g(t**2), 0, 1)[0]
    assert terrain.cost(np.linspace(0, 1, 5001) ** 2) == pytest.approx(curve, rel=1e-3)
    best = terrain.cost(varopt(terrain, 5000).betas)
    assert best == pytest.approx(terrain.least_cost, rel=1e-3)
    assert best < curve


def test_no_curve_costs_less_than_the_least(seed: int):
    generator = np.random.default_rng(seed)
    terrain = terrain_of(GAUSSIAN.g)
    for _ in range(50):
        steps = generator.gamma(generator.uniform(0.3, 5), size=400)
        betas = np.append(0, np.cumsum(steps))
        assert terrain.cost(Schedule(betas / betas[-1]).betas) > terrain.least_cost


def test_on_grid_goes_from_0_to_1_and_through_the_points():
    terrain = Terrain([0.2, 0.61234], [0.0, 1.0], [2.0, 8.0], [9.0, 9.0])
    grid, g = terrain.on_grid()
    assert (grid[0], grid[-1]) == (0, 1)
    assert (np.diff(grid) > 0).all()
    np.testing.assert_allclose(g[grid <= 0.2], 2)
    np.testing.assert_allclose(g[grid >= 0.61234], 8)
    middle = g[np.argmin(np.abs(grid - (0.2 + 0.61234) / 2))]
    assert middle == pytest.approx(4, rel=1e-2)  # log g is interpolated


# --- files and pictures ----------------------------------------------------------------------


def test_saved_terrain_comes_back_with_every_bit(tmp_path: Path, seed: int):
    terrain = dataclasses.replace(
        noisy(GAUSSIAN.g, 50.0, seed), sweeps=123, seconds=4.5, provenance={"pilot": "annealed"}
    )
    terrain.save(tmp_path / "t.npz")
    loaded = Terrain.load(tmp_path / "t.npz")
    for name in ("betas", "mean", "variance", "ess"):
        assert getattr(loaded, name).tobytes() == getattr(terrain, name).tobytes()
    assert (loaded.sweeps, loaded.seconds, loaded.provenance) == (123, 4.5, {"pilot": "annealed"})


def test_altered_files_are_refused(tmp_path: Path):
    path = tmp_path / "t.npz"
    terrain_of(GAUSSIAN.g).save(path)
    with np.load(path) as archive:
        members = dict(archive)
    members["variance"] = members["variance"] * 1.01
    np.savez(path, **members)
    with pytest.raises(ValueError, match=r"t\.npz was altered or damaged"):
        Terrain.load(path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"t\.npz"):
        Terrain.load(path)


def test_other_archives_are_refused(tmp_path: Path):
    from annealz.io.archive import save_archive

    save_archive(tmp_path / "a.npz", {"betas": BETAS}, {"kind": "run"})
    with pytest.raises(ValueError, match=r"a\.npz holds no terrain"):
        Terrain.load(tmp_path / "a.npz")


def test_plot_is_a_figure(tmp_path: Path, seed: int):
    figure = noisy(GAUSSIAN.g, 50.0, seed).plot()
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3
    figure.savefig(tmp_path / "t.png")
    assert (tmp_path / "t.png").stat().st_size > 1000
