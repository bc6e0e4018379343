"""Annealed SMC: unbiased over islands, which are independent, and the same bits however it is run."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from annealz.core.random import Stream
from annealz.engine import advance, blocks, run_program
from annealz.engine.anneal import anneal
from annealz.engine.observers import Slope
from annealz.engine.progress import Progress
from annealz.engine.resampling import RESAMPLING_DRAW, Resampling, ancestors, island_size
from annealz.engine.run import Run
from annealz.schedules.rules import linear
from annealz.testing import assert_within_mc_error
from support.runs import OBSERVERS, assert_same_run, interrupt_at
from support.structure import num_products
from support.systems import LOG_RATIO_OF_Z, SCHEDULE, marginals, true_code

# --- ancestors --------------------------------------------------------------------------------

WEIGHTS = np.array([[0.0, 1.0, 0.25, 0.0, 0.5, 0.75, 0.0]], np.float32)


compiled_ancestors = jax.jit(ancestors)


def copies(weights: np.ndarray, uniform: float) -> np.ndarray:
    """How often each chain of one island is copied."""
    chosen = np.asarray(compiled_ancestors(weights, np.full((1, 1), uniform, np.float32)))[0]
    assert (np.diff(chosen) >= 0).all()
    return np.bincount(chosen, minlength=weights.shape[1])


@pytest.mark.parametrize("uniform", [0.0, 1e-9, 0.3, 0.7, 1 - 2**-24, 1.0])
def test_copies_are_the_share_rounded_down_or_up(uniform: float):
    """And a chain without weight has none, even where the uniform was rounded up to 1."""
    share = 7 * WEIGHTS[0] / WEIGHTS.sum()
    count = copies(WEIGHTS, uniform)
    assert count.sum() == 7
    assert (count >= np.floor(share)).all()
    assert (count <= np.ceil(share)).all()


def test_copies_are_the_share_on_average():
    uniforms = (np.arange(1000) + 0.5) / 1000
    mean = np.mean([copies(WEIGHTS, u) for u in uniforms], axis=0)
    np.testing.assert_allclose(mean, 7 * WEIGHTS[0] / WEIGHTS.sum(), atol=2e-3)


def test_equal_weights_change_nothing():
    for uniform in (1e-5, 0.5, 1 - 1e-5):
        assert (copies(np.ones((1, 50), np.float32), uniform) == 1).all()


# --- one step ---------------------------------------------------------------------------------


@eqx.filter_jit
def resample(resampling: Resampling, bits, log_weights, compensation, held):
    return resampling(bits, log_weights, compensation, held)


def resampled(threshold: float, log_weights: np.ndarray, compensation: np.ndarray | None = None):
    """Islands of five, of chains that hold their own number."""
    size = log_weights.size
    bits = Stream(1, "anneal").at(4, np.arange(0, size, 5))
    rest = np.zeros(size) if compensation is None else compensation
    pair = np.float32(log_weights), np.float32(rest)
    out = resample(Resampling(threshold, 5), bits, *pair, {"held": np.arange(size)})
    return [np.asarray(leaf) for leaf in (out[0], out[1], out[2]["held"], out[3])]


def log_means(log_weights, compensation=0.0) -> np.ndarray:
    total = np.float64(log_weights) + np.float64(compensation)
    return logsumexp(total.reshape(-1, 5), axis=1) - np.log(5)


def test_the_mean_weight_is_kept():
    """To the digits of a float32 weight, however large its logarithm."""
    generator = np.random.default_rng(2)
    log_weights = np.float32(700 + generator.normal(0, 1, 50))
    rest = np.float32(generator.normal(0, 1e-5, 50))
    total, compensation, held, which = resampled(1.0, log_weights, rest)
    assert which.all()
    before, after = log_means(log_weights, rest), log_means(total, compensation)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-6)
    for island in total.reshape(-1, 5), compensation.reshape(-1, 5):
        assert (island == island[:, :1]).all()
    assert (held // 5 == np.arange(50) // 5).all()  # no chain comes from another island


def test_only_islands_below_the_threshold_are_resampled():
    log_weights = np.zeros((3, 5))
    log_weights[1, 2] = 3.0
    total, _, held, which = resampled(0.5, log_weights.reshape(-1))
    assert which.tolist() == [False, True, False]
    np.testing.assert_array_equal(
        np.delete(held, slice(5, 10)), np.delete(np.arange(15), slice(5, 10))
    )
    np.testing.assert_array_equal(np.delete(total, slice(5, 10)), 0)
    assert (held[5:10] == 7).sum() >= 4


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9, 1.0])
def test_the_threshold_is_a_share_of_the_island(threshold: float):
    log_weights = np.random.default_rng(3).normal(0, 1, 500)
    weights = np.exp(log_weights.reshape(-1, 5))
    ess = weights.sum(1) ** 2 / (weights**2).sum(1)
    which = resampled(threshold, log_weights)[3]
    np.testing.assert_array_equal(which, ess < threshold * 5)


def test_islands_do_not_see_each_other():
    generator = np.random.default_rng(4)
    one = generator.normal(0, 1, 50)
    other = np.concatenate([generator.normal(50, 2, 25), one[25:]])
    for a, b in zip(resampled(0.9, one), resampled(0.9, other), strict=True):
        np.testing.assert_array_equal(a[len(a) // 2 :], b[len(b) // 2 :])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_stay_in_sight(wrong: float):
    log_weights = np.random.default_rng(5).normal(0, 1, 10)
    log_weights[3] = wrong
    total, _, held, which = resampled(1.0, log_weights)
    assert which.tolist() == [False, True]
    np.testing.assert_array_equal(total[:5], np.float32(log_weights[:5]))
    np.testing.assert_array_equal(held[:5], np.arange(5))


# --- the engine -------------------------------------------------------------------------------


def relative_means(marginal: str, resample: float, seed: int) -> np.ndarray:
    """Mean of w Z_A / Z_B over each of 2,000 islands, which is to be 1."""
    path, kernel = true_code(marginal)
    run = anneal(path, kernel, SCHEDULE, num_chains=100_000, seed=seed, observers={},
                 resample=resample)  # fmt: skip
    assert run.island_size == 50
    assert run.num_resamplings > 1000
    return np.exp(run.island_log_means - LOG_RATIO_OF_Z)


@pytest.mark.usefixtures("optimised")
@marginals
@pytest.mark.parametrize("resample", [0.9, 1.0])
def test_islands_are_unbiased(marginal: str, resample: float, seed: int):
    means = relative_means(marginal, resample, seed)
    assert_within_mc_error(means.mean(), 1.0, means.std(ddof=1) / np.sqrt(means.size))


class Renormalising(Resampling):
    """Mutant: gives every chain of a resampled island the mean of the logarithms."""

    def __call__(self, bits, log_weights, compensation, held):
        total, rest, held, which = super().__call__(bits, log_weights, compensation, held)
        geometric = log_weights.reshape(-1, self.island_size).mean(1)
        each = (jnp.repeat(a, self.island_size) for a in (which, geometric))
        is_due, mean = each
        return jnp.where(is_due, mean, total), jnp.where(is_due, 0, rest), held, which


class Detached(Resampling):
    """Mutant: sets the weights and copies nothing."""

    def __call__(self, bits, log_weights, compensation, held):
        total, rest, _, which = super().__call__(bits, log_weights, compensation, held)
        return total, rest, held, which


@pytest.mark.parametrize("mutant", [Renormalising, Detached])
def test_mutants_are_biased(mutant: type, seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_program, "Resampling", mutant)
    means = relative_means("visible", 1.0, seed)
    assert abs(means.mean() - 1) > 8 * means.std(ddof=1) / np.sqrt(means.size)


def small_run(marginal: str = "visible", **options) -> Run:
    settings = {"num_chains": 200, "seed": 3, "record_every": 3, "observers": OBSERVERS}
    path, kernel = true_code(marginal)
    return anneal(path, kernel, linear(60), **{**settings, "resample": 0.98, **options})


@marginals
def test_the_engine_is_a_plain_loop(marginal: str):
    """Weigh, choose ancestors, move, copy: states, weights and carries of a loop on the host."""
    run = small_run(marginal)
    path, kernel = true_code(marginal)
    step = jax.jit(lambda bits, x, beta: kernel.step(bits, x, path, beta))
    log_ratio = jax.jit(lambda x, beta0, beta1: path.log_ratio(x, beta0, beta1))
    uniform = jax.jit(lambda bits: bits.uniforms(1, RESAMPLING_DRAW))
    betas = linear(60).betas.astype(np.float32)
    stream, chains, heads = Stream(3, "anneal"), np.arange(200), np.arange(0, 200, 10)
    x = np.asarray(jax.jit(lambda bits: path.sample(bits))(stream.at(0, chains)))
    log_weights, total, count = np.zeros(200), np.zeros(x.shape), 0
    for k in range(1, 61):
        log_weights += np.float64(log_ratio(x, betas[k - 1], betas[k]))
        total += x
        x = np.asarray(step(stream.at(k, chains), x, betas[k]))
        uniforms = np.float64(uniform(stream.at(k, heads)))[:, 0]
        rows = np.arange(200)
        for i, head in enumerate(range(0, 200, 10)):
            island = slice(head, head + 10)
            weights = np.exp(log_weights[island] - log_weights[island].max())
            if weights.sum() ** 2 / (weights**2).sum() < 9.8:
                edges = np.cumsum(weights) / weights.sum() * 10
                rows[island] = head + np.searchsorted(edges, np.arange(10) + uniforms[i], "right")
                log_weights[island] = logsumexp(log_weights[island]) - np.log(10)
                count += 1
        x, total = x[rows], total[rows]
    assert run.num_resamplings == count > 10
    np.testing.assert_array_equal(run.states, x)
    np.testing.assert_array_equal(run.carries["sum"]["sum"], total)
    np.testing.assert_allclose(run.log_weights, log_weights, atol=1e-5)


def assert_same_islands(one: Run, two: Run) -> None:
    assert_same_run(one, two)
    assert one.island_size == two.island_size
    assert one.num_resamplings == two.num_resamplings


@marginals
@pytest.mark.parametrize("resample", [0.98, 1.0])
def test_chunks_change_no_bit(marginal: str, resample: float):
    whole = small_run(marginal, resample=resample)
    for chunk_steps in (1, 7, 1000):
        other = small_run(marginal, resample=resample, chunk_steps=chunk_steps)
        assert_same_islands(whole, other)


def test_a_resumed_run_ends_in_the_same_bits(tmp_path: Path):
    whole = small_run()
    on_progress = interrupt_at(5, 26, 40)
    for chunk_steps in (2, 7, 4):
        with pytest.raises(KeyboardInterrupt):
            small_run(checkpoint=tmp_path / "c", chunk_steps=chunk_steps, on_progress=on_progress)
    assert_same_islands(whole, small_run(checkpoint=tmp_path / "c"))


def test_a_threshold_of_one_resamples_at_every_step():
    run = small_run(resample=1.0)
    assert run.num_resamplings == 60 * 20
    islands = run.log_weights.reshape(20, 10)
    assert (islands == islands[:, :1]).all()
    np.testing.assert_allclose(run.island_log_means, islands[:, 0], rtol=1e-12)


def test_a_threshold_that_is_never_met_changes_no_bit():
    run = small_run(resample=1e-6)
    assert run.num_resamplings == 0
    plain = small_run(resample=None)
    assert_same_run(run, plain)
    assert plain.island_size is None
    np.testing.assert_array_equal(plain.island_log_means, plain.log_weights)


def test_islands_do_not_depend_on_their_block(monkeypatch: pytest.MonkeyPatch):
    """1,150 chains in two blocks, the last island filling, or 23; they are the first of 1,200.

    The model's products are exact in float32, so that the size of a block rounds nothing.
    """
    two, more = small_run(num_chains=1150), small_run(num_chains=1200)
    assert blocks.split_chains(1150, 50) == blocks.split_chains(1200, 50) == ([0, 600], 600)
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), 70)
    assert blocks.split_chains(1150, 50) == ([50 * i for i in range(23)], 50)
    alone = small_run(num_chains=1150)
    np.testing.assert_array_equal(two.states, more.states[:1150])
    np.testing.assert_array_equal(two.states, alone.states)
    np.testing.assert_array_equal(two.carries["sum"]["sum"], alone.carries["sum"]["sum"])
    np.testing.assert_allclose(two.log_weights, more.log_weights[:1150], atol=1e-5)
    np.testing.assert_allclose(two.log_weights, alone.log_weights, atol=1e-5)
    np.testing.assert_allclose(two.trace.log_z, alone.trace.log_z, atol=1e-5)
    assert more.num_resamplings > two.num_resamplings == alone.num_resamplings > 0


def test_the_trace_is_that_of_the_mean_weight():
    """The record before resampling and the weights after it have one mean, at every step."""
    seen: list[Progress] = []
    run = small_run(resample=1.0, record_every=1, chunk_steps=1, on_progress=seen.append)
    np.testing.assert_allclose(run.trace.log_z, [p.log_z for p in seen], atol=1e-5)
    last = run.log_z0 + logsumexp(run.island_log_means) - np.log(20)
    assert run.trace.log_z[-1] == pytest.approx(last, abs=1e-5)


def test_resampling_costs_no_product():
    """One plain branch and one recorded branch: four in the whole program."""
    path, kernel = true_code("visible")
    stream, observers = Stream(0, "structure"), {"slope": Slope()}
    block = advance.start(path, observers, stream, jnp.int32(0), 40, 2)
    numbers = (jnp.int32(i) for i in (0, 4, 2, 4))
    betas = advance.window(np.linspace(0, 1, 5, dtype=np.float32), 0)
    chunk = advance.Chunk(jnp.int32(0), jnp.int32(40), betas, *numbers)
    lowered = advance.advance.lower(
        path, kernel, observers, stream, block, chunk, False, Resampling(0.5, 2)
    )
    assert num_products(lowered.compile().compiled.as_text()) == 4


def test_resampling_mends_a_short_schedule(seed: int):
    """The islands' means vary less than means of as many chains without it."""
    path, kernel = true_code("visible")
    runs = [
        anneal(path, kernel, linear(6), num_chains=20_000, seed=seed, observers={}, resample=r)
        for r in (0.5, 1e-6)
    ]
    spread = [np.exp(run.island_log_means - LOG_RATIO_OF_Z).std() for run in runs]
    assert spread[0] < spread[1]


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_chains", "size"), [(20, 1), (40, 2), (980, 49), (1000, 50), (1050, 50), (100_000, 50)]
)
def test_island_sizes(num_chains: int, size: int):
    assert island_size(num_chains) == size


