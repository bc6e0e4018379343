"""The pilot of mixing: g and tau against exact ones, its budget, its streams, its resampling."""

import importlib

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.core.weights import resample
from annealz.engine.resampling import ancestors
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.abstract import AbstractPath
from annealz.paths.geometric import GeometricPath
from annealz.pilots import visits
from annealz.pilots.survey_mixing import LEAST_BUDGET, survey_mixing
from annealz.pilots.visits import Seen
from annealz.schedules.terrain import Terrain
from annealz.testing import (
    GaussianPath,
    PerfectKernel,
    assert_within_mc_error,
)
from support.memory import EASY, SLOW, STUCK, exact, lag_one, perfect
from support.systems import marginals

MODULE = importlib.import_module("annealz.pilots.survey_mixing")


def errors(terrain: Terrain, path: GeometricPath) -> tuple[np.ndarray, np.ndarray]:
    """tau-hat / tau - 1 and g-hat / g - 1 at the knots."""
    truth = [exact(path, float(np.float32(beta))) for beta in terrain.betas]
    assert terrain.tau is not None
    tau = terrain.tau / [here.tau for here in truth] - 1
    return tau, terrain.variance / [here.g for here in truth] - 1


def is_bound(terrain: Terrain) -> np.ndarray:
    return np.asarray(terrain.tau_is_bound) > 0


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


# --- against exact ones ----------------------------------------------------------------------


def check_resolved(terrain: Terrain, path: GeometricPath) -> None:
    tau, g = (error[~is_bound(terrain)] for error in errors(terrain, path))
    assert tau.size > 0.9 * terrain.betas.size
    assert rms(tau) < 0.15
    assert abs(tau.mean()) < 0.05
    assert rms(g) < 0.05
    assert abs(g.mean()) < 0.02


@marginals
@pytest.mark.parametrize("system", [EASY, SLOW], ids=["easy", "slow"])
def test_tau_and_g_at_the_knots(system, marginal: str, seed: int):
    """tau is off by 3 % (easy) and 7 % (slow) in root mean square over the knots, g by 1 %."""
    path = GeometricPath(*system, marginal)
    check_resolved(survey_mixing(path, BlockGibbs(), budget=3_000_000, seed=seed), path)


def test_one_lag_tells_too_little(seed: int, monkeypatch: pytest.MonkeyPatch):
    """Mutant: tau = (1 + rho_1) / (1 - rho_1)."""
    monkeypatch.setattr(MODULE, "measure_memory", lag_one)
    path = GeometricPath(*SLOW)
    terrain = survey_mixing(path, BlockGibbs(), budget=1_000_000, seed=seed)
    assert errors(terrain, path)[0][-1] < -0.9
    with pytest.raises(AssertionError):
        check_resolved(terrain, path)


@marginals
def test_what_is_not_forgotten_is_a_lower_bound(marginal: str, seed: int):
    """At knots of tau from 1,000 to 500,000: always marked, always too low, g right all the same."""
    path = GeometricPath(*STUCK, marginal)
    for replicate in range(4):
        terrain = survey_mixing(path, BlockGibbs(), budget=400_000, seed=seed + replicate)
        tau, g = errors(terrain, path)
        bound = is_bound(terrain)
        large = (1 + tau) ** -1 * np.asarray(terrain.tau) > 1000
        assert large.sum() > 5
        assert bound[large].all()
        assert (tau[large] < -0.5).all()
        assert (tau[bound] > 0.6).sum() <= 2  # a noisy guess, where tau is nearly resolved
        assert tau[bound].max() < 10
        assert np.asarray(terrain.tau)[large].min() > 50
        assert np.abs(g).max() < 0.6


def test_one_lag_calls_it_resolved(seed: int, monkeypatch: pytest.MonkeyPatch):
    """Mutant: half a million sweeps look like ten."""
    monkeypatch.setattr(MODULE, "measure_memory", lag_one)
    terrain = survey_mixing(GeometricPath(*STUCK), BlockGibbs(), budget=400_000, seed=seed)
    assert terrain.tau is not None
    assert terrain.tau[-1] < 30
    assert not is_bound(terrain).any()


# --- resampling ------------------------------------------------------------------------------


def mean_slopes(path: GeometricPath, seed: int) -> np.ndarray:
    """At beta = 1."""
    return np.array(
        [
            survey_mixing(path, BlockGibbs(), budget=30_000, seed=seed + i).mean[-1]
            for i in range(20)
        ]
    )


