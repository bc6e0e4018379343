"""Clusters leave p_beta invariant: the transition matrix by enumeration of bonds, and pairs of states.

The matrix is written down here with NumPy: every set of bonds, its clusters, their states. It leaves p_beta
invariant to rounding, and the kernel draws from it, by chi-square over all pairs (x, y) from exact x.
"""

import functools
import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

import annealz
from annealz.core.random import Stream
from annealz.kernels.clusters import Clusters, components
from annealz.models.abstract import AbstractModel
from support.families import grid

ALPHA = 1e-6
NUM_SAMPLES = 2**17
BETAS = (0.0, 0.6, 1.0)

TRIANGLE = np.array([[0, 0.7, 0.3], [0.7, 0, 0.5], [0.3, 0.5, 0]])
STAR = np.zeros((4, 4))
STAR[0, 1:] = STAR[1:, 0] = 0.4, 0.8, 0.2

MODELS: dict[str, AbstractModel] = {
    "three colours": annealz.Ising(TRIANGLE, [0.4, -0.2, 0.3]),
    "two colours": annealz.Ising(STAR, [0.4, -0.2, 0.3, 0.1]),
    "lattice": annealz.Ising.square(2, (0.3, 0.2), 0.15),
    "potts": annealz.Potts(TRIANGLE, 3, [[0.5, 0, -0.3], [0, 0.2, 0], [-0.4, 0, 0.1]]),
}
CASES = [(name, kind) for name in MODELS for kind in ("product", "mixture")]


def base_of(name: str, kind: str):
    """A base with fields of its own, over the annealed units where it is a mixture."""
    model, rng = MODELS[name], np.random.default_rng(5)
    if kind == "mixture":
        units = model.path(model.choose_base("uniform"))
        if name in ("two colours", "lattice"):
            return annealz.MixtureBase.from_means(rng.uniform(0.2, 0.8, (2, units.num_units)))
        states = 3 if name == "potts" else 2
        means = rng.dirichlet(np.full(states, 3.0), (2, 3))
        return annealz.MixtureBase.from_means(means, [0.3, 0.7])
    if name == "potts":
        return annealz.CategoricalBase.from_logits(rng.normal(0, 0.5, (3, 3)))
    return annealz.BernoulliBase.from_logits(rng.normal(0, 0.5, model.num_units))  # pyright: ignore


