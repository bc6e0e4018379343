"""Fused steps with a block per chain on a GPU: against float64, XLA's steps, and exact log Z."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.engine.gpu import choose_fused
from annealz.engine.gpu.chunk import Chains, Span
from annealz.engine.observers import Slope
from annealz.models.ising_lattice import SquareIsing
from annealz.models.potts import Potts
from annealz.schedules.rules import linear
from annealz.testing import assert_within_mc_error, default_seed
from support.chain_reference import Reference
from support.chain_systems import SYSTEMS, sparse_tables, system

pytestmark = pytest.mark.gpu
WORK = importlib.import_module("annealz.engine.run_program")


def _whole(model):
    return model.path(model.flat_base()), model.kernel()


LARGER = {
    "lattice 32x32": lambda: _whole(SquareIsing(32, coupling=0.3)),
    "lattice 64x48": lambda: _whole(SquareIsing((64, 48), coupling=(0.4, 0.2), field=-0.05)),
    "potts 32x32": lambda: _whole(Potts.square(32, 3, 0.5)),
    "64 units of 21, all coupled": lambda: _whole(sparse_tables(64, 21, 64, 0.02)),
    "90 units of 21, 12 neighbours": lambda: _whole(sparse_tables(90, 21, 6, 0.1)),
}


def path_of(name: str):
    return LARGER[name]() if name in LARGER else system(name)


def fuse(path, kernel):
    steps = choose_fused(path, kernel, {"slope": Slope()}, None, 1000)
    assert steps is not None
    return steps


def begin(path, stream: Stream, count: int) -> Chains:
    indices, zeros = jnp.arange(count), jnp.zeros(count, jnp.float32)
    return Chains(
        indices, jax.jit(lambda bits: path.sample(bits))(stream.at(0, indices)), zeros, zeros
    )


def stepper(path, kernel, stream: Stream):
    fused, i = fuse(path, kernel), jnp.int32

    @jax.jit
    def step(chains, k, betas):
        after, records = fused(stream, chains, betas, Span(k - 1, k, i(1), i(10**6), 1))
        return after, records[2][0]

    return step


@pytest.mark.parametrize("name", [*SYSTEMS, *LARGER])
def test_draws_and_weights_are_those_of_float64(name):
    """Each step from the states that the one before gave: draws, the increment, and the slope."""
    path, kernel = path_of(name)
    stream, count, differ, total = Stream(default_seed(), "anneal"), 512, 0, 0
    step, chains = stepper(path, kernel, stream), begin(path, stream, count)
    reference, worst = Reference.of(path, kernel), 0.0
    for k, beta in enumerate(np.linspace(0.1, 1, 10).astype(np.float32), 1):
        betas = np.array([beta - 0.1, beta], np.float32)
        before = np.asarray(chains.log_weights, np.float64)
        wanted, increment, slope = reference.step(stream.at(k, chains.indices), chains.x, betas)
        chains, found = step(chains, jnp.int32(k), jnp.asarray(betas))
        differ += int((np.asarray(chains.x) != wanted).sum())
        total += wanted.size
        worst = max(worst, np.abs(np.asarray(chains.log_weights) - before - increment).max())
        assert np.asarray(found) == pytest.approx(slope, rel=2e-5, abs=1e-3)
    print(f"{name}: {differ} of {total:,} draws differ from float64, increments within {worst:.1e}")
    assert differ <= max(2e-6 * total, 1)
    assert worst < 1e-3  # float32 near some hundreds, of a tenth of the whole way in one step


@pytest.mark.parametrize("name", LARGER)
def test_log_weights_of_its_own_trajectory_in_float64(name):
    path, kernel = path_of(name)
    count, num_steps = 16, 1000
    stream, betas = Stream(default_seed(), "anneal"), linear(num_steps).betas.astype(np.float32)
    step, chains = stepper(path, kernel, stream), begin(path, stream, count)
    reference, exact = Reference.of(path, kernel), np.zeros(count)
    for k in range(1, num_steps + 1):
        pair = betas[k - 1 : k + 1]
        exact += reference.increment(np.asarray(chains.x), pair)
        chains, _ = step(chains, jnp.int32(k), jnp.asarray(pair))
    found = np.asarray(chains.log_weights, np.float64) + np.asarray(chains.compensation, np.float64)
    print(f"{name}: log w within {np.abs(found - exact).max():.1e} after {num_steps} steps")
    assert np.abs(found - exact).max() < 1e-4


@pytest.mark.parametrize("name", [*SYSTEMS, *LARGER])
def test_the_run_is_that_of_plain_steps(name, monkeypatch: pytest.MonkeyPatch):
    path, kernel = path_of(name)
    options = {"num_chains": 300, "seed": default_seed(), "record_every": 7}
    monkeypatch.setattr(WORK, "choose_fused", lambda *_: None)
    plain = anneal(path, kernel, linear(40), **options)
    monkeypatch.setattr(WORK, "choose_fused", choose_fused)
    whole, pieces = (anneal(path, kernel, linear(40), **options, chunk_steps=c) for c in (40, 13))
    assert (whole.states == plain.states).all(1).mean() > 0.95
    assert np.median(np.abs(whole.log_weights - plain.log_weights)) < 1e-3
    assert whole.trace.means["slope"] == pytest.approx(plain.trace.means["slope"], rel=0.02)
    assert np.array_equal(whole.log_weights, pieces.log_weights)
    assert np.array_equal(whole.states, pieces.states)


@pytest.mark.parametrize("name", LARGER)
def test_every_time_the_same_bits(name):
    path, kernel = path_of(name)
    first = anneal(path, kernel, linear(300), num_chains=1000, seed=1)
    for _ in range(10):
        again = anneal(path, kernel, linear(300), num_chains=1000, seed=1)
        assert np.array_equal(again.log_weights, first.log_weights)
        assert np.array_equal(again.states, first.states)


@pytest.mark.parametrize(
    "model",
    [
        SquareIsing(16, coupling=0.3),
        SquareIsing((8, 6), coupling=(0.4, -0.2), field=0.1),
        Potts(np.roll(np.eye(64), 1, 0) + np.roll(np.eye(64), -1, 0), 4),
        sparse_tables(8, 4, 8, 0.3),
        sparse_tables(40, 5, 1, 0.5),
    ],
    ids=["ising 16x16", "ising 8x6", "potts ring", "all coupled", "on a line"],
)
def test_twenty_seeds_agree_with_exact_log_z(model):
    exact = annealz.exact_log_z(model)
    path, kernel = _whole(model)
    fuse(path, kernel)
    ratios = []
    for seed in range(20):
        run = anneal(path, kernel, linear(500), num_chains=1000, seed=seed)
        ratios.append(np.exp(run.log_z0 + run.log_weights - exact).mean())
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    print(f"{model.name}: Z-hat / Z = {np.mean(ratios):.4f} ± {error:.4f} over 20 seeds")
    assert_within_mc_error(np.mean(ratios), 1.0, error)
