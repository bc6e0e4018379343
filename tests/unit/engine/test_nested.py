"""Nested sampling: walks leave the constrained prior invariant, counts are exact, log Z by z-test."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

import annealz
from annealz.core.arrays import indices, on_device
from annealz.core.random import Stream
from annealz.diagnostics.nested import nested_sum
from annealz.methods.nested import nested as engine
from annealz.methods.nested.result import Ending
from annealz.methods.nested.walk import Points, Target, walk
from annealz.testing import assert_within_mc_error
from support.bumps import SMALL, WIDE, bumps

RUN: dict[str, Any] = {"num_live": 40, "num_delete": 8, "num_inner_steps": 10, "tolerance": 1e-2}
TARGET = Target(bumps(), WIDE.unnamed())


def run(model: annealz.LogDensity = bumps(), seed: int = 0, **options):  # noqa: B008
    return engine.nested(
        Target(model, WIDE.unnamed()), seed=seed, purpose="test", **{**RUN, **options}
    )


# --- walks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_broken", [False, True])
def test_walks_leave_the_prior_above_the_contour_invariant(seed, is_broken: bool):
    """From exact draws; the broken variant walks above another contour than it started from."""
    generator, contour = np.random.default_rng(seed), -6.0
    x = on_device(generator.normal(0, 3, (400_000, 2)))
    log_prior, log_likelihood = eqx.filter_jit(TARGET)(x, on_device(0.0))
    kept = np.flatnonzero(np.asarray(log_likelihood) > contour)[:2000]
    start = Points(x[kept], log_prior[kept], log_likelihood[kept])
    bits = Stream(seed, "walk").at(1, indices(len(kept)))
    factor = on_device(np.linalg.cholesky(np.cov(start.x.T)))
    level = on_device(contour + (1.5 if is_broken else 0.0))
    end, walked = eqx.filter_jit(walk)(bits, start, level, factor, TARGET, on_device(0.0), 3)
    law = np.asarray(log_likelihood)[np.asarray(log_likelihood) > contour]
    _, p = stats.ks_2samp(law, np.asarray(end.log_likelihood))
    assert (p < 1e-6) == is_broken
    if is_broken:
        return
    assert int(walked.num_failed) == int(walked.num_nan) == 0
    assert (np.asarray(end.log_likelihood) > contour).all()
    assert (np.asarray(end.x) != np.asarray(start.x)).all()
    again = eqx.filter_jit(TARGET)(end.x, on_device(0.0))  # what the walk carries is what is there
    np.testing.assert_allclose(end.log_prior, again[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(end.log_likelihood, again[1], rtol=1e-5, atol=1e-5)


# --- runs ------------------------------------------------------------------------------------


def test_evaluations_are_counted_as_they_are_made():
    calls = []

    def count(x):
        calls.append(x.size // 2)
        return np.float32(-8 * ((x - 0.5) ** 2).sum(-1))

    def fn(x):
        shape = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(count, shape, x, vmap_method="expand_dims")

    result = run(annealz.LogDensity(fn, 2, is_differentiable=False), max_evaluations=5000)
    jax.effects_barrier()
    assert sum(calls) == result.evaluations


def test_points_are_born_below_where_they_die():
    result = run()
    is_later = ~np.isnan(result.births)
    assert (~is_later).sum() == RUN["num_live"]
    assert (result.deaths[is_later] > result.births[is_later]).all()
    assert result.ending is Ending.DONE
    assert result.deaths.size == len(result.x)
    assert result.num_slices == 10 * (result.deaths.size - RUN["num_live"])


def test_pieces_change_no_bit(monkeypatch):
    whole = run(seed=3)
    monkeypatch.setattr(engine, "_PIECE", 5)
    other = run(seed=3)
    count = min(whole.deaths.size, other.deaths.size) - RUN["num_live"]
    np.testing.assert_array_equal(whole.x[:count], other.x[:count])
    assert not np.array_equal(run(seed=4).x[:40], whole.x[:40])


def test_a_high_likelihood_is_resolved():
    """Its differences near the top are kept: the offset follows the highest live point."""
    low, high = run(seed=1), run(bumps(height=1e4), seed=1)
    assert np.unique(high.deaths).size > 0.99 * high.deaths.size
    assert abs(high.deaths.max() - low.deaths.max() - 1e4) < 0.01


def test_a_plateau_ends_the_run():
    """A likelihood of one or zero: one on a quarter of the prior, beyond 0.674 standard deviations."""
    result = run(bumps(is_flat=True, edge=3 * 0.674490), tolerance=1e-9)
    assert result.ending is Ending.PLATEAU
    found = nested_sum(result.births, result.deaths)
    assert_within_mc_error(found.log_z - WIDE.log_z, np.log(0.25), found.std_err)


def test_a_peak_above_the_live_points_is_found_and_reached():
    """They hold next to nothing where the wide state is over, and the narrow one is 12 nats higher."""
    result = run(bumps(((0.3, 0.1), (0.3, 0.1)), (2e-3, 1.0), (1.0, 1.0)))
    peak = -2 * np.log(2e-3) - np.log(2 * np.pi) - float(WIDE.log_density(on_device([0.3, 0.1])))
    assert result.top == pytest.approx(peak + WIDE.log_z, abs=0.1)
    assert result.deaths.max() == pytest.approx(result.top, abs=0.5)
    assert result.ending is Ending.DONE


def test_an_unbounded_likelihood_does_not_run_for_ever():
    """A flat density has infinite mass: its likelihood under the prior rises without end."""
    assert run(bumps(scales=(1e9, 1.0))).ending is Ending.UNRESOLVED


def test_a_limit_of_evaluations_is_kept():
    result = run(max_evaluations=10_000)
    assert result.ending is Ending.OUT_OF_EVALUATIONS
    assert result.evaluations <= 10_000
    assert result.share_left > 0.1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"height": np.nan}, "must be a number at every draw from the prior, got NaN at 40 of 40"),
        ({"height": np.inf}, "the likelihood is infinite"),
        ({"edge": 1e9}, "the likelihood is zero at all 40 draws from the prior"),
    ],
)
def test_what_no_run_can_start_from_is_refused(changes, words: str):
    with pytest.raises(ValueError, match=words):
        run(bumps(**changes))


# --- log Z -----------------------------------------------------------------------------------

PROBLEMS = {
    "one bump": (bumps(), 0.0),
    "raised": (bumps(height=-300.0), -300.0),
    "half of it zero": (bumps(edge=0.5), np.log(0.5)),
    "narrow inside wide": (bumps(((0.3, 0.1), (0.3, 0.1)), (0.01, 1.0), (1.0, 1.0)), np.log(2)),
    "two apart": (bumps(((-3.0, 0.0), (3.0, 1.0)), (0.3, 0.5), (1.0, 3.0)), np.log(4)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_log_z_against_closed_forms(name: str, seed):
    model, exact = PROBLEMS[name]
    estimate = annealz.estimate_log_z(model, method="nested", seed=seed, **SMALL)
    assert_within_mc_error(estimate.log_z, exact, estimate.std_err)
    assert estimate.std_err < 0.5
