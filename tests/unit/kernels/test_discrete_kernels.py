"""Gibbs by enumeration and Gibbs with gradients against their transition matrices, written with NumPy.

The matrices leave p_beta invariant and are reversible, to rounding; the kernels draw from them, by
chi-square over all pairs (x, y) from exact x.
"""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, logsumexp, softmax

import annealz
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.unit_gibbs import GradientGibbs, UnitGibbs
from annealz.testing import random_rbm
from support.discrete import Network
from support.values import sample, step

ALPHA = 1e-6
NUM_SAMPLES = 2**16
BETAS = (0.0, 0.6, 1.0)
NETWORKS = {"binary": Network(4, 2), "three states": Network(3, 3, seed=1)}
CASES = [(name, kind) for name in NETWORKS for kind in ("product", "mixture")]
NUM_UPDATES, NUM_PROPOSALS = 2, 3


def base_of(name: str, kind: str):
    network, rng = NETWORKS[name], np.random.default_rng(5)
    number, states = network.num_units, network.num_states
    if kind == "mixture":
        means = rng.dirichlet(np.full(states, 3.0), (2, number))
        return annealz.MixtureBase.from_means(means[..., 1] if states == 2 else means, [0.3, 0.7])
    if states == 2:
        return annealz.BernoulliBase.from_logits(rng.normal(0, 0.5, number))
    return annealz.CategoricalBase.from_logits(rng.normal(0, 0.5, (number, states)))


@functools.cache
def model_of(name: str) -> annealz.DiscreteDensity:
    network = NETWORKS[name]
    return network.binary_model() if network.num_states == 2 else network.model()


@functools.cache
def base_values(name: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """log p*_A of every state, and what its gradient at the one-hot form is, (states, units, q)."""
    network, base = NETWORKS[name], base_of(name, kind)
    states, each = network.states, np.arange(network.num_units)
    logits = np.float64(base.logits).reshape(-1, network.num_units, *base.logits.shape[2:])
    if network.num_states == 2:
        tables = logits.reshape(-1, network.num_units)[..., None] * np.array([0, 1])
    else:
        tables = np.float64(base.logits).reshape(-1, network.num_units, network.num_states)
    terms = np.stack([table[each, states].sum(1) for table in tables], 1)
    if kind == "mixture":
        terms += np.log(base.weights) - logsumexp(tables, axis=2).sum(1)
    shares = softmax(terms, axis=1)
    return logsumexp(terms, axis=1), np.einsum("sc,cik->sik", shares, tables)


def changed(network: Network) -> np.ndarray:
    """The number of the state in which unit i has state k, (states, units, q)."""
    states = network.states
    place = network.num_states ** np.arange(network.num_units)[::-1]  # `grid` has the first slowest
    here = np.arange(len(states))
    others = np.arange(network.num_states) - states[..., None]
    return here[:, None, None] + others * place[:, None]


@functools.cache
def law_at(name: str, kind: str, beta: float) -> np.ndarray:
    network = NETWORKS[name]
    log_law = (1 - beta) * base_values(name, kind)[0] + beta * network.values(network.states)
    return np.exp(log_law - logsumexp(log_law))


def unit_matrix(name: str, kind: str, beta: float) -> np.ndarray:
    """NUM_UPDATES units in a row, from any one and in both directions."""
    network, law = NETWORKS[name], law_at(name, kind, beta)
    number, there = network.num_units, changed(network)
    units = np.zeros((number, len(law), len(law)))
    for i in range(number):
        chances = law[there[:, i]] / law[there[:, i]].sum(1, keepdims=True)
        np.put_along_axis(units[i], there[:, i], chances, axis=1)
    total = np.zeros_like(units[0])
    for first in range(number):
        for way in (1, -1):
            order = [(first + way * k) % number for k in range(NUM_UPDATES)]
            total += functools.reduce(np.matmul, units[order]) / (2 * number)
    return total


def gradient_matrix(name: str, kind: str, beta: float) -> np.ndarray:
    """NUM_PROPOSALS proposals, taken or refused."""
    network, law = NETWORKS[name], law_at(name, kind, beta)
    states, there = network.states, changed(network)
    slopes = (1 - beta) * base_values(name, kind)[1] + beta * network.gradients(states)
    gains = slopes - np.take_along_axis(slopes, states[..., None], 2)
    is_here = states[..., None] == np.arange(network.num_states)
    logits = np.where(is_here, -np.inf, gains / 2).reshape(len(states), -1)
    chances = np.exp(log_softmax(logits, axis=1)).reshape(gains.shape)
    one = np.zeros((len(states), len(states)))
    for x in range(len(states)):
        for i, old in enumerate(states[x]):
            for k in range(network.num_states):
                y = there[x, i, k]
                if y != x:
                    back = law[y] * chances[y, i, old] / (law[x] * chances[x, i, k])
                    one[x, y] = chances[x, i, k] * min(1, back)
    one[np.diag_indices(len(states))] = 1 - one.sum(1)
    return np.linalg.matrix_power(one, NUM_PROPOSALS)


MATRICES = {"unit": unit_matrix, "gradient": gradient_matrix}


def kernel_of(which: str, name: str) -> AbstractKernel:
    if which == "gradient":
        return GradientGibbs(NUM_PROPOSALS)
    return UnitGibbs(NUM_UPDATES, NETWORKS[name].num_states)


@pytest.mark.parametrize("which", MATRICES)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_matrix_leaves_the_law_invariant(which: str, name: str, kind: str):
    for beta in BETAS:
        law, matrix = law_at(name, kind, beta), MATRICES[which](name, kind, beta)
        np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)
        flow = law[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)
        np.testing.assert_allclose(law @ matrix, law, atol=1e-12)