def energies(name: str) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int, float]], int]:
    """All states, their fields (units, states) at beta = 1, the edges, and how many units are kept.

    Units in the order of the kernel: the annealed ones first.
    """
    model = MODELS[name]
    if isinstance(model, annealz.Potts):
        edges = [(i, j, TRIANGLE[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        return grid(3, 3, 3), np.float64(model.fields), edges, 3
    (order, kept), lattice = order_of(name), isinstance(model, annealz.SquareIsing)
    graph = model.as_ising() if lattice else model
    assert isinstance(graph, annealz.Ising)
    couplings, fields = graph.couplings, np.float64(graph.fields)
    couplings = np.float64(couplings)[np.ix_(order, order)]
    edges = [
        (i, j, 2 * couplings[i, j]) for i, j in itertools.combinations(range(len(order)), 2)
        if couplings[i, j]
    ]  # fmt: skip
    table = fields[order][:, None] * np.array([-1, 1])
    return grid(*[2] * len(order)), table, edges, kept


def order_of(name: str) -> tuple[np.ndarray, int]:
    """The units of an Ising model, the annealed ones first, and how many these are."""
    model = MODELS[name]
    if isinstance(model, annealz.SquareIsing):
        return np.array([0, 3, 1, 2]), 2  # even sites first
    assert isinstance(model, annealz.Ising)
    layers = model.layers
    return (np.arange(3), 3) if layers is None else (np.concatenate(layers), len(layers[0]))


def sweep_matrix(states, edges, fields, beta: float) -> np.ndarray:
    """T[x, y] of one sweep over all units, in float64."""
    number, size = fields.shape[1], len(states)
    index = {tuple(x): i for i, x in enumerate(states)}
    matrix = np.zeros((size, size))
    for i, x in enumerate(states):
        agreeing = [e for e in edges if x[e[0]] == x[e[1]]]
        for bonds in itertools.product((0, 1), repeat=len(agreeing)):
            chance = 1.0
            for is_bond, (_, _, coupling) in zip(bonds, agreeing, strict=True):
                chance *= -np.expm1(-beta * coupling) if is_bond else np.exp(-beta * coupling)
            rows = [e for e, is_bond in zip(agreeing, bonds, strict=True) if is_bond]
            count, labels = labels_of(rows, len(x))
            sums = np.stack([fields[labels == c].sum(0) for c in range(count)])
            laws = np.exp(sums - logsumexp(sums, axis=1, keepdims=True))
            for chosen in itertools.product(range(number), repeat=count):
                y = index[tuple(np.array(chosen)[labels])]
                matrix[i, y] += chance * np.prod(laws[np.arange(count), chosen])
    return matrix


def labels_of(edges, num_units: int) -> tuple[int, np.ndarray]:
    ends = np.array([e[:2] for e in edges], int).reshape(-1, 2)
    graph = sparse.coo_matrix((np.ones(len(ends)), ends.T), (num_units, num_units))
    return connected_components(graph, directed=False)


@functools.cache
def exact(name: str, kind: str, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(kept states, their law, T between them): all other units summed out of both."""
    states, fields, edges, kept = energies(name)
    base = base_of(name, kind)
    if kind == "product":
        logits = np.float64(base.logits)
        if logits.ndim == 1:
            logits = logits[order_of(name)[0]][:, None] * np.array([0, 1])
        terms, starts = np.zeros((1, 1)), logits[None]
    else:
        number = fields.shape[1]
        starts = np.float64(base.logits).reshape(base.num_components, kept, -1)
        if starts.shape[2] == 1:
            starts = starts * np.array([0, 1])
        free = logsumexp(starts, axis=2).sum(1)
        terms = (np.log(base.weights) - free)[:, None]
        rest = np.zeros((base.num_components, len(fields) - kept, number))
        starts = np.concatenate([starts, rest], axis=1)
    each = np.arange(len(fields))
    pairs = sum(j * (states[:, a] == states[:, b]) for a, b, j in edges)
    joint, flows = [], []
    for term, start in zip(terms, starts, strict=True):
        here = (1 - beta) * start + beta * fields
        log_law = (1 - beta) * term + beta * pairs + here[each, states].sum(1)
        joint.append(log_law)
        flows.append(sweep_matrix(states, edges, here, beta))
    joint = np.array(joint)
    law = np.exp(joint - logsumexp(joint))
    flow = sum(p[:, None] * t for p, t in zip(law, flows, strict=True))
    seen, place = np.unique(states[:, :kept], axis=0, return_inverse=True)
    place = place.ravel()
    own = np.bincount(place, law.sum(0))
    kept_flow = np.zeros((len(seen), len(seen)))
    np.add.at(kept_flow, (place[:, None], place[None]), flow)
    return seen, own, kept_flow / own[:, None]


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("beta", BETAS)
def test_the_matrix_leaves_the_law_invariant(name: str, kind: str, beta: float):
    """p T = p, rows sum to one, and the chain is reversible; p is that of the path."""
    states, law, matrix = exact(name, kind, beta)
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(law @ matrix, law, atol=1e-12)
    flow = law[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)
    path = MODELS[name].path(base_of(name, kind))
    values = np.float64(_log_density(path, np.float32(states), np.float32(beta)))
    np.testing.assert_allclose(np.exp(values - logsumexp(values)), law, atol=1e-6)


@eqx.filter_jit
def _log_density(path, x, beta):
    return path.log_density(x, beta)


@eqx.filter_jit
def _step(kernel, bits, x, path, beta):
    return kernel.step(bits, x, path, beta)


def pairs_p_value(name: str, kind: str, beta: float, seed: int, kernel: Clusters) -> float:
    """Chi-square of all pairs (x, y), x drawn from the law of p_beta and y by one sweep from x."""
    states, law, matrix = exact(name, kind, beta)
    drawn = np.random.default_rng(seed).choice(len(states), NUM_SAMPLES, p=law / law.sum())
    bits = Stream(seed, "clusters").at(3, jnp.arange(NUM_SAMPLES))
    x = jnp.asarray(states[drawn], jnp.float32)
    path = kernel.extend(MODELS[name].path(base_of(name, kind)))
    moved = np.asarray(_step(kernel, bits, x, path, jnp.float32(beta))).astype(int)
    sizes = tuple(states.max(0) + 1)
    y = np.ravel_multi_index(moved.T, sizes)
    place = np.argsort(np.ravel_multi_index(states.T, sizes))[y]
    counts = np.bincount(drawn * len(states) + place, minlength=len(states) ** 2)
    hoped = (law[:, None] * matrix).ravel() * NUM_SAMPLES
    rare = hoped < 10
    counts, hoped = (np.append(a[~rare], a[rare].sum()) for a in (counts, hoped))
    kept = hoped > 0
    hoped = hoped[kept] * counts[kept].sum() / hoped[kept].sum()
    return float(stats.chisquare(counts[kept], hoped).pvalue)


QUICK = {("three colours", "product"), ("two colours", "mixture"), ("potts", "product")}


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in CASES],
)
def test_the_kernel_draws_from_the_matrix(name: str, kind: str, seed: int):
    kernel = MODELS[name].choose_kernel("clusters")
    assert isinstance(kernel, Clusters)
    for beta in BETAS:
        assert pairs_p_value(name, kind, beta, seed, kernel) > ALPHA


class StaleBonds(Clusters):
    """Mutant: bonds as at beta = 1."""

    def _roots(self, bits, x, beta):
        return super()._roots(bits, x, 1.0)


class Fieldless(Clusters):
    """Mutant: clusters take their states whatever the fields are."""

    def step(self, bits, x, path, beta):
        without = eqx.tree_at(lambda p: (p.start, p.change), path, replace_fn=jnp.zeros_like)
        return super().step(bits, x, without, beta)


@pytest.mark.parametrize("mutant", [StaleBonds, Fieldless])
def test_mutants_do_not(mutant, seed: int):
    kernel = mutant.of_matrix(TRIANGLE)
    assert pairs_p_value("potts", "product", 0.6, seed, kernel) < ALPHA


def test_components_are_those_of_scipy():
    rng, size = np.random.default_rng(1), 30
    edges = np.array([rng.choice(size, 2, replace=False) for _ in range(40)])
    chain = np.stack([np.arange(size - 1), np.arange(1, size)], 1)[::-1]
    edges = np.concatenate([edges, chain])
    shares = np.array([0, 0.1, 0.2, 0.3, 0.5, 1])[:, None]
    is_open = rng.random((6, len(edges))) < shares
    found = np.asarray(eqx.filter_jit(components)(is_open, jnp.asarray(edges, jnp.int32), size))
    for row, own in zip(is_open, found, strict=True):
        labels = labels_of(edges[row], size)[1]
        least = np.array([np.flatnonzero(labels == label).min() for label in labels])
        np.testing.assert_array_equal(own, least)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (annealz.Ising([[0, -0.2], [-0.2, 0]]), "nowhere negative, got -0.4"),
        (annealz.Potts([[0, -0.2], [-0.2, 0]], 3), "nowhere negative, got -0.2"),
    ],
)
def test_other_than_ferromagnets_are_refused(model: AbstractModel, words: str):
    with pytest.raises(ValueError, match=words):
        annealz.estimate_log_z(model, kernel="clusters")


def test_kernels_are_chosen_by_name(tmp_path):
    model = MODELS["lattice"]
    options = {"base": "uniform", "schedule": "linear", "num_steps": 20, "second_opinion": False}
    one = annealz.estimate_log_z(
        model, kernel="clusters", num_chains=100, out=tmp_path / "run", **options
    )
    assert annealz.resume(tmp_path / "run").log_z == one.log_z
    assert one.plan.request.kernel == "clusters"
    assert abs(one.log_z - one.exact_log_z) < 5 * one.std_err
    with pytest.raises(
        ValueError, match="kernel must be one of auto, gibbs, clusters.* got 'wolff'"
    ):
        annealz.estimate_log_z(model, kernel="wolff")
    with pytest.raises(ValueError, match=r"kernel must be an annealz.AbstractKernel .* got int"):
        annealz.estimate_log_z(model, kernel=3)  # pyright: ignore
    with pytest.raises(ValueError, match="clusters need the path of an Ising or Potts model of 3"):
        annealz.estimate_log_z(model, kernel=Clusters.of_matrix(TRIANGLE))