MUTANTS = {
    "wrong sign": lambda weights, uniforms: ancestors(1 / (weights + 1e-6), uniforms),
    "none": lambda weights, uniforms: jnp.arange(weights.size)[None],
}


def test_the_population_is_in_the_right_modes(seed: int):
    """Chains switch no more beyond beta = 0.6: there the share of a mode is the resampling's."""
    path = GeometricPath(*STUCK)
    found = mean_slopes(path, seed)
    std_err = found.std(ddof=1) / np.sqrt(found.size)
    truth = exact(path, 1.0).mean
    assert_within_mc_error(found.mean(), truth, std_err, num_replicates=found.size)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_without_right_weights_it_is_not(mutant, seed: int, monkeypatch: pytest.MonkeyPatch):
    """Mutants: weights of the wrong sign, and no resampling."""
    monkeypatch.setattr(visits, "ancestors", mutant)
    plain = visits._plain._function
    monkeypatch.setattr(visits, "_plain", Compiled(lambda *given: plain(*given)))  # traced again
    path = GeometricPath(*STUCK)
    found = mean_slopes(path, seed)
    std_err = found.std(ddof=1) / np.sqrt(found.size)
    with pytest.raises(AssertionError, match="z = "):
        assert_within_mc_error(
            found.mean(), exact(path, 1.0).mean, std_err, num_replicates=found.size
        )


def test_resampling_is_fair(seed: int):
    """Chain i goes on n w_i times on average, and never further from that than one."""
    log_weights = np.array([0.0, 1.0, -2.0, 0.5, 1000.0 - 1000.0])
    expected = 5 * np.exp(log_weights) / np.exp(log_weights).sum()
    generator = np.random.default_rng(seed)
    counts = np.array(
        [np.bincount(resample(log_weights + 1e4, generator), minlength=5) for _ in range(4000)]
    )
    assert (np.abs(counts - expected) < 1).all()
    std_err = counts.std(0, ddof=1) / np.sqrt(len(counts))
    assert_within_mc_error(counts.mean(0), expected, std_err)


# --- perfect transitions ---------------------------------------------------------------------


@perfect
def test_perfect_transitions_have_tau_1(system, seed: int):
    """+1 % on average from the cut, 3 % in root mean square; g 1 %."""
    path, kernel, g = system
    terrain = survey_mixing(path, kernel, budget=2_000_000, seed=seed)
    assert terrain.tau is not None
    assert not is_bound(terrain).any()
    assert abs(terrain.tau.mean() - 1) < 0.04
    assert rms(terrain.tau - 1) < 0.06
    assert rms(terrain.variance / g(terrain.betas) - 1) < 0.03


# --- budget ----------------------------------------------------------------------------------

SHAPES: dict[str, tuple[AbstractPath, AbstractKernel]] = {
    "gaussian": (GaussianPath(1.0, 0.5), PerfectKernel()),
    "easy": (GeometricPath(*EASY), BlockGibbs()),
    "stuck": (GeometricPath(*STUCK, "hidden"), BlockGibbs()),
}


def check_budget(path: AbstractPath, kernel: AbstractKernel, budget: int) -> None:
    """Every knot is reached, and no more is spent than the budget and than is charged."""
    seen = []
    terrain = survey_mixing(path, kernel, budget=budget, on_progress=seen.append)
    note = terrain.provenance
    assert LEAST_BUDGET / 2 < terrain.sweeps <= budget
    assert terrain.sweeps == seen[-1].step * note["num_chains"]
    assert [progress.step for progress in seen] == sorted(progress.step for progress in seen)
    assert seen[-1].step <= seen[-1].num_steps
    assert (terrain.betas[0], terrain.betas[-1]) == (0, 1)
    assert note["num_knots"] == terrain.betas.size >= 8
    assert note["budget"] == budget


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("budget", [LEAST_BUDGET, 30_000])
def test_no_more_than_the_budget_is_spent(name: str, budget: int):
    check_budget(*SHAPES[name], budget)


