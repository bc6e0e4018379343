"""Fused steps, with their programs emulated: the same numbers as the engine's own steps.

On a GPU the programs themselves are checked by test_fused_gpu.py.
"""

import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.products import BinaryProduct
from annealz.core.random import Stream
from annealz.engine.anneal import anneal
from annealz.engine.blocks import check_start
from annealz.engine.gpu import choose_fused, cuda
from annealz.engine.gpu.chunk import Chains, Span, largest_field
from annealz.engine.gpu.integers import signed_bytes
from annealz.engine.gpu.large import LargeSteps
from annealz.engine.gpu.many import ManySteps
from annealz.engine.gpu.small import SmallSteps
from annealz.engine.observers import Expectation, Slope
from annealz.engine.resampling import Resampling
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear
from annealz.testing import GaussianPath, PerfectKernel, default_seed, random_rbm
from support import emulate_cuda
from support.gpu_arithmetic import NARROW, softplus_difference

WORK = importlib.import_module("annealz.engine.run_program")


def path_of(num_hidden: int, num_visible: int, scale=0.3, marginal="visible") -> GeometricPath:
    base = BernoulliBase.from_logits(np.linspace(-1, 1, num_visible))
    return GeometricPath(base, random_rbm(num_hidden, num_visible, scale), marginal)


KINDS = {"small": SmallSteps, "large": LargeSteps, "many": ManySteps}


def fuse(path: GeometricPath, kind: str):
    return KINDS[kind].of(path, 64)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cuda, "call", emulate_cuda.call)


@eqx.filter_jit
def run_fused(fused, stream, chains: Chains, betas, span: Span):
    return fused(stream, chains, betas, span)


@eqx.filter_jit
def sample(path: GeometricPath, bits):
    return path.sample(bits)


SHAPES = [
    ("small", (7, 50), "visible"),
    ("small", (7, 50), "hidden"),
    ("large", (40, 70), "visible"),
    ("large", (70, 40), "hidden"),
    ("many", (40, 70), "visible"),
    ("many", (70, 40), "hidden"),
]


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(("kind", "shape", "marginal"), SHAPES)
def test_steps_agree_with_the_engine(kind, shape, marginal, monkeypatch: pytest.MonkeyPatch):
    """States are equal, log weights and records up to rounding; chunks change no bit."""
    path = path_of(*shape, scale=0.3 if kind == "small" else 0.15, marginal=marginal)
    options = {"num_chains": 21, "seed": default_seed(), "record_every": 3}
    plain = anneal(path, BlockGibbs(), linear(10), **options)
    monkeypatch.setattr(WORK, "choose_fused", lambda path, *_: fuse(path, kind))
    fused, pieces = (
        anneal(path, BlockGibbs(), linear(10), **options, chunk_steps=c) for c in (10, 4)
    )
    assert np.array_equal(fused.states, plain.states)
    assert fused.log_weights == pytest.approx(plain.log_weights, abs=2e-4)
    assert fused.trace.steps.tolist() == plain.trace.steps.tolist()
    assert fused.trace.ess == pytest.approx(plain.trace.ess, rel=1e-3)
    for kind_of in ("means", "variances"):
        one, other = (getattr(run.trace, kind_of)["slope"] for run in (fused, plain))
        assert one == pytest.approx(other, rel=1e-3)
    assert np.array_equal(pieces.log_weights, fused.log_weights)
    assert np.array_equal(pieces.states, fused.states)
    assert np.array_equal(pieces.trace.means["slope"], fused.trace.means["slope"])


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("kind", KINDS)
def test_reverse_agrees_with_the_engine(kind, monkeypatch: pytest.MonkeyPatch):
    path = path_of(20, 70)
    draws = np.random.default_rng(default_seed()).integers(0, 2, (12, 70)).astype(np.float32)
    start = check_start(path, draws, 12)
    options = {"num_chains": 12, "purpose": "reverse", "start": start, "reverse": True}
    plain = anneal(path, BlockGibbs(), linear(8), **options)
    monkeypatch.setattr(WORK, "choose_fused", lambda path, *_: fuse(path, kind))
    fused = anneal(path, BlockGibbs(), linear(8), **options)
    assert np.array_equal(fused.states, plain.states)
    assert fused.log_weights == pytest.approx(plain.log_weights, abs=2e-4)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("kind", KINDS)
