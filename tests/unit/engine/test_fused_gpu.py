"""Fused steps on a GPU: against float64, against XLA's steps, and against exact log Z."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.engine.gpu import cuda
from annealz.engine.gpu.chunk import Chains, Span
from annealz.engine.gpu.large import LargeSteps
from annealz.engine.gpu.many import ManySteps
from annealz.engine.gpu.small import SmallSteps
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.formats.load import load_binary
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from annealz.testing import assert_within_mc_error, default_seed, random_rbm

pytestmark = pytest.mark.gpu
WORK = importlib.import_module("annealz.engine.run_program")
CASES = [
    ("small", "mnist-cd25-20"),
    ("large", "mnist-cd25-500"),
    ("many", "mnist-cd25-500"),
    ("large", "mnist-pcd-20"),
    ("many", "mnist-pcd-20"),
]
SHAPES = [  # random models, so that programs are compiled for other numbers of tiles
    ("small", "5x50"),
    ("small", "31x784"),
    ("small", "63x400"),
    ("large", "600x784"),
    ("large", "130x1000"),
    ("many", "800x784"),
    ("many", "130x1000"),
]
MODELS = ["mnist-cd25-20", "mnist-pcd-20", "mnist-cd1-20"]


def path_of(name: str) -> GeometricPath:
    is_random = name[0].isdigit()
    model = random_rbm(*map(int, name.split("x")), 0.05) if is_random else load_binary(name)[0]
    return GeometricPath(model.choose_base(), model)


KINDS = {"small": SmallSteps, "large": LargeSteps, "many": ManySteps}


def fuse(path: GeometricPath, kind: str):
    return KINDS[kind].of(path, jax.local_devices()[0].core_count)


def begin(path: GeometricPath, stream: Stream, count: int) -> Chains:
    indices, zeros = jnp.arange(count), jnp.zeros(count, jnp.float32)
    return Chains(indices, path.sample(stream.at(0, indices)), zeros, zeros)


def stepper(path: GeometricPath, kind: str, stream: Stream):
    fused, i = fuse(path, kind), jnp.int32

    @jax.jit
    def step(chains, k, betas):
        return fused(stream, chains, betas, Span(k - 1, k, i(1), i(10**6), 1))[0]

    return step


@pytest.mark.parametrize(("kind", "name"), [*CASES, *SHAPES])
def test_fewer_than_one_draw_in_a_million_differs_from_float64(kind, name, record_property):
    path, count, differ, total = path_of(name), 4096, 0, 0
    stream = Stream(default_seed(), "anneal")
    step, chains = stepper(path, kind, stream), begin(path, stream, count)
    dense = path.to_latent.dense()
    bias = [
        np.asarray(a, np.float64)
        for a in (path.latent_bias_change, path.latent_bias, path.state_bias)
    ]
    for k, beta in enumerate(np.linspace(0.1, 1, 10).astype(np.float32), 1):
        x = np.asarray(chains.x, np.float64)
        chains = step(chains, jnp.int32(k), jnp.array([beta - 0.1, beta], jnp.float32))
        bits = stream.at(k, chains.indices)
        h = ones(bits, bias[1] + beta * (x @ dense[:, :-1] + bias[0]), draw=0)
        v = ones(bits, bias[2] + beta * (dense[:, -1] + h @ dense[:, :-1].T), draw=1)
        differ += int((np.asarray(chains.x) != v).sum())
        total += v.size
    record_property("share", differ / total)
    print(f"{kind} {name}: {differ} of {total:,} draws differ from float64")
    assert differ < 1e-6 * total


def ones(bits, logits: np.ndarray, draw: int) -> np.ndarray:
    uniforms = np.asarray(bits.uniforms(logits.shape[1], draw), np.float64)
    return (uniforms * (1 + np.exp(-logits)) <= 1).astype(np.float64)


@pytest.mark.parametrize(("kind", "name"), CASES[:3])
def test_log_weights_of_its_own_trajectory_in_float64(kind, name):
    path, count, num_steps = path_of(name), 32, 10_000
    stream, betas = Stream(default_seed(), "anneal"), linear(num_steps).betas.astype(np.float32)
    step, chains = stepper(path, kind, stream), begin(path, stream, count)
    dense, change = path.to_latent.dense(), np.asarray(path.latent_bias_change, np.float64)
    bias, exact = np.asarray(path.latent_bias, np.float64), np.zeros(count)
    for k in range(1, num_steps + 1):
        low, high = betas[k - 1 : k + 1].astype(np.float64)
        product = np.asarray(chains.x, np.float64) @ dense
        fields = product[:, :-1] + change
        ratios = np.logaddexp(0, bias + high * fields) - np.logaddexp(0, bias + low * fields)
        exact += (high - low) * product[:, -1] + ratios.sum(1)
        chains = step(chains, jnp.int32(k), jnp.asarray(betas[k - 1 : k + 1]))
    found = np.asarray(chains.log_weights, np.float64) + np.asarray(chains.compensation, np.float64)
    print(f"{kind} {name}: log w within {np.abs(found - exact).max():.1e} after {num_steps} steps")
    assert np.abs(found - exact).max() < 1e-5


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_run_is_that_of_plain_steps(kind, name, monkeypatch: pytest.MonkeyPatch):
    path, options = path_of(name), {"num_chains": 500, "seed": default_seed(), "record_every": 7}
    monkeypatch.setattr(WORK, "choose_fused", lambda *_: None)
    plain = anneal(path, BlockGibbs(), linear(100), **options)
    monkeypatch.setattr(WORK, "choose_fused", lambda path, *_: fuse(path, kind))
    whole, pieces = (
        anneal(path, BlockGibbs(), linear(100), **options, chunk_steps=c) for c in (100, 13)
    )
    same = (whole.states == plain.states).all(1)
    assert same.mean() > 0.98  # a draw in a million is rounded the other way
    assert np.median(np.abs(whole.log_weights - plain.log_weights)) < 1e-4
    assert whole.trace.means["slope"] == pytest.approx(plain.trace.means["slope"], rel=0.02)
    assert np.array_equal(whole.log_weights, pieces.log_weights)
    assert np.array_equal(whole.states, pieces.states)


@pytest.mark.parametrize(
    ("kind", "name", "count"),
    [*((*case, 1000) for case in CASES), *((*CASES[1], count) for count in (500, 1024, 4000))],
)
def test_every_time_the_same_bits(kind, name, count):
    """Programs that wait for each other may take their steps in any order, and nothing comes of it."""
    path, stream, i = path_of(name), Stream(default_seed(), "anneal"), jnp.int32
    fused, chains = fuse(path, kind), begin(path, stream, count)
    betas = jnp.linspace(0, 1, 14, dtype=jnp.float32)

    @jax.jit
    def run(chains, stop):
        after, _ = fused(stream, chains, betas, Span(i(0), stop, i(7), i(10**6), 16))
        return after.x.astype(jnp.int8), after.log_weights

    for stop in (1, 2, 13):
        first, *others = ([np.asarray(a) for a in run(chains, i(stop))] for _ in range(50))
        for other in others:
            assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_twenty_seeds_against_exact_log_z(kind, name, monkeypatch: pytest.MonkeyPatch):
    model, meta = load_binary(name)
    path = GeometricPath(model.choose_base(), model)
    monkeypatch.setattr(WORK, "choose_fused", lambda path, *_: fuse(path, kind))
    ratios = []
    for seed in range(20):
        run = anneal(path, BlockGibbs(), linear(10_000), num_chains=1000, seed=seed)
        log_weights = run.log_weights + run.log_z0 - meta["exact_log_z"]
        ratios.append(np.exp(log_weights).mean())
    std_err = np.std(ratios, ddof=1) / np.sqrt(20)
    print(f"{kind} {name}: Z-hat / Z = {np.mean(ratios):.4f} ± {std_err:.4f} over 20 seeds")
    assert_within_mc_error(np.mean(ratios), 1.0, std_err, alpha=1e-3, num_replicates=20)


def test_what_the_compiler_made_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """By the next process, which compiles nothing."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    cuda._compiled.cache_clear()
    made = cuda._compiled(cuda._PROBE, (("SIZE", 3),))
    cuda._compiled.cache_clear()
    monkeypatch.setattr(cuda, "_made", lambda *_: pytest.fail("compiled again"))
    assert cuda._compiled(cuda._PROBE, (("SIZE", 3),)) == made
    assert ".entry probe" in made