@pytest.mark.parametrize(
    ("num_chains", "remedy"),
    [(1, "take 20"), (30, "take 20 or 40"), (990, "take 980 or 1000"), (1020, "take 1000 or 1050")],
)
def test_other_numbers_of_chains_are_refused(num_chains: int, remedy: str):
    with pytest.raises(ValueError, match=rf"num_chains must be .*got {num_chains}: {remedy}\."):
        small_run(num_chains=num_chains)


@pytest.mark.parametrize("wrong", [0, -0.5, 1.5, np.nan, np.inf])
def test_other_thresholds_are_refused(wrong: float):
    with pytest.raises(ValueError, match=f"resample must lie above 0 and at most at 1.*{wrong}"):
        small_run(resample=wrong)


def test_reverse_is_refused():
    path, kernel = true_code("visible")
    with pytest.raises(ValueError, match="resample must be None where reverse=True, got 0.5"):
        anneal(path, kernel, linear(3), num_chains=20, start=np.zeros((20, 5)), reverse=True,
               resample=0.5)  # fmt: skip


@pytest.mark.parametrize("other", [None, 0.8])
def test_a_checkpoint_of_another_threshold_is_refused(tmp_path: Path, other: float | None):
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=tmp_path / "c", chunk_steps=7, on_progress=interrupt_at(20))
    with pytest.raises(ValueError, match="belongs to another run"):
        small_run(checkpoint=tmp_path / "c", resample=other)