@settings(max_examples=50)
@example(LEAST_BUDGET, 0.0, False)
@example(LEAST_BUDGET, 0.999, True)
@example(200_000, 0.999, True)
@given(st.integers(LEAST_BUDGET, 200_000), st.sampled_from([-0.5, 0.0, 0.9, 0.999]), st.booleans())
def test_no_budget_is_overspent(budget: int, rho: float, varies: bool):
    """Of chains that forget at any rate, the same along the path or slower towards its end."""

    def visit(path, kernel, stream, chains, x, betas, legs, uniforms, done, work):
        seen = []
        for leg in legs:
            rate = rho * float(betas[leg.knot]) if varies else rho
            noise = np.random.default_rng(int(done)).normal(size=(leg.num_sweeps, x.size))
            scale, state = np.sqrt(1 - rate**2), rate * x[None]
            slopes, _ = lfilter([scale], [1, -rate], noise, axis=0, zi=state)
            seen.append(Seen(leg, np.zeros(x.size), False, slopes))
            x, done = slopes[-1] if leg.num_sweeps else x, done + leg.num_sweeps
        return x, seen

    def sample(path, stream, step, chains, work):
        return np.random.default_rng(0).normal(size=chains.size)

    with pytest.MonkeyPatch.context() as patch:  # without JAX: what is counted here is sweeps
        patch.setattr(MODULE, "visit", visit)
        patch.setattr(MODULE.Population, "at_first", lambda x, _: x)
        patch.setattr(MODULE.programs, "sample", sample)
        check_budget(GaussianPath(1.0, 0.5), PerfectKernel(), budget)


def test_sweeps_are_those_of_the_kernel(monkeypatch: pytest.MonkeyPatch):
    """And no step of the stream is used twice: not by two runs, and by no start of a round."""
    used: list[int] = []

    def start(path, stream, step, chains, work):
        used.append(int(step))
        return sample(path, stream, step, chains, work=work)

    def watch(path, kernel, stream, chains, population, betas, legs, uniforms, done, work):
        used.extend(range(int(done) + 1, int(done) + sum(leg.num_sweeps for leg in legs) + 1))
        given = path, kernel, stream, chains, population, betas, legs, uniforms, done
        return real(*given, work=work)

    real, sample = MODULE.visit, MODULE.programs.sample
    monkeypatch.setattr(MODULE, "visit", watch)
    monkeypatch.setattr(MODULE.programs, "sample", start)
    terrain = survey_mixing(GaussianPath(1.0, 0.5), PerfectKernel(), budget=20_000)
    assert len(used) == len(set(used))
    assert terrain.sweeps == len(used) * terrain.provenance["num_chains"]


@pytest.mark.parametrize("budget", [0, 1, LEAST_BUDGET - 1])
def test_too_small_a_budget_is_refused(budget: int):
    with pytest.raises(ValueError, match=f"at least {LEAST_BUDGET:,} sweeps, got {budget:,}"):
        survey_mixing(GaussianPath(1.0, 0.5), PerfectKernel(), budget=budget)


def test_what_is_not_needed_is_not_spent():
    easy = survey_mixing(*SHAPES["easy"], budget=400_000)
    stuck = survey_mixing(*SHAPES["stuck"], budget=400_000)
    assert easy.sweeps < 0.7 * 400_000
    assert stuck.sweeps > 0.97 * 400_000


# --- streams ---------------------------------------------------------------------------------


def test_the_seed_is_all_the_randomness(seed: int):
    path = GeometricPath(*SLOW)
    one, same, other = (
        survey_mixing(path, BlockGibbs(), budget=10_000, seed=s) for s in (seed, seed, seed + 1)
    )
    for name in ("betas", "mean", "variance", "tau", "tau_is_bound", "ess"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert one.sweeps == same.sweeps
    assert (one.mean != other.mean).all()


def test_the_stream_is_its_own(seed: int, monkeypatch: pytest.MonkeyPatch):
    """No purpose of a run or of another pilot."""
    purposes = []

    def watch(seed, purpose):
        purposes.append(purpose)
        return Stream(seed, purpose)

    monkeypatch.setattr(MODULE, "Stream", watch)
    survey_mixing(GaussianPath(1.0, 0.5), PerfectKernel(), budget=LEAST_BUDGET, seed=seed)
    assert purposes == ["survey-mixing"]
    keys = {
        tuple(np.asarray(Stream(seed, purpose).key))
        for purpose in ("survey-mixing", "anneal", "sizing", "compare", "survey", "knots")
    }
    assert len(keys) == 6


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_numbers_beyond_float32_are_refused(bad: float):
    class Broken(GaussianPath):
        def log_ratio(self, x, beta0, beta1):
            return bad + 0 * x

    with pytest.raises(ValueError, match="infinite or NaN at beta = "):
        survey_mixing(Broken(1.0, 0.5), PerfectKernel(), budget=LEAST_BUDGET)