def test_no_chain_depends_on_its_neighbours(kind):
    """Any chains may be run together: every bit of each stays the same."""
    path, stream, i = path_of(20, 70), Stream(default_seed(), "anneal"), jnp.int32
    span = Span(i(0), i(6), i(2), i(6), 4)
    betas = np.linspace(0, 1, 7, dtype=np.float32)

    def run(indices):
        zeros = np.zeros(len(indices), np.float32)
        chains = Chains(indices, sample(path, stream.at(0, indices)), zeros, zeros)
        after, records = run_fused(fuse(path, kind), stream, chains, betas, span)
        return [np.asarray(a) for a in (after.x, after.log_weights, np.asarray(records[2]).T)]

    whole, some = run(np.arange(19)), run(np.array([17, 3, 11]))
    for all_of_them, few in zip(whole, some, strict=True):
        assert np.array_equal(all_of_them[np.array([17, 3, 11])], few)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_exact_arithmetic(kind):
    """One step from given states: the bits of a float64 step, all but one in a million."""
    path = path_of(24, 90, 0.5)
    stream, i, beta, count = Stream(default_seed(), "anneal"), jnp.int32, np.float32(0.7), 3000
    chains = np.arange(count)
    x = sample(path, stream.at(0, chains))
    zeros = np.zeros(count, np.float32)
    betas, span = np.array([0.69, beta], np.float32), Span(i(0), i(1), i(1), i(1), 1)
    after, _ = run_fused(fuse(path, kind), stream, Chains(chains, x, zeros, zeros), betas, span)
    bits = stream.at(1, chains)
    dense = path.to_latent.dense()
    fields = np.asarray(x, np.float64) @ dense[:, :-1] + np.asarray(path.latent_bias_change)
    h = ones(bits, np.asarray(path.latent_bias) + beta * fields, draw=0)
    logits = np.asarray(path.state_bias) + beta * (dense[:, -1] + h @ dense[:, :-1].T)
    differ = np.asarray(after.x) != ones(bits, logits, draw=1)
    assert differ.sum() <= 1


def ones(bits, logits: np.ndarray, draw: int) -> np.ndarray:
    uniforms = np.asarray(bits.uniforms(logits.shape[1], draw), np.float64)
    return (uniforms * (1 + np.exp(-logits)) <= 1).astype(np.float64)


