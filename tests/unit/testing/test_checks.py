"""Every built-in class passes the checks that a user can run, and each check sees its mutant."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.core.random import Stream
from annealz.kernels.adaptation import Tuning
from annealz.paths.tempered import PhasePath, TemperedPath
from annealz.testing import (
    GaussianPath,
    PerfectKernel,
    check_kernel,
    check_model,
    check_path,
    random_rbm,
)

PRECISION = jnp.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.7]])
MEAN = jnp.array([0.7, -0.4, 0.2])


def log_density(x):
    """Not symmetric, not quite Gaussian."""
    return -0.5 * (x - MEAN) @ PRECISION @ (x - MEAN) - 0.1 * (x[0] - x[2]) ** 4


DENSITY = annealz.LogDensity(log_density, 3)
BASE = annealz.GaussianBase.from_moments([0.3, 0.0, -0.2], np.diag([1.0, 2.0, 1.5]) + 0.2)
PATH = TemperedPath(BASE, DENSITY)
RBM = random_rbm(4, 6, 0.5)
RBM_PATHS = [RBM.path(RBM.choose_base(), marginal) for marginal in RBM.marginals]
KERNELS = [
    pytest.param(annealz.HMC(3), marks=pytest.mark.slow),
    pytest.param(annealz.MALA(), marks=pytest.mark.slow),
    annealz.RandomWalk(),
    annealz.HAIS(2, 0.5),
]


@pytest.mark.parametrize(
    "path",
    [*RBM_PATHS, GaussianPath(0.5, 0.8), PATH, PhasePath(PATH)],
    ids=["visible", "hidden", "line", "tempered", "phase"],
)
def test_every_path_passes(path, seed):
    check_path(path, seed=seed)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_every_kernel_of_densities_passes(kernel, seed):
    assert check_kernel(kernel, PATH, seed=seed) == [0.0, 0.01, 0.05, 0.2, 0.5, 1.0]


def test_block_gibbs_and_the_perfect_kernel_pass(seed):
    for path in RBM_PATHS:
        assert len(check_kernel(annealz.BlockGibbs(), path, seed=seed)) >= 3
    check_kernel(PerfectKernel(), GaussianPath(0.5, 0.8), seed=seed)


@pytest.mark.parametrize(
    "model", [RBM, pytest.param(DENSITY, marks=pytest.mark.slow)], ids=["rbm", "density"]
)
def test_every_model_passes(model, seed):
    check_model(model, num_steps=100, num_chains=100, seed=seed)


def test_exact_draws_let_the_target_be_checked(seed):
    draws = RBM.exact_draws(4000, seed)
    assert check_kernel(annealz.BlockGibbs(), RBM_PATHS[0], draws=draws, seed=seed)[-1] == 1


class WrongSlope(TemperedPath):
    def slope(self, x, beta):
        return 1.01 * super().slope(x, beta)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * super().slope(x, beta0)

    def log_density(self, x, beta):
        return beta * super().slope(x, beta) - 0.5 * (x**2).sum(-1)


class WrongRatio(TemperedPath):
    def log_ratio(self, x, beta0, beta1):
        return super().log_ratio(x, beta0, beta1) + 0.01 * (beta1 - beta0) * x[:, 0]


class LossyStore(TemperedPath):
    def store(self, x):
        return x.astype(jnp.float16)


class OneStream(TemperedPath):
    def sample(self, bits):
        return jnp.asarray(np.random.default_rng(0).normal(size=(bits.num_chains, 3)), jnp.float32)


@pytest.mark.parametrize(
    ("mutant", "words"),
    [
        (WrongSlope, r"slope\(x, 0.1\) must be the derivative"),
        (WrongRatio, r"log_ratio\(x, 0, 1\) must be the difference"),
        (LossyStore, "restore must undo store"),
        (OneStream, "take all randomness from bits"),
    ],
)
def test_a_wrong_path_is_seen(mutant, words, seed):
    with pytest.raises(AssertionError, match=words):
        check_path(mutant(BASE, DENSITY), seed=seed)


class Greedy(annealz.RandomWalk):
    """Accepts whatever is proposed."""

    def move(self, bits, x, path, beta, step, scales):
        z = path.split(x).z
        moved = path.evaluated(z + step * scales * bits.normals(z.shape[-1], draw=0))
        return path.join(moved), jnp.full(x.shape[0], 0.234)


class Stale(annealz.MALA):
    """Its gradient and its test are of another beta."""

    def move(self, bits, x, path, beta, step, scales):
        return super().move(bits, x, path, 0.7 * beta, step, scales)


class Selfish(annealz.RandomWalk):
    """Its bits depend on how many chains there are."""

    def move(self, bits, x, path, beta, step, scales):
        bits = eqx.tree_at(lambda b: b.step, bits, bits.step + bits.num_chains)
        return super().move(bits, x, path, beta, step, scales)


class NoTurn(annealz.HAIS):
    """Keeps its momentum when it is rejected."""

    def move(self, bits, x, path, beta, step, scales):
        moved, acceptance = super().move(bits, x, path, beta, step, scales)
        before, after = path.split(x), path.split(moved)
        stays = (before.z == after.z).all(-1)[:, None]
        kept = self._refreshed(bits, before.p, step)
        return path.join(after._replace(p=jnp.where(stays, kept, after.p))), acceptance


class NotReversed(annealz.HAIS):
    """Claims to be its own reversal."""

    def reversed(self):
        return self


@pytest.mark.parametrize(
    ("mutant", "words"),
    [
        (Greedy(), "does not leave p_beta invariant"),
        pytest.param(Stale(), "does not leave p_beta invariant", marks=pytest.mark.slow),
        (Selfish(), "take all randomness from bits"),
        (NotReversed(), "reversed.. that is not its reversal"),
    ],
)
def test_a_wrong_kernel_is_seen(mutant, words, seed):
    with pytest.raises(AssertionError, match=words):
        check_kernel(mutant, PATH, seed=seed)


@pytest.mark.slow
def test_a_momentum_that_is_kept_when_rejected_is_seen(seed):
    kernel = NoTurn(step_size=1.3)
    with pytest.raises(AssertionError, match="does not leave p_beta invariant|not its reversal"):
        check_kernel(kernel, PATH, num_chains=40_000, seed=seed)


class Walking(annealz.LogDensity):
    def kernel(self):
        return annealz.RandomWalk()


class Careless(annealz.LogDensity):
    def choose_base(self, base="auto", data=None):
        return annealz.GaussianBase.standard(3)


class Mistaken(Walking):
    def exact_log_z_if_cheap(self):
        return 2.0


def test_a_model_that_takes_any_name_is_seen(seed):
    with pytest.raises(AssertionError, match="must refuse a name"):
        check_model(Careless(log_density, 3), seed=seed)


@pytest.mark.slow
def test_a_model_that_is_wrong_about_itself_is_seen(seed):
    with pytest.raises(AssertionError, match="exact_log_z_if_cheap gives 2.0000"):
        check_model(Mistaken(log_density, 3), seed=seed)


def test_a_tuning_is_linear_between_its_knots():
    tuning = Tuning(jnp.array([0.0, 0.5, 1.0]), jnp.array([0.0, 1.0, 3.0]), jnp.zeros((3, 2)))
    for beta, log_step in ((0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.75, 2.0), (1.0, 3.0)):
        step, scales = tuning.at(jnp.float32(beta))
        np.testing.assert_allclose(np.log(step), log_step, atol=1e-6)
        np.testing.assert_array_equal(scales, [1, 1])


def test_an_untuned_kernel_says_so():
    x = PATH.sample(Stream(0, "").at(0, jnp.arange(2)))
    with pytest.raises(ValueError, match="no step size yet"):
        annealz.HMC().step(Stream(0, "").at(1, jnp.arange(2)), x, PATH, 0.5)
