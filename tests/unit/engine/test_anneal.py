"""The engine: the same bits however it is run, records where they were asked for."""

import equinox as eqx
import jax
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import Stream
from annealz.engine import blocks, run_program
from annealz.engine.anneal import anneal
from annealz.engine.progress import Progress
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear, sm08
from annealz.testing import (
    random_rbm,
)
from support.runs import OBSERVERS, assert_same_run, log_mean, small_run
from support.systems import marginals, true_code
from support.values import log_ratio

sample = eqx.filter_jit(lambda path, bits: path.sample(bits))


@marginals
@pytest.mark.parametrize("chunk_steps", [1, 7, 1000])
def test_chunks_change_no_bit(marginal: str, chunk_steps: int):
    """A step that ends a chunk runs in another branch of the program than one within it."""
    assert_same_run(small_run(marginal), small_run(marginal, chunk_steps=chunk_steps))


@marginals
def test_chunks_change_no_bit_of_wider_models(marginal: str):
    """Wide enough for vector units and tiled products."""
    path = GeometricPath(BernoulliBase.uniform(131), random_rbm(33, 131, 0.3, seed=4), marginal)
    runs = [
        anneal(path, BlockGibbs(), sm08(90), num_chains=50, seed=1, record_every=8, chunk_steps=c)
        for c in (None, 1, 13)
    ]
    assert_same_run(runs[0], runs[1])
    assert_same_run(runs[0], runs[2])


def test_more_steps_than_a_chunk_can_hold(monkeypatch: pytest.MonkeyPatch):
    """Chunks are cut by the capacity for steps or for records, whichever is smaller."""
    whole = small_run(schedule=linear(700), record_every=1)
    assert_same_run(whole, small_run(schedule=linear(700), record_every=1, chunk_steps=10**6))
    assert whole.trace.steps.tolist() == list(range(1, 701))
    monkeypatch.setattr(run_program, "CHUNK_CAPACITY", 64)
    assert_same_run(whole, small_run(schedule=linear(700), record_every=1, chunk_steps=10**6))


@pytest.mark.parametrize(
    ("num_steps", "every", "steps"),
    [(10, 4, [4, 8, 10]), (10, 5, [5, 10]), (10, 100, [10]), (3, 1, [1, 2, 3]), (1, 1, [1])],
)
@pytest.mark.parametrize("chunk_steps", [None, 1, 3])
def test_records_are_where_they_were_asked_for(num_steps, every, steps, chunk_steps):
    run = small_run(schedule=linear(num_steps), record_every=every, chunk_steps=chunk_steps)
    assert run.trace.steps.tolist() == steps
    np.testing.assert_allclose(run.trace.betas, np.array(steps) / num_steps, rtol=1e-6)
    for column in (run.trace.log_z, run.trace.ess, run.trace.means["slope"]):
        assert column.shape == (len(steps),)
    assert run.trace.means["sum"].shape == (len(steps), 5)


def test_records_by_default_are_about_a_thousand():
    run = small_run(schedule=linear(2500), record_every=None)
    assert run.trace.steps.tolist() == [*range(3, 2500, 3), 2500]


@marginals
def test_one_step_is_importance_sampling(marginal: str):
    path, _ = true_code(marginal)
    run = small_run(marginal, schedule=linear(1))
    x = sample(path, Stream(3, "anneal").at(0, np.arange(37)))
    np.testing.assert_allclose(run.log_weights, log_ratio(path, x, 0.0, 1.0), rtol=1e-5, atol=1e-6)
    assert run.trace.log_z[-1] == pytest.approx(log_mean(run), abs=1e-5)


@marginals
def test_one_chain(marginal: str):
    run = small_run(marginal, num_chains=1)
    assert run.log_weights.shape == (1,)
    np.testing.assert_allclose(run.trace.ess, 1)
    np.testing.assert_array_equal(run.trace.variances["slope"], 0)
    first = small_run(marginal)
    np.testing.assert_array_equal(run.states[0], first.states[0])
    assert run.log_weights[0] == pytest.approx(first.log_weights[0], abs=1e-5)


@marginals
@pytest.mark.parametrize("largest", [16, 10, 1])
def test_blocks_change_no_chain(marginal: str, largest: int, monkeypatch: pytest.MonkeyPatch):
    """37 chains in blocks of 13, 10 or 1: filled-up chains must not count, statistics must merge.

    The model's products are exact in float32, so that the size of a block rounds nothing.
    """
    whole = small_run(marginal)
    monkeypatch.setitem(blocks._MAX_BLOCK, jax.default_backend(), largest)
    starts, size = blocks.split_chains(37)
    assert len(starts) == -(-37 // largest)
    assert largest == 1 or len(starts) * size > 37  # the last block is filled up
    blocked = small_run(marginal)
    np.testing.assert_array_equal(blocked.states, whole.states)
    np.testing.assert_array_equal(blocked.carries["sum"]["sum"], whole.carries["sum"]["sum"])
    np.testing.assert_allclose(blocked.log_weights, whole.log_weights, atol=1e-5)
    np.testing.assert_allclose(blocked.trace.log_z, whole.trace.log_z, atol=1e-5)
    np.testing.assert_allclose(blocked.trace.ess, whole.trace.ess, rtol=1e-5)
    for name in OBSERVERS:
        for kind in ("means", "variances"):
            one, two = (getattr(run.trace, kind)[name] for run in (whole, blocked))
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5, err_msg=f"{kind} {name}")


