"""The mixing schedule: constant speed in √(g tau), its prediction, and the way from a model to it."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from scipy.integrate import quad

import annealz
from annealz.engine.anneal import anneal
from annealz.io.archive import load_archive, save_archive
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import survey
from annealz.pilots.survey_mixing import LEAST_BUDGET, survey_mixing
from annealz.schedules.rules import linear, mixing, varopt
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.testing import GaussianPath, PerfectKernel, assert_within_mc_error, random_rbm
from support.memory import SLOW, exact, perfect

BETAS = np.linspace(0, 1, 1001)


def smooth_g(beta):
    return np.exp(2 * np.sin(6 * beta))


def smooth_tau(beta):
    return 1 + np.exp(5 * beta)


def terrain_of(g, tau, is_bound=False) -> Terrain:
    zeros = 0 * BETAS
    return Terrain(
        BETAS,
        zeros,
        g(BETAS) + zeros,
        zeros + 1e9,
        sweeps=123,
        tau=tau(BETAS) + zeros,
        tau_is_bound=zeros + is_bound,
    )


SMOOTH = terrain_of(smooth_g, smooth_tau)


# --- the curve -------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [1.0, 0.3, 250.0])
@pytest.mark.parametrize("num_steps", [1, 7, 500])
def test_with_one_tau_it_is_varopt(tau: float, num_steps: int):
    terrain = terrain_of(smooth_g, lambda beta: tau)
    found, expected = mixing(terrain, num_steps), varopt(terrain, num_steps, width=0)
    np.testing.assert_allclose(found.betas, expected.betas, atol=1e-9)


def test_the_speed_is_constant():
    """Each of 500 steps crosses the same ∫ √(g tau), to 0.1 %."""
    steps = mixing(SMOOTH, 500).betas
    crossed = np.array(
        [
            quad(lambda b: np.sqrt(smooth_g(b) * smooth_tau(b)), low, high)[0]
            for low, high in itertools.pairwise(steps)
        ]
    )
    np.testing.assert_allclose(crossed / crossed.mean(), 1, atol=1e-3)


@pytest.mark.parametrize(
    "power",
    [(1.0, 0.0), (0.0, 1.0), (2.0, 2.0), (1.0, 2.0), (-1.0, -1.0)],
    ids=["no tau", "no g", "not the root", "tau for its root", "inverse"],
)
def test_mutants_cost_more(power: tuple[float, float]):
    """The variance ∫ g tau / m of other dwell densities m, against the least."""
    grid, friction = SMOOTH.on_grid(with_memory=True)

    def variance(schedule: Schedule) -> float:
        dwell = np.interp(grid, schedule.betas, np.linspace(0, 1, schedule.num_steps + 1))
        return float(
            np.sum(np.diff(grid) ** 2 * (friction[1:] + friction[:-1]) / 2 / np.diff(dwell))
        )

    mutant = terrain_of(lambda b: smooth_g(b) ** power[0], lambda b: smooth_tau(b) ** power[1])
    least = quad(lambda b: np.sqrt(smooth_g(b) * smooth_tau(b)), 0, 1)[0] ** 2
    assert variance(mixing(SMOOTH, 4000)) == pytest.approx(least, rel=1e-3)
    assert variance(mixing(mutant, 4000)) > 1.05 * least


def test_it_is_a_function_of_the_terrain():
    one, same = mixing(SMOOTH, 50), mixing(SMOOTH, 50)
    assert one == same
    assert one.name == "mixing"
    assert one.provenance["pilot_sweeps"] == 123
    assert one.provenance["tau_is_bound"] is False
    assert one.provenance["largest_tau"] == pytest.approx(smooth_tau(1.0))
    least = quad(lambda b: np.sqrt(smooth_g(b) * smooth_tau(b)), 0, 1)[0] ** 2
    assert one.provenance["predicted_variance"] == pytest.approx(least / 50, rel=1e-4)


# --- bounds ----------------------------------------------------------------------------------


def peak(beta):
    return 1 + 1e10 * np.exp(-(((beta - 0.5) / 0.01) ** 2))


def test_a_bound_is_not_trusted_alone():
    """A twentieth of the time is spread evenly: no stretch is crossed 20 times faster than linearly."""
    for is_bound in (True, False):
        steps = np.diff(mixing(terrain_of(np.ones_like, peak, is_bound), 1000).betas)
        assert (steps.max() * 1000 < 20.01) == is_bound
    trusted, bound = (mixing(terrain_of(np.ones_like, peak, b), 1000) for b in (False, True))
    assert bound.provenance["tau_is_bound"] is True
    assert bound.provenance["predicted_variance"] > trusted.provenance["predicted_variance"]


def test_one_bound_is_enough():
    marks = np.zeros(BETAS.size)
    marks[300] = 1
    terrain = dataclasses.replace(terrain_of(np.ones_like, peak), tau_is_bound=marks)
    assert mixing(terrain, 1000) == mixing(terrain_of(np.ones_like, peak, True), 1000)


# --- refusals and any terrain ----------------------------------------------------------------


def test_a_terrain_without_tau_is_refused():
    terrain = survey(GaussianPath(1.0, 0.5), PerfectKernel(), num_steps=20, num_chains=10)
    with pytest.raises(ValueError, match="no tau: survey it with survey_mixing"):
        mixing(terrain, 10)


@pytest.mark.parametrize("num_steps", [0, -3])
def test_no_steps_are_refused(num_steps: int):
    with pytest.raises(ValueError, match="num_steps must be at least 1"):
        mixing(SMOOTH, num_steps)


@pytest.mark.parametrize(
    ("tau", "words"),
    [
        (np.zeros(3), "tau must be positive"),
        (np.array([1.0, -1.0, 1.0]), "tau must be positive"),
        (np.array([1.0, np.nan, 1.0]), "tau must be finite"),
        (np.ones(2), "tau must be a vector as long as betas"),
    ],
)
def test_no_such_tau(tau: np.ndarray, words: str):
    column = np.ones(3)
    with pytest.raises(ValueError, match=words):
        Terrain([0, 0.5, 1], column, column, column, tau=tau, tau_is_bound=column)


def test_tau_is_no_bound_unless_said():
    column = np.ones(3)
    terrain = Terrain([0, 0.5, 1], column, column, column, tau=column)
    assert terrain.tau_is_bound is not None
    assert terrain.tau_is_bound.dtype == bool
    assert not terrain.tau_is_bound.any()


positive = st.floats(1e-12, 1e12)


@settings(max_examples=200)
@given(
    st.integers(1, 12).flatmap(
        lambda size: st.tuples(
            arrays(float, size, elements=st.floats(0, 1), unique=True),
            arrays(float, size, elements=positive),
            arrays(float, size, elements=positive),
            arrays(float, size, elements=st.sampled_from([0.0, 1.0])),
        )
    ),
    st.integers(1, 300),
)
def test_any_terrain_gives_a_schedule(columns, num_steps: int):
    betas, g, tau, bound = columns
    betas = np.sort(betas)
    if (np.diff(betas) < 1e-12).any():
        betas = np.linspace(0, 1, betas.size + 1)[:-1]
    terrain = Terrain(betas, g, g, g, tau=tau, tau_is_bound=bound)
    schedule = mixing(terrain, num_steps)  # which checks itself
    assert schedule.num_steps == num_steps
    assert (schedule.betas[0], schedule.betas[-1]) == (0, 1)
    assert (np.diff(schedule.betas) > 0).all()
    if bound.any():
        assert np.diff(schedule.betas).max() * num_steps < 20.1
    assert np.isfinite(schedule.provenance["predicted_variance"])


# --- perfect transitions and real ones -------------------------------------------------------


@perfect
def test_under_perfect_transitions_it_is_varopt(system, seed: int):
    """Within 0.01 in beta, where VAROPT of the exact g is 0.2 to 0.3 from linear; 0.0025 to 0.0066 seen."""
    path, kernel, g = system
    best = varopt(terrain_of(g, np.ones_like), 200, width=0).betas
    assert np.abs(best - linear(200).betas).max() > 0.2
    for replicate in range(2):
        terrain = survey_mixing(path, kernel, budget=500_000, seed=seed + replicate)
        assert np.abs(mixing(terrain, 200).betas - best).max() < 0.01


@pytest.mark.usefixtures("optimised")
def test_the_variance_is_the_predicted_one(seed: int):
    """K Var[log w] -> (∫ √(g tau))^2 for chains of tau up to 33; tau = 1 predicts a quarter of it."""
    path = GeometricPath(*SLOW)
    betas = np.linspace(0, 1, 101)
    truth = [exact(path, beta) for beta in betas]
    terrain = Terrain(
        betas,
        [here.mean for here in truth],
        [here.g for here in truth],
        0 * betas + 1e9,
        tau=[here.tau for here in truth],
        tau_is_bound=0 * betas,
    )
    schedule = mixing(terrain, 2000)
    found = [
        anneal(path, BlockGibbs(), schedule, num_chains=1000, seed=seed + i).log_weights.var(ddof=1)
        for i in range(8)
    ]
    std_err = np.std(found, ddof=1) / np.sqrt(8)
    predicted = schedule.provenance["predicted_variance"]
    assert_within_mc_error(np.mean(found), predicted, std_err, num_replicates=8)
    perfect = mixing(dataclasses.replace(terrain, tau=1 + 0 * betas), 2000)
    with pytest.raises(AssertionError, match="z = "):
        assert_within_mc_error(
            np.mean(found), perfect.provenance["predicted_variance"], std_err, num_replicates=8
        )


# --- through the front door ------------------------------------------------------------------


PLAIN = {"base": "visible-bias", "second_opinion": False}  # one base, no search


def test_it_is_the_default_and_charged(seed: int):
    """K = 100 and 50 chains: the least pilot, which is half of such a run."""
    model = random_rbm(4, 6, 0.7, 11)
    result = annealz.estimate_log_z(model, num_steps=100, num_chains=50, seed=seed, **PLAIN)
    assert result.schedule.name == "mixing"
    assert result.sweeps["main"] == 5000
    assert result.sweeps["pilot"] == result.schedule.provenance["pilot_sweeps"]
    assert 0 < result.sweeps["pilot"] <= LEAST_BUDGET
    assert result.seconds > result.run.seconds
    assert_within_mc_error(result.log_z, result.exact_log_z, result.std_err)


def test_the_pilot_is_in_no_weight(seed: int):
    """The weights are those of a run with the same betas and no pilot."""
    model = random_rbm(4, 6, 0.7, 11)
    settings = {"num_chains": 50, "seed": seed, **PLAIN}
    piloted = annealz.estimate_log_z(model, num_steps=100, **settings)
    plain = annealz.estimate_log_z(model, schedule=piloted.schedule.betas, **settings)
    np.testing.assert_array_equal(piloted.log_weights, plain.log_weights)
    assert plain.sweeps["pilot"] == 0


# --- files and pictures ----------------------------------------------------------------------


def test_saved_terrain_keeps_tau(tmp_path: Path):
    terrain = survey_mixing(GeometricPath(*SLOW), BlockGibbs(), budget=LEAST_BUDGET)
    terrain.save(tmp_path / "t.npz")
    loaded = Terrain.load(tmp_path / "t.npz")
    for name in ("betas", "mean", "variance", "ess", "tau", "tau_is_bound"):
        assert getattr(loaded, name).tobytes() == getattr(terrain, name).tobytes()
    assert loaded.sweeps == terrain.sweeps
    assert loaded.provenance == terrain.provenance
    assert mixing(loaded, 30) == mixing(terrain, 30)


def test_archives_without_tau_are_read(tmp_path: Path):
    columns = dict.fromkeys(("mean", "variance", "ess"), BETAS + 1)
    meta = {"kind": "terrain", "sweeps": 5, "seconds": 0.5, "provenance": {"pilot": "annealed"}}
    save_archive(tmp_path / "old.npz", {"betas": BETAS, **columns}, meta)
    terrain = Terrain.load(tmp_path / "old.npz")
    assert terrain.tau is None
    assert terrain.tau_is_bound is None
    terrain.save(tmp_path / "again.npz")
    assert load_archive(tmp_path / "again.npz")[0].keys() == {"betas", *columns}


@pytest.mark.parametrize("is_bound", [False, True])
def test_plot_shows_tau(is_bound: bool, tmp_path: Path):
    figure = terrain_of(smooth_g, smooth_tau, is_bound).plot()
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3
    assert "autocorrelation time" in figure.axes[2].get_title()
    labels = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert ("at least" in labels) == is_bound
    figure.savefig(tmp_path / "t.png")
    assert (tmp_path / "t.png").stat().st_size > 1000
