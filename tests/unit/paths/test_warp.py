"""Coordinates in which a neck is open: the map, its volume, and the base and path that use it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import annealz
from annealz.bases.warped import Warp, WarpedBase, knots
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.io.serialise import restore, store
from annealz.models.functions import WarpedFunction
from annealz.paths.tempered import PhasePath

SPREAD = 3.0
FAR = np.array([-20.0, -4.6, -1.3, 0.0, 0.4, 4.4, 7.0])


def funnel(x):
    """v ~ N(0, 9), two others N(0, e^v); Z = 1."""
    v, rest = x[0], x[1:]
    return (
        -0.5 * (v / SPREAD) ** 2
        - np.log(SPREAD)
        - 0.5 * jnp.exp(-v) * (rest @ rest)
        - v
        - 1.5 * np.log(2 * np.pi)
    )


def straight() -> Warp:
    """In which that funnel is a standard normal."""
    u = knots(9)
    roots = np.exp(SPREAD * u / 2)[:, None, None] * np.eye(2)
    return Warp.of(
        0, 3, np.full(9, np.log(SPREAD)), np.zeros((9, 2)), roots, np.array([1, 2]), middle=0.0
    )


def crooked() -> Warp:
    """Something else at every knot, with t in the second place."""
    generator = np.random.default_rng(0)
    roots = np.tril(generator.normal(size=(9, 2, 2)))
    roots[:, [0, 1], [0, 1]] = np.exp(generator.normal(size=(9, 2)))
    centres = generator.normal(size=(9, 2))
    return Warp.of(1, 3, 0.5 * generator.normal(size=9), centres, roots, np.array([0, 2]), 1.5)


@pytest.mark.parametrize("warp", [straight(), crooked()], ids=["straight", "crooked"])
def test_there_and_back_and_the_volume(warp):
    u = np.random.default_rng(1).normal(size=(FAR.size, 3)).astype(np.float32)
    u[:, warp.coordinate] = FAR
    x = warp.forward(u)
    np.testing.assert_allclose(warp.inverse(x), u, rtol=2e-3, atol=2e-3)
    matrices = jax.vmap(jax.jacfwd(warp.forward))(u)
    np.testing.assert_allclose(
        warp.log_stretch(u), np.linalg.slogdet(np.float64(matrices))[1], atol=2e-3
    )


def test_t_is_where_it_was_put():
    assert np.isclose(float(crooked().forward(jnp.zeros((1, 3)))[0, 1]), 1.5, atol=1e-5)


def test_other_coordinates_stay_as_they_are():
    roots = np.exp(knots(9))[:, None, None]
    warp = Warp.of(0, 3, np.zeros(9), np.zeros((9, 1)), roots, np.array([2]))
    u = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(warp.forward(u))[:, 1], u[:, 1], atol=1e-6)


def test_a_funnel_is_a_standard_normal():
    """Every chain has the weight Z / Z_A at once, and the target of a state is that of its position."""
    base = WarpedBase(annealz.GaussianBase.standard(3), straight())
    model = annealz.LogDensity(funnel, dim=3)
    path = model.path(base)
    z = path.sample(Stream(1, "draws").at(0, indices(200)))
    np.testing.assert_allclose(path.log_z0 + path.slope(z, 0.0), 0.0, atol=2e-3)
    x = path.position(z)
    values = np.asarray(model.log_density(x))
    np.testing.assert_allclose(path.log_target(z), values, rtol=1e-5, atol=2e-3)
    np.testing.assert_allclose(base.log_density(x) - base.log_z, values, atol=5e-3)
    phases = PhasePath(path, has_gradient=True)
    states = phases.sample(Stream(1, "draws").at(0, indices(200)))
    np.testing.assert_allclose(phases.log_target(states), values, rtol=1e-5, atol=2e-3)


def test_the_density_of_u_is_that_of_x_and_the_volume():
    model = annealz.LogDensity(funnel, dim=3)
    warp = crooked()
    u = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    warped = annealz.LogDensity(WarpedFunction(model.fn, warp), 3)
    expected = model.log_density(warp.forward(u)) + warp.log_stretch(u)
    np.testing.assert_allclose(warped.log_density(u), expected, rtol=1e-5)


def test_it_is_stored_and_restored():
    base = WarpedBase(annealz.GaussianBase.standard(3), crooked())
    stored = store(base)
    assert stored is not None
    again = restore(*stored)
    assert again.digest == base.digest
    assert again.warp.coordinate == 1
    assert again.name == "standard"


def test_where_numbers_cannot_resolve_the_neck_there_is_no_mass():
    """Scales of e^u around 9: from e^-13 on all neighbours round to 9, and their squares would vanish."""
    t = knots(33)
    scales = np.exp(3 * t)[:, None, None]
    warp = Warp.of(0, 2, 0 * t, np.full((33, 1), 9.0), scales, np.array([1]))
    u = jnp.array([[0.0, 1.0], [-2.0, 1.0], [-4.4, 1.0], [-4.4, 3.0]], jnp.float32)
    resolved = np.asarray(warp.is_resolved(u))
    assert resolved.tolist() == [True, True, False, False]
    spacing = np.spacing(np.float32(9.0))
    assert np.exp(3 * -4.4) < 16 * spacing < np.exp(3 * -2.0)

    def narrow(x):
        return -0.5 * jnp.sum(((x[1:] - 9) * jnp.exp(-3 * x[0])) ** 2) - 0.5 * x[0] ** 2 - 3 * x[0]

    model = annealz.LogDensity(narrow, 2)
    inside = jax.vmap(WarpedFunction(model.fn, warp).value)(u)
    assert np.isfinite(inside).tolist() == resolved.tolist()
    path = annealz.TemperedPath(WarpedBase(annealz.GaussianBase.standard(2), warp), model)
    values, gradients = path.value_and_gradient(u)
    assert (np.asarray(values) > -1e17).tolist() == resolved.tolist()
    assert np.isfinite(gradients).all()
    plain = annealz.TemperedPath(annealz.GaussianBase.standard(2), model)
    assert plain.base.is_resolved(u) is True
