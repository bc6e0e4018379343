"""Replica exchange: exact identities, invariance, log Z by z-test, the same bits however it is run.

Exact identities come first: Bennett's ratio holds for every constant, and a swap leaves the product of two
laws invariant. Then the engine is tied to a plain loop bit for bit, and to the laws at its rungs by
chi-square.
Mutants must fail: the wrong sign of a swap, moves at a stale beta, the wrong sign of Bennett's constant.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logsumexp

import annealz
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Stream
from annealz.diagnostics.exchange import judge_exchange
from annealz.diagnostics.findings import Kind, in_python
from annealz.diagnostics.status import Status
from annealz.kernels.gibbs import BlockGibbs
from annealz.methods.exchange import advance as device
from annealz.methods.exchange.exchange import exchange
from annealz.methods.exchange.result import Round
from annealz.methods.exchange.rounds import (
    ABOVE,
    BELOW,
    NUM_SUMS,
    check_ladder,
    equal_rejection,
    halves_of,
    interpolated,
    log_ratios,
    round_lengths,
)
from annealz.models.exact import exact_log_z
from annealz.paths.geometric import GeometricPath
from support.exchanges import (
    ASKED,
    BASE,
    BETAS,
    MODEL,
    PATH,
    SMALL,
    STATES,
    advanced,
    begun,
    law,
    log_density,
)
from support.values import log_ratio


def work(low: float, high: float) -> np.ndarray:
    return log_ratio(PATH, STATES.astype(np.float32), low, high)


@eqx.filter_jit
def _swap_rungs(rungs, replicas, gain, uniforms, k):
    return device.swap_rungs(rungs, replicas, gain, uniforms, k)


def swap_rungs(rungs, replicas, gain, uniforms, k: int) -> tuple[np.ndarray, np.ndarray]:
    new, who = _swap_rungs(rungs, replicas, gain, uniforms, np.asarray(k, np.int32))
    return np.asarray(new), np.asarray(who)


# --- exact identities -------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [-2.0, 0.0, 0.7, 5.0])
@pytest.mark.parametrize("pair", range(3))
def test_the_ratio_is_exact_for_every_constant(constant: float, pair: int):
    low, high = BETAS[pair : pair + 2]
    w, truth = work(low, high), logsumexp(log_density(high)) - logsumexp(log_density(low))
    sums = np.zeros((1, NUM_SUMS))
    sums[0, ABOVE] = law(low) @ expit(w - constant)
    sums[0, BELOW] = law(high) @ expit(constant - w)
    np.testing.assert_allclose(log_ratios(sums, np.array([constant]), 1)[0], truth, atol=1e-5)
    if constant:  # mutant: the wrong sign of the constant
        wrong = log_ratios(sums, -np.array([constant]), 1)[0]
        assert abs(wrong - truth) > 0.1


@pytest.mark.parametrize("sign", [1, -1])
def test_a_swap_leaves_the_product_of_two_laws_invariant(sign: int):
    """The matrix of a swap on 16 x 16 states; with the wrong sign it does not."""
    low, high = 0.25, 0.625
    w, joint = work(low, high), np.outer(law(low), law(high)).ravel()  # (x at low, y at high)
    gain = sign * (w[:, None] - w[None, :])
    taken = np.exp(np.minimum(gain, 0)).ravel()
    first, second = (a.ravel() for a in np.indices((16, 16)))
    matrix = np.diag(1 - taken)
    matrix[np.arange(256), second * 16 + first] += taken
    error = np.abs(joint @ matrix - joint).max()
    assert error < 1e-7 if sign == 1 else error > 1e-3


def test_a_swap_is_taken_with_its_probability():
    """u < exp(gain), at uniforms on a grid."""
    grid = (np.arange(1000, dtype=np.float32) + 0.5) / 1000
    order = np.tile(np.arange(2, dtype=np.int32), (1000, 1))
    for gain in (-3.0, -0.5, 0.0, 2.0):
        gains = np.full((1000, 1), gain, np.float32)
        rungs, _ = swap_rungs(order, order, gains, grid[:, None], 0)
        assert abs(np.mean(rungs[:, 0] == 1) - min(1, np.exp(gain))) <= 1e-3
    stuck = np.full((1000, 1), np.nan, np.float32)
    np.testing.assert_array_equal(swap_rungs(order, order, stuck, grid[:, None], 0)[0], order)


def test_swaps_are_permutations_and_alternate():
    generator = np.random.default_rng(3)
    rungs = np.tile(np.arange(7, dtype=np.int32), (5, 1))
    replicas = rungs
    for k in range(20):
        gain = generator.normal(0, 2, (5, 6)).astype(np.float32)
        uniforms = generator.uniform(size=(5, 6)).astype(np.float32)
        new, who = swap_rungs(rungs, replicas, gain, uniforms, k)
        np.testing.assert_array_equal(np.take_along_axis(new, who, 1), rungs * 0 + np.arange(7))
        for e, r in itertools.product(range(5), range(6)):
            is_swapped = int(who[e, r]) == int(replicas[e, r + 1])
            assert is_swapped == ((r - k) % 2 == 0 and uniforms[e, r] < np.exp(gain[e, r]))
        rungs, replicas = new, who


# --- the engine is a plain loop ---------------------------------------------------------------


def plain_loop(path, kernel, betas, constants, num_ensembles: int, num_sweeps: int, seed: int):
    """The module's header in plain Python, with the engine's bits."""
    num_rungs, stream = len(betas), Stream(seed, "exchange")
    rows = np.arange(num_ensembles * num_rungs)
    x = np.array(jax.jit(lambda bits: path.sample(bits))(stream.at(0, rows)))
    rung = np.tile(np.arange(num_rungs), num_ensembles)
    label, trips = np.zeros(len(rows), int), np.zeros(num_ensembles, int)
    sums = np.zeros((num_ensembles, num_rungs - 1, NUM_SUMS))
    ratio = jax.jit(lambda x, low, high: path.log_ratio(x, low, high))
    step = jax.jit(lambda bits, x, beta: kernel.step(bits, x, path, beta))
    for k in range(1, num_sweeps + 1):
        bits = stream.at(k, rows[::num_rungs])
        uniforms = np.array(bits.uniforms(num_rungs - 1, 2**32 - 1))
        works = np.stack([ratio(x, low, high) for low, high in itertools.pairwise(betas)], 1)
        for e, r in itertools.product(range(num_ensembles), range(num_rungs - 1)):
            if r == 0:
                mine = rung[rows // num_rungs == e]
                at = e * num_rungs + np.argsort(mine)  # before any swap
            i, j = at[r], at[r + 1]
            up, down = np.float64(works[i, r]), np.float64(works[j, r])
            taken, c = min(1, np.exp(up - down)), constants[r]
            sums[e, r] += expit(up - c), expit(c - down), 1 - taken, up, down
            if r % 2 == k % 2 and uniforms[e, r] < taken:
                rung[i], rung[j] = r + 1, r
        for i in rows:
            if rung[i] == 0:
                trips[i // num_rungs] += label[i] == 2
                label[i] = 1
            elif rung[i] == num_rungs - 1 and label[i] == 1:
                label[i] = 2
            x[i] = step(stream.at(k, rows[i][None]), x[i][None], betas[rung[i]])[0]
    return x, rung.reshape(num_ensembles, num_rungs), sums, trips


@pytest.mark.parametrize("by_rung", [False, True])
def test_the_engine_is_the_plain_loop(by_rung: bool):
    constants = np.array([0.3, -0.2, 0.8])
    x, rungs, sums, trips = plain_loop(PATH, BlockGibbs(), BETAS, constants, 2, 24, seed=5)
    stream, block = begun(PATH, 2, 4, 5)
    block = advanced(PATH, BlockGibbs(), stream, block, BETAS, constants, 0, 24, by_rung)
    np.testing.assert_array_equal(PATH.restore(block.x), x)
    np.testing.assert_array_equal(block.rungs, rungs)
    np.testing.assert_array_equal(block.trips, trips)
    np.testing.assert_allclose(
        np.float64(block.sums) + block.compensation, sums, rtol=1e-5, atol=1e-4
    )
    assert trips.sum() > 0


# --- invariance -------------------------------------------------------------------------------


class WrongSign(GeometricPath):
    """Work of the wrong sign: swaps are taken where they should be refused."""

    def log_ratio(self, x, beta0, beta1):
        return -super().log_ratio(x, beta0, beta1)


class StaleGibbs(BlockGibbs):
    """Moves at a beta that lags behind."""

    def step(self, bits, x, path, beta):
        return super().step(bits, x, path, 0.8 * beta)


class Stay(BlockGibbs):
    """No move, which leaves every law invariant, so that swaps are on their own."""

    def step(self, bits, x, path, beta):
        return x


def chi_square(path, kernel, seed: int) -> float:
    """Smallest p-value over rungs, after five sweeps from exact draws at every rung."""
    count, generator = 4000, np.random.default_rng(seed)
    stream, block = begun(path, count, 4, seed)
    draws = np.stack([generator.choice(16, count, p=law(beta)) for beta in BETAS], 1)
    x = STATES[draws.ravel()].astype(np.float32)
    block = eqx.tree_at(lambda b: b.x, block, path.store(x))
    block = advanced(path, kernel, stream, block, BETAS, np.zeros(3), 0, 5)
    index = (np.array(path.restore(block.x)) @ 2 ** np.arange(4)).astype(int).reshape(count, 4)
    at_rung = np.take_along_axis(index, np.array(block.replicas), 1)
    seen = [np.bincount(at_rung[:, r], minlength=16) for r in range(4)]
    return min(stats.chisquare(s, count * law(b)).pvalue for s, b in zip(seen, BETAS, strict=True))


def test_the_laws_at_the_rungs_are_invariant(seed: int):
    assert chi_square(PATH, BlockGibbs(), seed) > 1e-5
    assert chi_square(PATH, Stay(), seed) > 1e-5
    assert chi_square(WrongSign(BASE, MODEL), Stay(), seed) < 1e-9
    assert chi_square(PATH, StaleGibbs(), seed) < 1e-9


# --- ladder and rounds ------------------------------------------------------------------------


@given(st.integers(16, 10**7))
def test_rounds_double_and_are_all_of_it(num_sweeps: int):
    lengths = round_lengths(num_sweeps)
    assert sum(lengths) == num_sweeps
    assert len(lengths) >= 3
    assert min(lengths) >= 4
    for short, long in itertools.pairwise(lengths[1:]):
        assert abs(long - 2 * short) <= 2
    halves = halves_of(num_sweeps)
    assert [half.first for half in halves[1:]] == [half.stop for half in halves[:-1]]
    assert all(half.first < half.stop for half in halves)
    assert halves[-1].stop == num_sweeps


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(0, 2**31))
def test_new_rungs_rise_from_0_to_1(rejections: list[float], seed: int):
    inner = np.sort(np.random.default_rng(seed).uniform(0.001, 0.999, len(rejections) - 1))
    betas = np.concatenate(
        [[0.0], np.maximum.accumulate(inner + 2e-7 * np.arange(inner.size)), [1.0]]
    )
    new = equal_rejection(betas, np.array(rejections))
    assert new.shape == betas.shape
    assert (new[0], new[-1]) == (0, 1)
    assert (np.diff(new.astype(np.float32)) > 0).all()


def test_rungs_share_the_barrier_equally():
    """Lambda = beta^2, measured at rungs at equal distances, asks for rungs at square roots."""
    betas = np.linspace(0, 1, 33)
    new = equal_rejection(betas, np.diff(betas**2) * 5)
    np.testing.assert_allclose(new, np.sqrt(betas), atol=0.01)
    np.testing.assert_allclose(equal_rejection(betas, np.zeros(32)), betas, atol=1e-12)
    np.testing.assert_allclose(interpolated(betas, betas**2, new), betas, atol=0.02)


def test_rejections_become_equal():
    result = exchange(PATH, BlockGibbs(), num_rungs=5, num_ensembles=32, num_sweeps=512, seed=1)
    first, last = result.rounds[1].rejections, result.last.rejections
    assert np.ptp(last) < 0.25 * last.mean()
    assert result.rounds[0].betas[1] == 0.25
    assert np.ptp(first) > 0 or np.ptp(last) > 0
    for one in result.rounds[1:]:
        assert abs(one.barrier - result.barrier) < 0.2 * result.barrier


# --- verdicts ---------------------------------------------------------------------------------


def a_round(values, halves=None, trips=10) -> Round:
    values = np.asarray(values, float)
    halves = np.stack([values[::-1], values]) if halves is None else np.asarray(halves, float)
    betas = np.array([0.0, 0.5, 1.0])
    counts = np.full(values.size, trips)
    return Round(
        100, betas, np.array([0.2, 0.3]), np.array([1.0, 2.0]), 0.5, values, halves, counts
    )


def test_a_round_knows_its_numbers():
    one = a_round([1.0, 2.0, 3.0])
    assert one.log_z == 3.5
    assert one.barrier == 0.5
    assert one.std_err == pytest.approx(1 / np.sqrt(3))
    assert a_round([1.0]).std_err == np.inf


def test_verdicts():
    generator = np.random.default_rng(0)
    v, w, u = generator.normal(0, 1, (3, 32))
    good = a_round(v, [w, u])
    assert not judge_exchange((a_round(w), good))
    for rounds, kind in (
        ((a_round(w), a_round(v, [w, u], trips=0)), Kind.NO_ROUND_TRIPS),
        ((a_round(w), a_round(v, [w, u + 2])), Kind.UNEQUAL_HALVES),
        ((a_round(w - 2), good), Kind.UNEQUAL_ROUNDS),
        ((a_round(w), a_round(v, [w, w + 0.5 * u])), Kind.ENSEMBLES_REMEMBER),
    ):
        found = judge_exchange(rounds)
        assert list(found) == [kind]
        assert kind.is_fatal
        assert "more sweeps" in found[kind].in_words(in_python)
    few = judge_exchange((a_round(w), a_round(v, [w, u], trips=1)))
    assert list(few) == [Kind.FEW_ROUND_TRIPS]


def test_without_round_trips_nothing_is_trusted():
    """Two modes far from the base and too few rungs: no swap at the top is taken."""
    model = annealz.RBM(np.full((6, 40), 2.0), np.full(6, -40.0), np.full(40, -6.0))
    path = model.path(BernoulliBase.uniform(40))
    result = exchange(path, BlockGibbs(), num_rungs=3, num_ensembles=8, num_sweeps=64)
    assert result.round_trips == 0
    assert result.status is Status.UNRELIABLE
    assert Kind.NO_ROUND_TRIPS in result.findings
    assert np.isfinite(result.log_z)


def test_an_exact_log_z_that_is_missed_is_held_against_it():
    estimate = annealz.estimate_log_z(
        MODEL, base="visible-bias", **ASKED, exact_log_z=exact_log_z(MODEL) + 1
    )
    assert estimate.status is Status.UNRELIABLE
    assert Kind.CONTRADICTS_EXACT in estimate.findings


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_rungs": 1}, "num_rungs must be at least 2, got 1"),
        ({"num_ensembles": 4}, "num_ensembles must be at least 5, got 4"),
        ({"num_sweeps": 15}, "num_sweeps must be at least 16, got 15"),
        ({"num_sweeps": 2**31}, "num_sweeps must be at most"),
        ({"num_draws": -1}, "num_draws must be at least 0"),
        ({"num_draws": 10**6}, "num_draws must be at most 704, one per ensemble"),
        ({"chunk_sweeps": 0}, "chunk_sweeps must be at least 1"),
        ({"seed": -1}, "seed must be an integer"),
        ({"betas": [0.0, 0.5, 0.5, 1.0]}, "betas must be num_rungs = 4 numbers that rise"),
        ({"betas": [0.0, 1.0]}, "betas must be num_rungs = 4 numbers that rise"),
        ({"num_ensembles": 10**12}, "num_ensembles x num_rungs = .* GiB .*: take fewer ensembles"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change: dict, words: str):
    with pytest.raises(ValueError, match=words) as error:
        exchange(PATH, BlockGibbs(), **{**SMALL, **change})
    assert "\n" not in str(error.value)


def test_works_that_are_no_numbers_are_refused():
    model = annealz.LogDensity(lambda x: jnp.where(x[0] > 0, jnp.nan, -jnp.sum(x**2)), dim=1)
    path = model.path(annealz.GaussianBase.standard(1))
    with pytest.raises(ValueError, match="infinite or NaN by sweep"):
        exchange(path, annealz.RandomWalk(step_size=1.0), **SMALL)


def test_a_ladder_may_be_given():
    betas = check_ladder([0, 0.1, 0.3, 1], 4)
    result = exchange(PATH, BlockGibbs(), **SMALL, betas=betas)
    np.testing.assert_array_equal(result.rounds[0].betas, betas)