@eqx.filter_jit
def _moved(kernel, bits, x, path, beta):
    return path.position(kernel.step(bits, path.state(bits, x), path, beta))


def pairs_p_value(kernel, which: str, name: str, kind: str, beta: float, seed: int) -> float:
    """Chi-square of all pairs (x, y), x drawn from the law of p_beta and y by one sweep from x."""
    network, law = NETWORKS[name], law_at(name, kind, beta)
    drawn = np.random.default_rng(seed).choice(len(law), NUM_SAMPLES, p=law / law.sum())
    path = kernel.extend(model_of(name).path(base_of(name, kind)))
    bits = Stream(seed, "pairs").at(3, jnp.arange(NUM_SAMPLES))
    x = jnp.asarray(network.states[drawn], jnp.float32)
    moved = np.asarray(_moved(kernel, bits, x, path, jnp.float32(beta))).astype(int)
    there = np.ravel_multi_index(moved.T, [network.num_states] * network.num_units)
    counts = np.bincount(drawn * len(law) + there, minlength=len(law) ** 2)
    hoped = (law[:, None] * MATRICES[which](name, kind, beta)).ravel() * NUM_SAMPLES
    assert counts[hoped < 1e-9].sum() == 0
    rare = hoped < 10
    counts, hoped = (np.append(a[~rare], a[rare].sum()) for a in (counts, hoped))
    kept = hoped > 0
    hoped = hoped[kept] * counts[kept].sum() / hoped[kept].sum()
    return float(stats.chisquare(counts[kept], hoped).pvalue)


QUICK = {("binary", "product"), ("three states", "mixture")}


@pytest.mark.parametrize("which", MATRICES)
@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in CASES],
)
def test_the_kernel_draws_from_the_matrix(which: str, name: str, kind: str, seed: int):
    kernel = kernel_of(which, name)
    for beta in BETAS:
        assert pairs_p_value(kernel, which, name, kind, beta, seed) > ALPHA


class StaleUnits(UnitGibbs):
    """Mutant: draws at another beta."""

    def step(self, bits, x, path, beta):
        return super().step(bits, x, path, 0.8 * beta)


class EasyGradients(GradientGibbs):
    """Mutant: the gradient of the way there is not that of the way back."""

    def step(self, bits, x, path, beta):
        parts = path.split(x)
        other = eqx.tree_at(lambda p: p.gains, parts, 0.5 * parts.gains)
        return super().step(bits, path.join(other), path, beta)


@pytest.mark.parametrize(
    ("mutant", "which"),
    [(StaleUnits(NUM_UPDATES), "unit"), (EasyGradients(NUM_PROPOSALS), "gradient")],
)
def test_mutants_do_not(mutant, which: str, seed: int):
    assert pairs_p_value(mutant, which, "binary", "product", 0.6, seed) < ALPHA


def test_what_is_carried_is_what_an_evaluation_gives(seed: int):
    """After a sweep, value and gradient are those of where the chains are."""
    model = model_of("three states")
    for kernel in (UnitGibbs(4, 3), GradientGibbs(4)):
        path = kernel.extend(model.path(model.flat_base()))
        x = sample(path, Stream(seed, "carried").at(0, indices(50)))
        bits = Stream(seed, "carried").at(1, indices(50))
        y = step(kernel, bits, x, path, np.float32(0.7))
        before, after, fresh = _positions(path, x, y)
        np.testing.assert_allclose(y, fresh, atol=1e-5)
        assert not np.array_equal(before, after)


@eqx.filter_jit
def _positions(path, x, y):
    after = path.position(y)
    return path.position(x), after, path.join(path.evaluated(after))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: UnitGibbs(0), "num_updates must be a whole number, at least 1, got 0"),
        (lambda: UnitGibbs(3, 1), "num_states must be a whole number, at least 2, got 1"),
        (lambda: GradientGibbs(1.5), "num_proposals must be a whole number, at least 1, got 1.5"),
        (
            lambda: UnitGibbs(2).extend(model_of("three states").path(base_of("three states", ""))),
            "UnitGibbs has units of 2 states, and the model has 3: give num_states=3",
        ),
        (
            lambda: annealz.estimate_log_z(random_rbm(4, 6), kernel=GradientGibbs(2)),
            "GradientGibbs moves the units of a DiscreteDensity, got a GeometricPath",
        ),
    ],
)
def test_kernels_that_do_not_fit_are_refused(make, words: str):
    with pytest.raises(ValueError, match=words):
        make()
