"""Kaufman's log Z of the square Ising lattice: brute sums, transfer matrices, Onsager's limit."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import annealz
from annealz.core.weights import delta_std_err, log_mean
from annealz.models.ising_lattice import CRITICAL_COUPLING, square_ising_log_z
from annealz.testing import assert_within_mc_error, default_seed


def spins_of(height: int, width: int) -> np.ndarray:
    """Every state of a lattice, (states, height, width)."""
    numbers = np.arange(2 ** (height * width))[:, None]
    return (2 * (numbers >> np.arange(height * width) & 1) - 1).reshape(-1, height, width)


@pytest.mark.parametrize("side", [(2, 2), (3, 4), (4, 3), (4, 4)])
@pytest.mark.parametrize(
    "along", [(0.2, 0.2), (CRITICAL_COUPLING,) * 2, (0.7, 0.3), (0.0, 0.5), (0.5, 0.0), (0.01, 1.5)]
)
def test_kaufman_is_the_brute_sum(side: tuple[int, int], along: tuple[float, float]):
    spins = spins_of(*side)
    energy = along[0] * (spins * np.roll(spins, 1, 2)).sum((1, 2))
    energy = energy + along[1] * (spins * np.roll(spins, 1, 1)).sum((1, 2))
    assert square_ising_log_z(side, along) == pytest.approx(logsumexp(energy), rel=1e-13)


@pytest.mark.parametrize("coupling", [0.3, CRITICAL_COUPLING, 0.6])
@pytest.mark.parametrize("height", [8, 32])
def test_kaufman_is_the_trace_of_the_transfer_matrix(coupling: float, height: int):
    """8 columns, any number of rows: Z = trace of the matrix that adds a row, to the power of rows."""
    spins = spins_of(1, 8)[:, 0]
    within = coupling * (spins * np.roll(spins, 1, 1)).sum(1)
    log_matrix = coupling * (spins @ spins.T) + (within[:, None] + within) / 2
    values = np.linalg.eigvalsh(np.exp(log_matrix - log_matrix.max()))
    log_values = np.log(np.abs(values[values != 0]))
    log_z = logsumexp(height * log_values) + height * log_matrix.max()
    assert square_ising_log_z((height, 8), coupling) == pytest.approx(log_z, rel=1e-12)


def test_kaufman_knows_the_sign_on_even_sides_only():
    assert square_ising_log_z(4, -0.3) == pytest.approx(square_ising_log_z(4, 0.3))
    with pytest.raises(ValueError, match="negative coupling along a row needs an even number"):
        square_ising_log_z(3, -0.3)


def test_the_infinite_lattice_is_onsagers():
    """log Z / n of a large lattice against Onsager's integral."""
    coupling, grid_points = 0.35, (np.arange(4000) + 0.5) * np.pi / 4000
    c = np.cosh(2 * coupling) ** 2
    k = np.sinh(2 * coupling)
    inner = c - k * np.cos(grid_points)
    onsager = np.log(2) / 2 + np.mean(np.log(inner + np.sqrt(inner**2 - k**2))) / 2
    assert square_ising_log_z(256, coupling) / 256**2 == pytest.approx(onsager, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "coupling", "num_steps"),
    [(16, 0.3, 500), (16, CRITICAL_COUPLING, 1000), (32, CRITICAL_COUPLING, 4000)],
)
def test_large_lattices_of_many_seeds(side: int, coupling: float, num_steps: int):
    """20 runs over one frozen schedule, each within its stated error, and spread as stated."""
    model = annealz.Ising.square(side, coupling)
    path, kernel = model.path(model.choose_base()), model.kernel()
    schedule = annealz.plan_schedule(
        "mixing", path, kernel, num_steps=num_steps, num_chains=256, seed=default_seed()
    )
    scores = []
    for i in range(20):
        run = annealz.anneal(path, kernel, schedule, num_chains=256, seed=default_seed() + i)
        log_z, std_err = run.log_z0 + log_mean(run.log_weights), delta_std_err(run.log_weights)
        assert_within_mc_error(log_z, model.exact_log_z(), std_err)
        scores.append((log_z - model.exact_log_z()) / std_err)
    spread = np.sum(np.square(scores))
    assert 1e-6 < stats.chi2(20).sf(spread) < 1 - 1e-6, scores