def test_a_device_that_refuses_them_is_told_of(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise RuntimeError("no such instruction\nand more")

    refuse.first_steps = 8

    monkeypatch.setattr(WORK, "choose_fused", lambda *_: refuse)
    words = r"do not run on this device \(no such instruction\): set ANNEALZ_FUSED=0"
    with pytest.raises(ValueError, match=words):
        anneal(path_of(3, 5), BlockGibbs(), linear(3), num_chains=4)


difference = jax.jit(lambda low, step, is_narrow: softplus_difference(low, step, is_narrow))


@pytest.mark.parametrize("width", [1e-5, 0.01, 0.2, 3.0, 40.0])
def test_difference_of_softplus(width):
    generator = np.random.default_rng(default_seed())
    low = generator.normal(0, 12, 20_000).astype(np.float32)
    step = generator.uniform(-width, width, low.size).astype(np.float32)
    low64, step64 = low.astype(np.float64), step.astype(np.float64)
    exact = np.logaddexp(0, low64 + step64) - np.logaddexp(0, low64)
    found = difference(low, step, np.asarray(width < NARROW))
    assert np.abs(np.asarray(found, np.float64) - exact).max() < 4e-7 * max(width, 1e-4)


def test_beyond_float32_is_never_a_plausible_number():
    low, step = np.float32([-100.0, 100.0]), np.float32([300.0, -300.0])
    found = np.asarray(difference(low, step, np.asarray(False)))
    assert not np.isfinite(found).any()


def test_three_bytes_hold_a_float():
    """The rest is at most half a unit of the last byte."""
    matrix = np.random.default_rng(default_seed()).normal(0, 1, (128, 40))
    matrix[5] = 0
    terms, scale = signed_bytes(matrix)
    high, middle, low = terms.astype(np.int64)
    held = (high << 16) + (middle << 8) + low
    rest = np.abs(held * scale.astype(np.float64)[:, None] - matrix)
    assert (rest <= 0.500001 / (127 << 16) * np.abs(matrix).max(axis=1, keepdims=True)).all()


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_a_product_tells_its_matrix(is_split, shape):
    matrix = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    dense = BinaryProduct(jnp.asarray(matrix), is_split=is_split).dense()
    assert dense == pytest.approx(matrix, abs=2**-21)


def test_the_largest_field_bounds_all_of_them():
    path = path_of(6, 10, 2.0)
    states = (np.arange(1024)[:, None] >> np.arange(10) & 1).astype(np.float32)
    fields = states @ path.to_latent.dense()[:, :-1] + np.asarray(path.latent_bias_change)
    assert (
        np.abs(fields).max()
        <= largest_field(path.to_state.dense(), path)
        <= 4 * np.abs(fields).max()
    )


def test_what_fits_into_a_multiprocessor():
    """All that a program has there, at the edge of what fits."""
    for shape, is_small in [
        ((31, 784), True),
        ((32, 784), False),
        ((63, 400), True),
        ((64, 30), False),
    ]:
        assert SmallSteps.fits(path_of(*shape), 1000, 132) == is_small
    for shape, is_large in [
        ((639, 784), True),
        ((640, 784), False),
        ((30, 1024), True),
        ((30, 1025), False),
    ]:
        assert LargeSteps.fits(path_of(*shape), 1000, 132) == is_large
    assert not LargeSteps.fits(path_of(500, 784), 1000, 12)
    for shape, is_many in [
        ((1023, 1024), True),
        ((1024, 784), False),
        ((30, 1024), True),
        ((30, 1025), False),
    ]:
        assert ManySteps.fits(path_of(*shape), 20_000, 132) == is_many


class Compiler:
    """In the place of NVRTC, which needs no GPU but comes with JAX for one: says what it was given."""

    count = minor = 0

    def nvrtcVersion(self, major, minor) -> int:
        major._obj.value, minor._obj.value = 13, self.minor
        return 0

    def nvrtcCreateProgram(self, _program, text, *_) -> int:
        self.text = text
        return 0

    def nvrtcCompileProgram(self, _program, count, options) -> int:
        self.count += 1
        given = b" ".join(options[i] for i in range(count))
        self.made = b"%s %s of 13.%d" % (self.text, given, self.minor)
        return 0

    def nvrtcGetPTXSize(self, _program, size) -> int:
        size._obj.value = len(self.made) + 1
        return 0

    def nvrtcGetPTX(self, _program, text) -> int:
        text.value = self.made
        return 0

    def nvrtcDestroyProgram(self, _program) -> int:
        return 0


class TestCompiler:
    """Found out by a program of a line, once."""

    @pytest.fixture(autouse=True)
    def afresh(self):
        for kept in (cuda.is_usable, cuda._library, cuda._compiled):
            kept.cache_clear()
        yield
        for kept in (cuda.is_usable, cuda._library, cuda._compiled):
            kept.cache_clear()

    def test_none_is_installed(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(cuda, "_LIBRARIES", ("libno-such-library.so",))
        with pytest.raises(RuntimeError, match="NVRTC is not installed"):
            cuda._compiled("", ())
        assert not cuda.is_usable()

    def test_what_it_made_is_kept(self, monkeypatch: pytest.MonkeyPatch, tmp_path):
        """For the next process, by text, sizes and version of the compiler."""
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
        compiler = Compiler()
        monkeypatch.setattr(cuda, "_library", lambda: compiler)

        def compiled(text: str = "text", **constants: int) -> str:
            cuda._compiled.cache_clear()  # as the next process
            return cuda._compiled(text, tuple(constants.items()))

        first = compiled(SIZE=3)
        assert first == "text --gpu-architecture=compute_90a -DSIZE=3 of 13.0"
        assert (compiled(SIZE=3), compiler.count) == (first, 1)
        assert (compiled(SIZE=4) == first, compiler.count) == (False, 2)
        assert (compiled("other", SIZE=3) == first, compiler.count) == (False, 3)
        compiler.minor = 1
        assert (compiled(SIZE=3) == first, compiler.count) == (False, 4)
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
        assert compiled(SIZE=3) == compiled(SIZE=3)
        assert compiler.count == 6

    def test_xla_does_not_know_the_call(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(cuda, "_compiled", lambda *_: "a program")
        assert not cuda.is_usable()  # XLA for a CPU does not

    def test_a_run_goes_on_without(self, monkeypatch: pytest.MonkeyPatch):
        """On a GPU that has no compiler, the steps of a run are XLA's, and its numbers the same."""
        path, options = path_of(5, 9), {"num_chains": 4, "seed": default_seed()}
        plain = anneal(path, BlockGibbs(), linear(3), **options)
        monkeypatch.setattr(cuda, "_LIBRARIES", ("libno-such-library.so",))
        monkeypatch.setattr("annealz.engine.gpu.choose.local_devices", lambda: [Hopper()])
        without = anneal(path, BlockGibbs(), linear(3), **options)
        assert np.array_equal(without.log_weights, plain.log_weights)


class Hopper:
    platform, compute_capability, core_count = "gpu", "9.0", 132


class TestChoice:
    """Of how a run is fused."""

    OBSERVERS = {"slope": Slope()}  # noqa: RUF012 (never altered)

    @pytest.fixture(autouse=True)
    def gpu(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("jax.local_devices", lambda: [Hopper()])
        monkeypatch.setattr(cuda, "is_usable", lambda: True)

    def choose(self, path, kernel=None, observers=None, resampling=None, num_chains=1000):
        return choose_fused(
            path, kernel or BlockGibbs(), observers or self.OBSERVERS, resampling, num_chains
        )

    def test_by_the_size_of_the_model(self):
        assert isinstance(self.choose(path_of(20, 784)), SmallSteps)
        assert isinstance(self.choose(path_of(500, 784)), LargeSteps)
        assert self.choose(path_of(2000, 784)) is None

    def test_by_the_number_of_chains(self):
        assert isinstance(self.choose(path_of(500, 784), num_chains=16384), ManySteps)
        assert isinstance(self.choose(path_of(20, 784), num_chains=16384), SmallSteps)
        assert isinstance(self.choose(path_of(800, 784), num_chains=16384), ManySteps)
        assert self.choose(path_of(800, 784), num_chains=1000) is None
        assert self.choose(path_of(1100, 784), num_chains=16384) is None

    def test_prepared_once_a_path(self):
        path, other, third = (path_of(20, 30) for _ in range(3))
        first = self.choose(path)
        assert self.choose(path) is first
        assert self.choose(path.unnamed()) is first  # the same arrays
        assert self.choose(other) is not first
        assert self.choose(path) is first  # of several paths
        for _ in range(4):
            self.choose(GeometricPath(third.base, random_rbm(20, 30)))
        assert self.choose(path) is not first

    def test_not_where_every_step_must_be_seen(self):
        path = path_of(5, 9)
        assert self.choose(path, observers={"slope": Slope(), "on": Expectation(jnp.mean)}) is None
        assert self.choose(path, resampling=Resampling(0.5, 10)) is None
        assert self.choose(GaussianPath(1.0, 0.5), PerfectKernel()) is None

    def test_not_where_they_are_switched_off(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("ANNEALZ_FUSED", "0")
        assert self.choose(path_of(5, 9)) is None

    def test_not_where_no_program_can_be_compiled(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(cuda, "is_usable", lambda: False)
        for hidden, num_chains in [(5, 10), (500, 10), (500, 20_000)]:
            assert self.choose(path_of(hidden, 784), num_chains=num_chains) is None

    def test_not_where_the_path_has_a_constant(self):
        base = BernoulliBase.from_logits(np.zeros(9))
        assert self.choose(GeometricPath(base, random_rbm(5, 9), offset=1.0)) is None

    def test_not_on_other_devices(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(Hopper, "compute_capability", "8.0")
        assert self.choose(path_of(5, 9)) is None
        monkeypatch.setattr(Hopper, "platform", "cpu")
        assert self.choose(path_of(5, 9)) is None
