"""Half normals and rectified units against float64, quadrature and their own laws."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import log_ndtr

from annealz.core import half_normal
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream
from annealz.core.rectified_units import DReLUUnits, ReLUUnits

U = np.concatenate([np.linspace(-60, 60, 4001), -np.logspace(-6, 5, 500), np.logspace(-6, 5, 500)])
U = U.astype(np.float32)
B_ABOVE, B_BELOW = np.array([0.5, -2.0, 1.0, 0.0]), np.array([-1.0, 2.0, 3.0, 0.0])
S_ABOVE, S_BELOW = np.array([1.0, 0.6, 2.0, 0.3]), np.array([0.5, 1.5, 0.2, 0.3])
DRELU = DReLUUnits(*(on_device(array) for array in (B_ABOVE, B_BELOW, S_ABOVE, S_BELOW)))
RELU = ReLUUnits(on_device(S_ABOVE))
NUM_DRAWS = 20_000


def exact_mean(u: np.ndarray) -> np.ndarray:
    """u + phi / Phi, and far below zero the continued fraction 1 / (x + 2 / (x + 3 / ...)), x = -u."""
    x = np.maximum(-u, 6.0)
    tail = x
    for k in range(120, 1, -1):
        tail = x + k / tail
    body = u + np.exp(-(u**2) / 2 - log_ndtr(u)) / np.sqrt(2 * np.pi)
    return np.where(u < -6, 1 / tail, body)


def test_the_mean_keeps_its_digits_in_both_tails():
    got = np.asarray(jax.jit(half_normal.mean)(U), np.float64)
    np.testing.assert_allclose(got, exact_mean(np.float64(U)), rtol=6e-7)


def test_the_plain_formula_loses_them():
    """Broken variant: u + phi / Phi in float32."""
    u = np.float32(-30.0)
    plain = u + np.exp(np.float32(-0.5 * u * u - log_ndtr(u))) / np.float32(np.sqrt(2 * np.pi))
    assert abs(plain / exact_mean(np.array(-30.0)) - 1) > 1e-4


def test_log_z_is_that_of_float64():
    got, wanted = np.asarray(jax.jit(half_normal.log_z)(U)), half_normal.exact_log_z(np.float64(U))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    for u in (-3.0, 0.0, 2.0):
        area = quad(lambda x, u=u: np.exp(u * x - x * x / 2), 0, np.inf)[0]
        assert half_normal.exact_log_z(np.array(u)) == pytest.approx(np.log(area), abs=1e-9)


def test_differences_keep_the_digits_of_small_steps():
    points, weights = np.polynomial.legendre.leggauss(20)
    difference = jax.jit(half_normal.log_z_difference)
    u = U[np.abs(U) < 1000]
    for step in (1e-5, 0.01, 0.099, 0.11, 0.4, -1e-4, -0.3):
        exact = np.float64(np.float32(step))
        middle = np.float64(u)[:, None] + exact * (points + 1) / 2
        wanted = (exact_mean(middle) * weights / 2 * exact).sum(1)
        got = np.asarray(difference(u, np.float32(step)), np.float64)
        np.testing.assert_allclose(got, wanted, rtol=5e-6)


def test_differences_of_large_steps():
    """Against float64; the rounding of float32 is that of the larger of the two values."""
    for step in (3.0, 50.0, -7.0):
        got = np.asarray(jax.jit(half_normal.log_z_difference)(U, np.float32(step)), np.float64)
        ends = half_normal.exact_log_z(np.float64(U) + step), half_normal.exact_log_z(np.float64(U))
        largest = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
        assert (np.abs(got - (ends[0] - ends[1])) <= 1e-6 * np.maximum(largest, 1)).all()


@pytest.mark.parametrize("u", [-300.0, -8.0, -0.3, 0.0, 0.5, 3.0])
def test_draws_have_the_law(u: float, seed: int):
    """Inversion, so that the law is that of the uniforms: Kolmogorov and Smirnov."""
    x = _drawn(lambda bits: half_normal.draw(bits, jnp.full((NUM_DRAWS, 1), u), 0), seed)[:, 0]
    assert (x >= 0).all()

    def law(x):
        change = half_normal.exact_log_z(u - x) - half_normal.exact_log_z(np.array(u))
        return -np.expm1(u * x - x * x / 2 + change)

    assert stats.kstest(np.float64(x), law).pvalue > 1e-6


def _drawn(draw, seed: int) -> np.ndarray:
    return np.asarray(eqx.filter_jit(draw)(Stream(seed, "test").at(0, indices(NUM_DRAWS))))


def potential(unit: int, x: float) -> float:
    """r(l) of the dReLU units, as in the header."""
    b, s = (B_ABOVE, S_ABOVE) if x >= 0 else (B_BELOW, S_BELOW)
    return b[unit] * x - x * x / (2 * s[unit] ** 2)


def moments(unit: int, z: float, is_relu: bool) -> tuple[float, float]:
    """Integral and mean of exp(z l + r(l)), by quadrature."""

    def density(x, power):
        r = -x * x / (2 * S_ABOVE[unit] ** 2) if is_relu else potential(unit, x)
        return x**power * np.exp(z * x + r)

    sides = [(0, 30)] if is_relu else [(-30, 0), (0, 30)]
    zero, first = (
        sum(quad(density, *side, args=(power,), limit=200)[0] for side in sides) for power in (0, 1)
    )
    return zero, first / zero


@pytest.mark.parametrize("is_relu", [True, False])
def test_log_z_and_mean_are_integrals(is_relu: bool):
    units = RELU if is_relu else DRELU
    log_z_of, mean_of = jax.jit(type(units).log_z), jax.jit(type(units).mean)
    for z in (-4.0, -0.5, 0.0, 1.0, 3.0):
        fields = np.full((1, 4), z, np.float32)
        wanted = [moments(unit, z, is_relu) for unit in range(4)]
        log_z = sum(np.log(zero) for zero, _ in wanted)
        assert float(log_z_of(units, fields)[0]) == pytest.approx(log_z, abs=2e-5)
        assert units.exact_log_z(np.float64(fields))[0] == pytest.approx(log_z, abs=1e-6)
        means = [mean for _, mean in wanted]
        got = np.asarray(mean_of(units, fields))[0]
        np.testing.assert_allclose(got, means, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("units", [RELU, DRELU], ids=["relu", "drelu"])
def test_differences_of_units_are_those_of_float64(units):
    low = np.linspace(-8, 8, 161, dtype=np.float32)[:, None] * np.ones(4, np.float32)
    means = np.asarray(jax.jit(type(units).mean)(units, low))
    difference = jax.jit(type(units).log_z_difference)
    for step in (1e-4, 0.03, 1.5, -0.2, -1e-3):
        got = np.asarray(difference(units, low, np.float32(step)))
        exact = np.float64(np.float32(step))
        ends = units.exact_log_z(np.float64(low) + exact), units.exact_log_z(np.float64(low))
        scale = np.abs(means).sum(1) * abs(step) + 16 * step**2
        assert (np.abs(got - (ends[0] - ends[1])) < 5e-6 * scale + 1e-11).all()


def test_drelu_draws_have_the_law_on_both_sides(seed: int):
    """The share of each side, and the law within it."""
    fields = jnp.zeros((NUM_DRAWS, 4)) + 0.2
    x = np.float64(_drawn(lambda bits: DRELU.sample(bits, fields, 0), seed))
    for unit in range(4):

        def area(low, high, unit=unit):
            density = np.vectorize(lambda t: np.exp(0.2 * t + potential(unit, t)))
            grid = np.linspace(low, high, 20_001)
            return np.trapezoid(density(grid), grid), grid, density(grid)

        above, grid, density = area(0, 12)
        below = area(-12, 0)[0]
        share, seen = above / (above + below), x[:, unit] >= 0
        assert stats.binomtest(int(seen.sum()), NUM_DRAWS, share).pvalue > 1e-6
        law = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
        p = stats.kstest(x[seen, unit], lambda t, g=grid, c=law: np.interp(t, g, c / c[-1])).pvalue
        assert p > 1e-6


def test_a_side_chosen_with_the_bits_of_its_size_is_caught(seed: int):
    """Broken variant: one draw for both, so that large values come with one side only."""
    units = DReLUUnits(*(on_device(np.full(1, v)) for v in (0.0, 0.0, 1.0, 1.0)))

    def wrong(bits):
        fields = jnp.zeros((NUM_DRAWS, 1))
        is_above = bits.bernoulli(fields, 0) > 0
        size = half_normal.draw(bits, fields, 0)
        return jnp.where(is_above, size, -size)

    def right(bits):
        return units.sample(bits, jnp.zeros((NUM_DRAWS, 1)), 0)

    assert stats.kstest(_drawn(right, seed)[:, 0], stats.norm.cdf).pvalue > 1e-6
    assert stats.kstest(_drawn(wrong, seed)[:, 0], stats.norm.cdf).pvalue < 1e-6
