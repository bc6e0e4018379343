"""log Z along the path and its integral, on systems whose every log Z(beta) is known."""

import dataclasses

import numpy as np
import pytest

from annealz.bases.bernoulli import BernoulliBase
from annealz.diagnostics.along import log_z_along
from annealz.engine.anneal import anneal
from annealz.engine.observers import Expectation
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.schedules.rules import linear, sm08
from annealz.testing import (
    GaussianPath,
    PerfectKernel,
    assert_within_mc_error,
    binary_states,
    log_joint,
    random_rbm,
    spins_path,
)

BETAS = np.array([0.013, 0.21, 0.5, 0.777, 0.98, 1.0])
BASE = BernoulliBase.from_logits([0.75, -1.5, 1.0, -0.25, 2.0])
MODEL = random_rbm(4, 5, scale=1.2, seed=11)
GAUSSIAN = GaussianPath(1.5, 0.6)
SPINS = spins_path([0.75, -1.5], [-0.5, 2.0], [1.5])


def gaussian_log_z(betas) -> np.ndarray:
    precision = 1 - betas + betas / GAUSSIAN.scale**2
    pull = betas * GAUSSIAN.mean / GAUSSIAN.scale**2
    offset = betas * (GAUSSIAN.mean / GAUSSIAN.scale) ** 2
    return (np.log(2 * np.pi / precision) + pull**2 / precision - offset) / 2


def spins_log_z(betas) -> np.ndarray:
    visible = [np.logaddexp(0, (1 - betas) * a + betas * b) for a, b in [(0.75, -0.5), (-1.5, 2.0)]]
    return sum(visible) + np.logaddexp(0, 1.5 * betas)


def rbm_log_z(betas) -> np.ndarray:
    start = binary_states(5) @ np.asarray(BASE.logits, np.float64)
    return np.array(
        [np.logaddexp.reduce((1 - b) * start + b * log_joint(MODEL), None) for b in betas]
    )


SYSTEMS = {
    "gaussian": (GAUSSIAN, PerfectKernel(), gaussian_log_z),
    "spins": (SPINS, BlockGibbs(), spins_log_z),
    "rbm": (GeometricPath(BASE, MODEL), BlockGibbs(), rbm_log_z),
}
systems = pytest.mark.parametrize("name", SYSTEMS)


def _run(name: str, seed: int, num_steps: int = 300, num_chains: int = 500, **settings):
    path, kernel, _ = SYSTEMS[name]
    return anneal(path, kernel, linear(num_steps), num_chains=num_chains, seed=seed, **settings)


@systems
def test_log_z_at_any_beta_is_within_its_error(name, seed):
    run, exact = _run(name, seed), SYSTEMS[name][2]
    found = log_z_along(run, BETAS)
    assert_within_mc_error(found.log_z, exact(BETAS), found.std_err + found.resolution)
    assert (found.resolution < 0.002).all()
    assert found.log_z[-1] == pytest.approx(run.trace.log_z[-1], abs=1e-12)
    assert found.std_err[-1] == pytest.approx(np.sqrt(1 / run.trace.ess[-1] - 1 / 500))


@systems
def test_records_come_back_as_they_are(name, seed):
    run = _run(name, seed, num_steps=50)
    found = log_z_along(run)
    assert found.betas[0] == 0
    assert found.log_z[0] == run.log_z0
    assert found.std_err[0] == 0
    assert np.array_equal(found.betas[1:], run.trace.betas)
    assert np.array_equal(found.log_z[1:], run.trace.log_z)
    again = log_z_along(run, found.betas)
    assert again.log_z == pytest.approx(found.log_z, abs=1e-12)
    assert (again.resolution == 0).all()


def _exact_record(path, exact, slope, betas):
    """A run whose trace holds the truth at these betas: what is left is interpolation."""
    run = anneal(path, PerfectKernel(), linear(2), num_chains=500)
    return dataclasses.replace(
        run,
        trace=dataclasses.replace(
            run.trace,
            steps=np.arange(1, betas.size + 1),
            betas=betas,
            log_z=exact(betas),
            ess=np.full(betas.size, 500.0),
            means={"slope": slope(betas)},
            variances={"slope": np.zeros(betas.size)},
        ),
    )


def test_interpolation_falls_with_the_fourth_power_and_resolution_bounds_it():
    inside, errors = np.linspace(0.3, 1, 400), []
    for num_records in (10, 20, 40):
        records = np.linspace(0, 1, num_records + 1)[1:]
        found = log_z_along(
            _exact_record(GAUSSIAN, gaussian_log_z, GAUSSIAN.slope_mean, records), inside
        )
        wrong = np.abs(found.log_z - gaussian_log_z(inside))
        assert (wrong <= found.resolution + 1e-12).all()
        errors.append(wrong.max())
    assert errors[0] / errors[1] > 10
    assert errors[1] / errors[2] > 10


def _integral(run) -> float:
    """log Z as the integral of the recorded mean slopes; at beta = 0 the first one serves again."""
    slopes = run.trace.means["slope"]
    betas = np.concatenate([[0.0], run.trace.betas])
    return run.log_z0 + float(np.trapezoid(np.concatenate([slopes[:1], slopes]), betas))


@systems
def test_recorded_slopes_integrate_to_the_runs_own_log_z(name, seed):
    """The derivative of log mean w is the weighted mean slope, whatever the noise of the chains."""
    run = _run(name, seed, num_steps=1000)
    std_err = np.sqrt(1 / run.trace.ess[-1] - 1 / run.num_chains)
    assert abs(_integral(run) - run.trace.log_z[-1]) < 0.25 * std_err


def test_mutants_break_the_integral(seed):
    """Slopes of the wrong sign, and of the base instead of the path."""
    run = _run("rbm", seed)
    slopes, std_err = run.trace.means["slope"], np.sqrt(1 / run.trace.ess[-1] - 1 / run.num_chains)
    for wrong in (-slopes, slopes + 1):
        trace = dataclasses.replace(run.trace, means={"slope": wrong})
        found = _integral(dataclasses.replace(run, trace=trace))
        assert abs(found - run.trace.log_z[-1]) > 10 * std_err


def test_uneven_and_very_short_schedules():
    path, kernel, exact = SYSTEMS["rbm"]
    run = anneal(path, kernel, sm08(400), num_chains=500, seed=1, record_every=7)
    found = log_z_along(run, BETAS)
    assert_within_mc_error(found.log_z, exact(BETAS), found.std_err + found.resolution)
    short = anneal(path, kernel, linear(1), num_chains=500)
    assert log_z_along(short, [0.0, 0.5, 1.0]).resolution == pytest.approx([0, np.inf, 0])


def test_bad_input_is_refused(seed):
    run = _run("spins", seed, num_steps=20)
    for betas in ([-0.1], [1.1], [np.nan], [[0.5]]):
        with pytest.raises(ValueError, match="betas must be a vector of numbers between 0 and 1"):
            log_z_along(run, betas)
    blind = _run("spins", seed, num_steps=20, observers={"mean": Expectation(lambda x: x)})
    assert log_z_along(blind).betas.size == 21
    with pytest.raises(ValueError, match="must have recorded its slope"):
        log_z_along(blind, [0.5])
