"""Mixtures of Gaussians and of Student's t as bases: density, draws, and the states of a path."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import annealz
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream
from annealz.io.serialise import restore, store
from annealz.paths.tempered import PhasePath
from support.values import base_density, sample, slope

WEIGHTS = np.array([0.3, 0.7])
MEANS = np.array([[0.0, 1.0], [5.0, 2.0]])
COVARIANCES = np.array([[[1.0, 0.5], [0.5, 2.0]], [[0.3, 0.0], [0.0, 0.1]]])


def mixture(dof: int) -> annealz.GaussianMixtureBase:
    return annealz.GaussianMixtureBase.from_moments(WEIGHTS, MEANS, COVARIANCES, dof=dof)


@pytest.mark.parametrize("dof", [0, 3])
def test_the_density_is_that_of_scipy(dof):
    x = np.random.default_rng(0).normal(2, 4, (50, 2))
    laws = [
        stats.multivariate_t(m, c, dof) if dof else stats.multivariate_normal(m, c)
        for m, c in zip(MEANS, COVARIANCES, strict=True)
    ]
    expected = np.log(sum(w * law.pdf(x) for w, law in zip(WEIGHTS, laws, strict=True)))
    base = mixture(dof)
    found = np.float64(base_density(base, np.float32(x))) - base.log_z
    np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize("dof", [0, 3])
def test_draws_have_its_law(dof):
    size = 20_000
    x = np.float64(sample(mixture(dof), Stream(1, "draws").at(0, indices(size))))
    law = stats.t(dof) if dof else stats.norm()
    for axis in range(2):  # every marginal is a mixture too

        def cdf(v, axis=axis):
            scales = np.sqrt(COVARIANCES[:, axis, axis])
            parts = [law.cdf((v - m) / s) for m, s in zip(MEANS[:, axis], scales, strict=True)]
            return WEIGHTS @ parts

        assert stats.kstest(x[:, axis], cdf).pvalue > 1e-6
    assert not stats.kstest(x[:, 0] + 0.1, cdf).pvalue > 1e-6


def test_it_is_stored_and_restored():
    base = mixture(3)
    arrays, record = store(base)
    again = restore(arrays, record)
    assert again.digest == base.digest
    assert (again.dof, again.name, again.num_components) == (3, "mixture", 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": [1.0, -1.0]}, "weights of a mixture base must be positive"),
        ({"weights": [1.0]}, "takes weights"),
        ({"covariances": -COVARIANCES}, "positive definite"),
        ({"means": MEANS * np.nan}, "must be finite"),
        ({"dof": 2.5}, "dof of a mixture base must be a whole number"),
    ],
)
def test_what_is_no_mixture_is_refused(change, words):
    given = {"weights": WEIGHTS, "means": MEANS, "covariances": COVARIANCES} | change
    with pytest.raises(ValueError, match=words):
        annealz.GaussianMixtureBase.from_moments(**given)


def test_states_carry_what_was_evaluated():
    model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2)
    positions = annealz.TemperedPath(mixture(0), model)
    path = PhasePath(positions, has_momentum=True, has_gradient=True)
    x = jax.jit(lambda bits: path.sample(bits))(Stream(0, "states").at(0, indices(5)))
    assert x.shape == (5, 2 + 2 + 1 + 2)

    @jax.jit
    def parts(x):
        phase = path.split(x)
        return path.join(phase), phase.z, phase.value, model.log_density(path.position(x))

    joined, z, carried, there = map(np.asarray, parts(x))
    assert (joined == np.asarray(x)).all()
    np.testing.assert_allclose(carried, there, rtol=1e-5)
    field = jax.jit(lambda x, beta: path.field(path.split(x), beta))
    log_density = jax.jit(lambda z, beta: positions.log_density(z, beta))
    for beta in np.float32([0.0, 0.3, 1.0]):
        value, gradient = map(np.asarray, field(x, beta))
        np.testing.assert_allclose(value, log_density(z, beta), atol=1e-4)
        for step in np.float32(1e-2) * np.eye(2, dtype=np.float32):
            slope = np.asarray(log_density(z + step, beta)) - log_density(z - step, beta)
            np.testing.assert_allclose(gradient @ (step != 0), slope / 0.02, atol=0.05)


def test_an_offset_moves_into_the_first_log_z():
    model = annealz.LogDensity(lambda x: -0.5 * jnp.sum(x**2) + 1000.0, dim=1)
    plain = annealz.GaussianBase.standard(1)
    shifted = annealz.GaussianBase(plain.mean, plain.scale, offset=on_device(1000))
    path = annealz.TemperedPath(shifted, model)
    assert abs(path.log_z0 - plain.log_z - 1000) < 1e-9
    assert slope(path, np.ones((1, 1), np.float32), 0.5) == 0


def test_no_density_is_a_finite_number_without_weight():
    model = annealz.LogDensity(lambda x: jnp.where(x[0] > 0, 0.0, -jnp.inf), dim=1)
    path = annealz.TemperedPath(annealz.GaussianBase.standard(1), model)
    value, gradient = eqx.filter_jit(path.value_and_gradient)(np.float32([[-1], [1]]))
    assert value.tolist() == [np.float32(-1e18), 0.0]
    assert gradient.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize(
    "kernel",
    [
        annealz.HAIS(2, step_size=0.8),
        annealz.HMC(2, step_size=0.8),
        annealz.MALA(step_size=0.8),
        annealz.RandomWalk(step_size=1.5),
    ],
    ids=["hais", "hmc", "mala", "walk"],
)
def test_what_is_carried_belongs_to_where_the_chains_are(kernel):
    """Of chains that moved and of chains that stayed: a stale value or gradient would be seen."""
    model = annealz.LogDensity(lambda x: -jnp.sum((x - 1) ** 4), dim=2)
    path = kernel.extend(annealz.TemperedPath(annealz.GaussianBase.standard(2), model))
    stream, chains = Stream(2, "carried"), indices(64)
    x = jax.jit(lambda bits: path.sample(bits))(stream.at(0, chains))
    moved = jax.jit(lambda x, k: kernel.step(stream.at(k, chains), x, path, jnp.float32(0.7)))
    split = eqx.filter_jit(lambda x: path.split(x))
    evaluated = eqx.filter_jit(lambda z: path.evaluated(z))
    for k in range(1, 4):
        before, x = x, moved(x, k)
        phase = split(x)
        stayed = (np.asarray(phase.z) == np.asarray(split(before).z)).all(1)
        assert 0 < int(stayed.sum()) < 64
        fresh = evaluated(phase.z)
        np.testing.assert_allclose(phase.value, fresh.value, rtol=1e-5, atol=1e-5)
        if path.has_gradient:
            np.testing.assert_allclose(phase.gradient, fresh.gradient, rtol=1e-4, atol=1e-4)


def test_bases_of_several_sizes_share_a_program():
    """Components of no weight are filled in, and the tail is an array: nothing is compiled again."""
    traces = []

    @eqx.filter_jit
    def program(base, x):
        traces.append(x)
        return base.log_density(x), base.sample(Stream(0, "draws").at(0, jnp.arange(8)))

    x = jnp.asarray(np.random.default_rng(0).normal(2, 4, (50, 2)), jnp.float32)
    for count, dof in ((2, 0), (3, 4), (8, 2)):
        generator = np.random.default_rng(count)
        base = annealz.GaussianMixtureBase.from_moments(
            generator.uniform(1, 2, count),
            generator.normal(size=(count, 2)),
            [np.eye(2)] * count,
            dof=dof,
        )
        logs, draws = program(base.unnamed(), x)
        np.testing.assert_allclose(logs, base.log_density(x), rtol=1e-5)
        assert np.isfinite(draws).all()
        parts = np.asarray(base.unnamed().log_parts(base.to_unit(x)), np.float64)
        assert np.isfinite(parts).sum(1).tolist() == [count] * 50
        np.testing.assert_allclose(np.logaddexp.reduce(parts, axis=1), logs, rtol=1e-5)
    assert len(traces) == 1


def test_a_base_may_be_traced_as_it_is():
    base, x = mixture(3), jnp.ones((4, 2))
    inside = eqx.filter_jit(lambda base, x: base.log_density(x))(base, x)
    np.testing.assert_allclose(inside, base.log_density(x), rtol=1e-6)
