"""BAR: against pymbar, against Gaussian work whose answer is known, and far outside of comfort.

W_F ~ N(D - s^2/2, s^2) and W_R ~ N(D + s^2/2, s^2) obey Crooks's theorem exactly.
"""

import sys

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annealz.diagnostics.bar import bar
from annealz.testing import assert_within_mc_error
from support.work import gaussian_work

moderate = st.lists(st.floats(-20, 20), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def pymbar():
    """pymbar's estimators, imported as if there were no JAX: it would switch to 64 bits."""
    mark, kept = jax.config.jax_enable_x64, sys.modules["jax"]
    sys.modules["jax"] = None  # type: ignore[assignment]  # a module that is not there
    try:
        from pymbar import other_estimators
    finally:
        sys.modules["jax"] = kept
    assert jax.config.jax_enable_x64 == mark
    return other_estimators


# --- against pymbar ---------------------------------------------------------------------------


@given(
    sizes=st.tuples(st.integers(2, 200), st.integers(2, 200)),
    s=st.floats(0.1, 4),
    shift=st.floats(-1e4, 1e4),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_pymbar_agrees_on_gaussian_work(pymbar, sizes, s, shift, seed):
    """There forward work is minus what it is here."""
    forward, reverse = gaussian_work(np.random.default_rng(seed), *sizes, s)
    with np.errstate():  # pymbar leaves its own behind
        theirs = pymbar.bar(-forward, reverse, relative_tolerance=1e-13, uncertainty_method="MBAR")
    found = bar(forward, reverse)
    assert found.log_ratio == pytest.approx(-theirs["Delta_f"], abs=1e-8)
    assert found.std_err == pytest.approx(theirs["dDelta_f"], rel=1e-6, abs=1e-7)
    known = 1 / sizes[0] + 1 / sizes[1]  # of which the overlap tells the rest
    assert found.overlap == pytest.approx(known / (known + theirs["dDelta_f"] ** 2), abs=1e-6)
    moved = bar(forward + shift, reverse + shift)
    assert moved.log_ratio == pytest.approx(shift - theirs["Delta_f"], abs=1e-8)


@given(forward=moderate, reverse=moderate)
def test_any_work_solves_pymbars_equation_to_1e8(pymbar, forward, reverse):
    """Its own solver loses the bracket on some of these; its equation changes sign where it should."""
    forward, reverse = np.array(forward), np.array(reverse)
    found = bar(forward, reverse)
    if found.overlap < 1e-6 and found.crooks_z < 0:
        return  # sides in the wrong order: the equation is flat in float64
    with np.errstate():
        left, right = (
            pymbar.bar_zero(-forward, reverse, -(found.log_ratio + h)) for h in (-1e-8, 1e-8)
        )
    assert left > 0 > right


# --- identities -------------------------------------------------------------------------------


@given(forward=moderate, reverse=moderate, scale=st.sampled_from([1.0, 30.0, 500.0]))
def test_exchange_of_the_sides_changes_the_sign(forward, reverse, scale):
    forward, reverse = scale * np.array(forward), scale * np.array(reverse)
    one, other = bar(forward, reverse), bar(-reverse, -forward)
    if one.overlap > 1e-9:  # else the root is one of many to rounding
        assert one.log_ratio == pytest.approx(-other.log_ratio, abs=1e-5)
    assert one.overlap == pytest.approx(other.overlap, abs=1e-9)
    assert 0 <= one.overlap <= 1
    assert one.std_err >= 0


@pytest.mark.parametrize("shift", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 300), (300, 2)])
def test_constant_work_is_the_answer(sizes, shift):
    found = bar(np.full(sizes[0], shift), np.full(sizes[1], shift))
    assert found.log_ratio == pytest.approx(shift, abs=1e-9)
    assert found.std_err < 1e-12
    assert found.overlap == pytest.approx(1)
    assert found.effective == pytest.approx(sizes)


@pytest.mark.parametrize("apart", [50.0, 2e3, 1e4])
def test_sides_that_never_meet_have_an_answer_and_no_error(apart):
    """Only the tips count: x is halfway between the log sums of either side."""
    forward, reverse = np.array([-apart, -apart - 1]), np.array([apart, apart + 2, apart + 3])
    found = bar(forward, reverse)
    tips = np.logaddexp(0, -1) - apart, apart - np.logaddexp.reduce([0, -2, -3])
    assert found.log_ratio == pytest.approx(sum(tips) / 2 - np.log(2 / 3), abs=1e-9)
    assert found.overlap < 1e-15
    assert found.std_err > 1e6


def test_sides_in_the_wrong_order_are_solved_too():
    found = bar(np.array([1e4, 1e4 + 2]), np.array([-1e4, -1e4 - 2]))
    assert found.log_ratio == pytest.approx(0, abs=1e-9)  # by symmetry
    assert found.std_err == np.inf


def test_bad_work_is_refused():
    good = np.zeros(3)
    for bad in (np.array([]), np.array([0.0, np.nan]), np.array([np.inf]), np.zeros((2, 2))):
        with pytest.raises(ValueError, match="forward work must be a vector of finite"):
            bar(bad, good)
        with pytest.raises(ValueError, match="reverse work must be a vector of finite"):
            bar(good, bad)


# --- statistics -------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.5, 1.0, 2.0, 3.0])
def test_unbiased_and_covered_on_gaussian_work(s, seed):
    """Coverage over 4000 pairs of this kind, nominal 0.95: 0.945, 0.947, 0.949, 0.940."""
    generator = np.random.default_rng(seed)
    found = [bar(*gaussian_work(generator, 100, 60, s, 5.0)) for _ in range(300)]
    values, errors = (np.array([getattr(f, n) for f in found]) for n in ("log_ratio", "std_err"))
    assert_within_mc_error(values.mean(), 5.0, values.std(ddof=1) / np.sqrt(300))
    assert values.std(ddof=1) / np.sqrt((errors**2).mean()) == pytest.approx(1, abs=0.2)
    hits = int((abs(values - 5) < 1.96 * errors).sum())
    assert 266 <= hits <= 299  # a binomial count outside has p < 1e-5
    z = np.array([f.crooks_z for f in found])
    assert_within_mc_error(z.std(ddof=1), 1, 1 / np.sqrt(600))
    assert abs(z).max() < 5


def test_mutants_contradict_crooks(seed):
    """A reverse run whose work has the wrong sign, and one that starts elsewhere."""
    forward, reverse = gaussian_work(np.random.default_rng(seed), 400, 400, 1.0)
    assert abs(bar(forward, reverse).crooks_z) < 4.5
    assert bar(forward, -reverse).crooks_z < -8
    assert bar(forward, reverse + 0.7).crooks_z > 5
