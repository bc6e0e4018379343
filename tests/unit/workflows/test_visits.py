"""Legs of a survey: launches change no bit, jumps are weighed, populations resampled, by XLA and fused."""

import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.core.weights import effective_sample_size, log_mean
from annealz.engine.gpu import cuda
from annealz.engine.gpu.small import SmallSteps
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z
from annealz.paths import programs
from annealz.paths.geometric import GeometricPath
from annealz.pilots import visits as module
from annealz.pilots.run_at_beta import run_at_beta
from annealz.pilots.visits import Leg, Population, visit
from annealz.testing import assert_within_mc_error, random_rbm
from support import emulate_cuda

MODEL = random_rbm(6, 20, 1.0)
PATH = GeometricPath(BernoulliBase.uniform(20), MODEL).unnamed()
BETAS = np.array([0.0, 0.1, 0.35, 0.7, 1.0])
UP = [Leg(0, 0, 3), Leg(0, 1, 5), Leg(1, 2, 0), Leg(2, 3, 4), Leg(3, 4, 6), Leg(1, 1, 2)]
NUM_CHAINS = 16


def take(*launches: list[Leg], seed: int = 3):
    """The population after these launches, and what was seen."""
    stream, chains = Stream(seed, "visits"), indices(NUM_CHAINS)
    population = Population.at_first(programs.sample(PATH, stream, np.int32(0), chains))
    uniforms, done, seen = np.random.default_rng(seed).random(20), 0, []
    for legs in launches:
        given = PATH, BlockGibbs(), stream, chains, population, BETAS, legs, uniforms, done
        population, more = visit(*given)
        seen += more
        done += sum(leg.num_sweeps for leg in legs)
    return population, seen


def test_launches_change_no_bit():
    one, seen = take(UP)
    other, again = take(UP[:1], [Leg(0, 1, 2)], [Leg(1, 1, 3), *UP[2:4]], UP[4:])
    for a, b in zip(one.__dict__.values(), other.__dict__.values(), strict=True):
        np.testing.assert_array_equal(a, b)
    slopes, same = (np.concatenate([leg.slopes for leg in legs]) for legs in (seen, again))
    np.testing.assert_array_equal(slopes, same)
    assert len(slopes) == sum(leg.num_sweeps for leg in UP)


def test_a_leg_is_a_jump_and_a_run_at_beta():
    """By the programs that take one step of it each, as long as nothing is resampled."""
    stream, chains = Stream(3, "visits"), indices(NUM_CHAINS)
    x, done = programs.sample(PATH, stream, np.int32(0), chains), 0
    legs = [Leg(0, 0, 3), Leg(0, 1, 5)]
    population, seen = take(legs)
    for leg, show in zip(legs, seen, strict=True):
        jump = programs.log_ratio(
            PATH, x, np.float32(BETAS[leg.start]), np.float32(BETAS[leg.knot])
        )
        np.testing.assert_allclose(show.jump, jump, rtol=1e-5, atol=1e-6)
        assert not show.is_resampled
        beta = BETAS[leg.knot]
        x, slopes = run_at_beta(PATH, BlockGibbs(), stream, chains, x, beta, done, leg.num_sweeps)
        done += leg.num_sweeps
        np.testing.assert_allclose(show.slopes, slopes, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(population.states[leg.knot], x)


def test_the_population_is_resampled_where_few_are_effective():
    _, seen = take(UP)
    log_weights = np.zeros(NUM_CHAINS)
    for leg in seen:
        log_weights = log_weights + leg.jump
        assert leg.is_resampled == (effective_sample_size(log_weights) < NUM_CHAINS / 2)
        if leg.is_resampled:
            log_weights = np.zeros(NUM_CHAINS)
    assert 1 <= sum(leg.is_resampled for leg in seen) <= 4
    assert not seen[-1].jump.any()  # the run at a knot went on


def test_every_resampling_has_weights_and_a_uniform_of_its_own():
    """Legs without sweeps, so that states show who was copied, against the same on the host."""
    stream, chains = Stream(3, "visits"), indices(NUM_CHAINS)
    x = np.asarray(programs.sample(PATH, stream, np.int32(0), chains))
    betas, uniforms = np.linspace(0, 4, 9), np.random.default_rng(5).random(20)
    legs = [Leg(max(i - 1, 0), i, 0) for i in range(len(betas))]
    given = PATH, BlockGibbs(), stream, chains, Population.at_first(x, 2), betas, legs, uniforms, 0
    population, seen = visit(*given)
    log_weights, used = np.zeros(NUM_CHAINS), 2
    for leg, state in zip(seen, np.asarray(population.states), strict=False):
        log_weights = log_weights + leg.jump
        is_due = effective_sample_size(log_weights) < NUM_CHAINS / 2
        assert leg.is_resampled == is_due
        if is_due:
            weights = np.exp(log_weights - log_weights.max())
            points = (uniforms[used] + np.arange(NUM_CHAINS)) / NUM_CHAINS
            x = x[np.searchsorted(np.cumsum(weights) / weights.sum(), points)]
            log_weights, used = np.zeros(NUM_CHAINS), used + 1
        np.testing.assert_array_equal(state, x)
    assert used - 2 >= 2
    assert int(population.num_resamplings) == used


def test_log_z_of_the_way_is_unbiased(seed: int):
    """E[Z-hat] = Z: what is resampled, how often and by which uniforms included."""
    values = []
    for i in range(200):
        _, seen = take(UP[:5], seed=1000 * seed + i)
        log_z, log_weights = PATH.log_z0, np.zeros(NUM_CHAINS)
        for leg in seen:
            log_weights = log_weights + leg.jump
            if leg.is_resampled:
                log_z, log_weights = log_z + log_mean(log_weights), np.zeros(NUM_CHAINS)
        values.append(np.exp(log_z + log_mean(log_weights) - exact_log_z(MODEL)))
    assert_within_mc_error(np.mean(values), 1.0, np.std(values) / np.sqrt(len(values)))


def test_fused_steps_make_the_same_moves(monkeypatch: pytest.MonkeyPatch):
    """They record the slope before each sweep, not after it."""
    one, seen = take(UP)
    monkeypatch.setattr(cuda, "call", emulate_cuda.call)
    fused = SmallSteps(PATH)
    monkeypatch.setattr(module, "choose_fused", lambda *_: fused)
    other, again = take(UP)
    np.testing.assert_array_equal(one.states, other.states)
    for a, b in zip(seen, again, strict=True):
        assert a.is_resampled == b.is_resampled
        np.testing.assert_allclose(a.slopes[:-1], b.slopes[1:], rtol=1e-4, atol=1e-4)