@pytest.mark.parametrize(("num_chains", "expected"), [(1000, 500), (1023, 512), (50, 25), (31, 31)])
def test_a_cpu_takes_chains_in_two_halves(num_chains: int, expected: int):
    """Except few of them; elsewhere one block is better, and islands are never cut."""
    starts, size = blocks.split_chains(num_chains, is_halved=True)
    assert size == expected
    assert len(starts) * size >= num_chains
    assert blocks.split_chains(num_chains)[1] == num_chains
    assert blocks.split_chains(4000, is_halved=True) == blocks.split_chains(4000)
    assert blocks.split_chains(100, 100, is_halved=True) == ([0], 100)
    assert blocks.split_chains(150, 50, is_halved=True) == ([0, 100], 100)


def test_halves_are_not_for_other_platforms(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "platform", lambda: "gpu")
    assert blocks.split_chains(1000, is_halved=True) == ([0], 1000)


def test_traces_are_those_of_the_weights():
    """The last record against the log weights themselves, in float64."""
    run = small_run()
    weights = np.exp(run.log_weights - run.log_weights.max())
    assert run.trace.log_z[-1] == pytest.approx(log_mean(run), abs=1e-5)
    assert run.trace.ess[-1] == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-5)
    share = weights / weights.sum()
    mean = share @ run.carries["sum"]["sum"]
    np.testing.assert_allclose(run.trace.means["sum"][-1], mean, rtol=1e-5)
    variance = share @ (run.carries["sum"]["sum"] - mean) ** 2
    np.testing.assert_allclose(run.trace.variances["sum"][-1], variance, rtol=1e-4)


def test_a_run_is_a_function_of_seed_and_purpose():
    first = small_run()
    assert_same_run(first, small_run())
    for other in (small_run(seed=4), small_run(purpose="pilot")):
        assert not np.array_equal(first.log_weights, other.log_weights)
    assert (first.seed, first.purpose, first.sweeps) == (3, "anneal", 3700)


def test_recording_changes_no_weight():
    first = small_run()
    for options in ({"record_every": 50}, {"observers": {}}):
        other = small_run(**options)
        np.testing.assert_array_equal(first.log_weights, other.log_weights)
        np.testing.assert_array_equal(first.states, other.states)


def test_progress_ends_with_the_result():
    seen: list[Progress] = []
    run = small_run(chunk_steps=30, on_progress=seen.append)
    assert [progress.step for progress in seen] == [30, 60, 90, 100]
    assert {progress.num_steps for progress in seen} == {100}
    assert seen[-1].log_z == pytest.approx(log_mean(run), rel=1e-12)
    assert seen[-1].ess == pytest.approx(run.trace.ess[-1], rel=1e-4)


def replay(marginal: str, num_steps: int, num_chains: int, seed: int) -> list[np.ndarray]:
    """The states v_0 .. v_K of Algorithm 1, in plain Python, with the engine's bits."""
    path, kernel = true_code(marginal)
    step = jax.jit(lambda bits, x, beta: kernel.step(bits, x, path, beta))
    stream, chains = Stream(seed, "anneal"), np.arange(num_chains)
    states = [sample(path, stream.at(0, chains))]
    for k, beta in enumerate(linear(num_steps).betas.astype(np.float32)[1:], start=1):
        states.append(step(stream.at(k, chains), states[-1], beta))
    return [np.asarray(state) for state in states]


@marginals
def test_the_engine_is_algorithm_1(marginal: str):
    """A plain loop gives the same states, and the carried sum is that of v_0 .. v_{K-1}."""
    run = small_run(marginal)
    states = replay(marginal, 100, 37, seed=3)
    np.testing.assert_array_equal(run.states, states[-1])
    np.testing.assert_array_equal(run.carries["sum"]["sum"], np.sum(states[:-1], axis=0))
    np.testing.assert_array_equal(run.carries["sum"]["count"], 100)
    path, _ = true_code(marginal)
    betas = linear(100).betas.astype(np.float32)
    total = sum(log_ratio(path, states[k], betas[k], betas[k + 1]) for k in range(100))
    np.testing.assert_allclose(run.log_weights, total, atol=1e-5)
