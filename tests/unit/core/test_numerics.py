"""Float32 that keeps its digits: against decimal arithmetic of 80 digits, inside jit."""

import decimal
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annealz.core.numerics import add_compensated, softplus_difference

_difference = jax.jit(softplus_difference)
TOLERANCE = 8 * 2.0**-24  # of |step|: a few roundings of float32


def reference(low: float, step: float) -> float:
    """softplus(low + step) - softplus(low), formed as the plain difference, with 80 digits."""
    with decimal.localcontext(prec=80):
        low, step = decimal.Decimal(low), decimal.Decimal(step)
        return float((1 + (low + step).exp()).ln() - (1 + low.exp()).ln())


def error(function, low: float, step: float) -> float:
    """Error in units of |step|; the exact difference is never larger than |step|."""
    low, step = float(np.float32(low)), float(np.float32(step))
    value = float(function(jnp.float32(low), jnp.float32(step)))
    return abs(value - reference(low, step)) / abs(step)


def finite(size: float):
    return st.floats(-size, size, width=32).filter(lambda x: abs(x) > 1e-30)


@given(low=finite(80), step=finite(80))
def test_difference_at_any_step(low: float, step: float):
    assert error(_difference, low, step) < TOLERANCE


@given(low=finite(30), exponent=st.floats(-7, 0), sign=st.sampled_from((-1, 1)))
def test_difference_at_small_steps(low: float, exponent: float, sign: int):
    """Where a schedule of many steps lives, and where the plain difference has no digits left."""
    assert error(_difference, low, sign * 10**exponent) < TOLERANCE


@pytest.mark.parametrize("low", [-80.0, -20.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 20.0, 80.0])
@pytest.mark.parametrize("step", [1e-20, 1e-7, 1e-3, 0.5, 3.0, 80.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_difference_on_a_grid(low: float, step: float, sign: int):
    assert error(_difference, low, sign * step) < TOLERANCE


def test_no_step_is_no_difference():
    np.testing.assert_array_equal(_difference(jnp.linspace(-200, 200, 401), jnp.zeros(401)), 0)


def test_the_plain_difference_would_fail():
    """Mutants: the difference of two softplus, and one form for both signs of low."""

    def plain(low, step):
        return jax.nn.softplus(low + step) - jax.nn.softplus(low)

    def one_form(low, step):
        return jnp.log1p(jax.nn.sigmoid(low) * jnp.expm1(step))

    assert error(plain, 20.0, 1e-4) > 100 * TOLERANCE
    assert error(one_form, 20.0, -18.0) > 100 * TOLERANCE


@pytest.mark.parametrize(
    ("low", "step"), [(-3.0, 100.0), (3.0, -100.0), (-90.0, 120.0), (90.0, -120.0)]
)
def test_overflow_is_seen(low: float, step: float):
    """The header's promise: inf or NaN where the form overflows, never a plausible number."""
    assert not np.isfinite(_difference(low, step))


@pytest.mark.parametrize(("low", "step"), [(-88.0, 87.0), (-90.0, 88.0), (90.0, -88.0)])
def test_underflow_gives_no_plausible_number(low: float, step: float):
    """Opposite signs with |low| over 87 and |step| near 88."""
    value = float(_difference(low, step))
    assert not np.isfinite(value) or error(_difference, low, step) < TOLERANCE


# --- compensated sum -------------------------------------------------------------------------


@jax.jit
def _sums(increments):
    """(plain, compensated total, carry), in one compiled loop, as the engine does it."""

    def add(i, sums):
        plain, total, carry = sums
        return plain + increments[i], *add_compensated(total, carry, increments[i])

    return jax.lax.fori_loop(0, len(increments), add, (jnp.float32(0),) * 3)


@pytest.mark.parametrize("offset", [0.0, 1e-3, 0.1])
def test_compensated_sum_beats_the_plain_one(offset: float, seed: int):
    """A compiler that reassociates would turn the compensation into zero: nothing else shows it."""
    generator = np.random.default_rng(seed)
    increments = (offset + 0.01 * generator.normal(size=100_000)).astype(np.float32)
    increments[0] = 500.0
    truth = math.fsum(increments.astype(np.float64))
    plain, total, carry = (float(part) for part in _sums(increments))
    assert abs(plain - truth) > 1e-4  # what the engine would lose without it
    assert abs(total + carry - truth) < 1e-3 * abs(plain - truth)
    assert abs(total + carry - truth) < 1e-7 * abs(truth)


def test_compensated_sum_is_exact_where_the_pair_holds_it():
    parts = np.array([2.0**24, 1.0, 1.0, -(2.0**24)], np.float32)
    _, total, carry = _sums(parts)
    assert float(total) + float(carry) == 2.0


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=16))
def test_two_sum_loses_nothing(values: list[float]):
    """Increments of any sign and order: what is lost is a rounding of the carry."""
    increments = np.zeros(16, np.float32)
    increments[: len(values)] = values
    _, total, carry = (float(part) for part in _sums(increments))
    scale = sum(abs(value) for value in values)
    assert abs(total + carry - math.fsum(values)) <= 2.0**-40 * scale + 1e-30  # no subnormals


@pytest.mark.parametrize("step", [-200.0, -100.0, 100.0, 200.0])
def test_difference_from_zero(step: float):
    """The first step of a path starts at 0: no overflow, whatever the field."""
    found = float(softplus_difference(jnp.float32(0), jnp.float32(step)))
    assert found == pytest.approx(np.logaddexp(0, step) - np.log(2), rel=1e-6)
