"""Memory of chains: against AR(1) in closed form, against transition matrices, and at its edges.

The exact tau of f under a transition matrix P with law pi, D = diag(pi), f centred:

    tau = (2 f^T D (I - P + 1 pi^T)^-1 f - f^T D f) / f^T D f

`EASY`, `SLOW` and `STUCK` serve test_survey_mixing.py and test_mixing.py as well: tau up to 1.6, up to 42,
and up to half a million.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

from annealz.core.random import Stream
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.geometric import GeometricPath
from annealz.pilots.autocorrelation import Memory, measure_memory
from annealz.pilots.run_at_beta import run_at_beta
from annealz.testing import assert_within_mc_error, binary_states
from support.enumeration import transition_matrix
from support.memory import EASY, SLOW, exact, lag_one
from support.systems import marginals

pytestmark = pytest.mark.usefixtures("optimised")


def near(values, truth: float, bias: float) -> None:
    """The mean of replicates is the truth, up to this relative bias, within Monte Carlo error."""
    mean, count = np.mean(values), len(values)
    allowed = np.clip(mean, *np.sort([truth * (1 - bias), truth * (1 + bias)]))
    std_err = np.std(values, ddof=1) / np.sqrt(count)
    assert_within_mc_error(mean, allowed, std_err, num_replicates=count)


def autoregressive(rho: float, shape: tuple[int, int], generator: np.random.Generator):
    """AR(1) of variance 1, in equilibrium from the start: tau = (1 + rho) / (1 - rho)."""
    noise = generator.normal(size=shape)
    noise[1:] *= np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise, axis=0)


# --- mutants ---------------------------------------------------------------------------------


def centred_on_itself(values: np.ndarray) -> Memory:
    """Mutant: every chain about its own mean."""
    return measure_memory(values - values.mean(0) + values.mean())


def one_sided(values: np.ndarray) -> Memory:
    """Mutant: tau = 1 + sum rho, without the 2."""
    memory = measure_memory(values)
    return memory._replace(tau=(memory.tau + 1) / 2)


# --- AR(1) -----------------------------------------------------------------------------------

NUM_REPLICATES = 40


def memories(rho: float, shape: tuple[int, int], seed: int, measure=measure_memory) -> list[Memory]:
    generator = np.random.default_rng(seed)
    return [measure(autoregressive(rho, shape, generator)) for _ in range(NUM_REPLICATES)]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.5])
@pytest.mark.parametrize(("shape", "bias"), [((1000, 50), 0.02), ((4000, 1), 0.07)])
def test_tau_of_autoregressions(rho: float, shape: tuple[int, int], bias: float, seed: int):
    """1, 3, 19 and, antithetic, 1/3. The cut leaves +0.5 % with 50 chains, +4 % with a single one.

    The last lag of a single chain is noisy enough to look like memory, once in a while.
    """
    found = memories(rho, shape, seed)
    near([memory.tau for memory in found], (1 + rho) / (1 - rho), bias)
    near([memory.variance for memory in found], 1.0, 0.01)
    assert sum(memory.is_bound for memory in found) <= (0 if shape[1] > 1 else 8)


@pytest.mark.parametrize("rho", [0.5, 0.9, -0.5])
def test_tau_without_the_2_is_not(rho: float, seed: int):
    found = memories(rho, (1000, 50), seed, one_sided)
    with pytest.raises(AssertionError, match="z = "):
        near([memory.tau for memory in found], (1 + rho) / (1 - rho), 0.02)


@pytest.mark.parametrize(
    ("theta", "least", "most"), [(200, 0.85, 1.15), (1000, 0.8, 1.4), (4000, 0.3, 0.9)]
)
def test_what_a_stay_cannot_see_is_guessed_and_marked(
    theta: float, least: float, most: float, seed: int
):
    """tau = 2 theta of 50 chains over 1000 steps: near the truth up to there, and too low far beyond."""
    found = memories(np.exp(-1 / theta), (1000, 50), seed)
    assert all(memory.is_bound for memory in found) or theta < 500
    ratio = np.median([memory.tau for memory in found]) / (2 * theta)
    assert least < ratio < most


def test_without_the_guess_it_is_far_too_low(seed: int, monkeypatch: pytest.MonkeyPatch):
    """The mutant: the sum of what was seen."""
    monkeypatch.setattr("annealz.pilots.autocorrelation._beyond", lambda correlations: 0.0)
    found = memories(np.exp(-1 / 1000), (1000, 50), seed)
    assert np.median([memory.tau for memory in found]) < 0.6 * 2000


def test_tau_has_no_unit(seed: int):
    values = autoregressive(0.7, (300, 20), np.random.default_rng(seed))
    one, other = measure_memory(values), measure_memory(-40 * values + 1000)
    assert other.tau == pytest.approx(one.tau, rel=1e-9)
    assert other.mean == pytest.approx(1000 - 40 * one.mean)
    assert other.variance == pytest.approx(1600 * one.variance)


def test_chains_that_stay_in_their_mode_are_seen(seed: int):
    """Two modes, no switch: only a bound can be told. Centred on itself no chain remembers."""
    generator = np.random.default_rng(seed)
    modes = np.where(np.arange(50) < 20, -3.0, 3.0)
    values = autoregressive(0.5, (400, 50), generator) + modes
    memory, mutant = measure_memory(values), centred_on_itself(values)
    assert memory.is_bound
    assert memory.tau > 100
    assert memory.variance == pytest.approx(1 + 9 * 0.96, rel=0.05)
    assert not mutant.is_bound
    assert mutant.tau < 4


# --- edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 1e-20, -7.25, 1e6])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (100, 5)])
def test_constants_have_no_memory(value: float, shape: tuple[int, int]):
    memory = measure_memory(np.full(shape, value))
    assert memory.mean == pytest.approx(value, rel=1e-12, abs=0)
    assert memory.variance == pytest.approx(0, abs=1e-12 * value**2)
    assert (memory.tau, memory.is_bound) == (1, False)


def test_constants_of_their_own_are_a_bound():
    memory = measure_memory(np.tile(np.arange(8.0), (100, 1)))
    assert memory.is_bound
    assert memory.tau > 40
    assert memory.variance == pytest.approx(np.arange(8).var(), rel=0.01)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_too_short_to_tell(length: int):
    values = np.random.default_rng(length).normal(5, 1, (length, 20))
    memory = measure_memory(values)
    assert memory.is_bound
    assert memory.tau == 1
    assert memory.mean == pytest.approx(values.mean())
    assert memory.variance == pytest.approx(values.var(ddof=1))


@pytest.mark.parametrize("length", range(1, 12))
@pytest.mark.parametrize("num_chains", [1, 2, 20])
def test_short_chains_give_numbers(length: int, num_chains: int):
    memory = measure_memory(np.random.default_rng(length).normal(size=(length, num_chains)))
    assert np.isfinite(memory[:3]).all()
    assert memory.tau > 0
    assert memory.variance >= 0


# --- exactly ---------------------------------------------------------------------------------


@marginals
@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
def test_the_matrix_is_that_of_the_kernel(marginal: str, beta: float):
    path = GeometricPath(*EASY, marginal)
    enumerated = transition_matrix(BlockGibbs(), path, beta)
    np.testing.assert_allclose(exact(path, beta).matrix, enumerated, atol=1e-12)


def test_the_formula_is_the_sum_of_correlations():
    here = exact(GeometricPath(*SLOW), 0.8)
    centred = moved = here.slopes - here.mean
    tau = 1.0
    for _ in range(1000):
        moved = here.matrix @ moved
        tau += 2 * (here.law * centred) @ moved / here.g
    assert here.tau == pytest.approx(tau, rel=1e-9)


def stationary(path: GeometricPath, beta: float, seed: int, measure=measure_memory) -> list[Memory]:
    """20 replicates of 50 chains, 1500 sweeps, from exact samples."""
    law = exact(path, beta).law
    drawn = np.random.default_rng(seed).choice(law.size, 1000, p=law / law.sum())
    x = jnp.asarray(binary_states(law.size.bit_length() - 1)[drawn], jnp.float32)
    stream, chains = Stream(seed, "stationary"), jnp.arange(1000)
    _, slopes = run_at_beta(
        path, BlockGibbs(), stream, chains, x, jnp.float32(beta), jnp.int32(0), 1500
    )
    groups = np.split(np.asarray(slopes, np.float64), 20, axis=1)
    return [measure(group) for group in groups]


@marginals
@pytest.mark.parametrize("system", [EASY, SLOW], ids=["easy", "slow"])
@pytest.mark.parametrize("beta", [0.25, 0.75, 1.0])
def test_tau_of_stationary_chains(system, marginal: str, beta: float, seed: int):
    """tau from 1.02 to 41.7; what the cut leaves is under 1.1 %."""
    path = GeometricPath(*system, marginal)
    truth, found = exact(path, np.float32(beta)), stationary(path, beta, seed)
    near([memory.tau for memory in found], truth.tau, 0.02)
    near([memory.variance for memory in found], truth.g, 0.002)
    near([memory.mean for memory in found], truth.mean, 0.0)


@marginals
def test_one_lag_tells_too_little(marginal: str, seed: int):
    """Within a mode chains forget at once: 3 sweeps by the first lag, where 33 and 42 are due."""
    path = GeometricPath(*SLOW, marginal)
    truth = exact(path, 1.0)
    found = [memory.tau for memory in stationary(path, 1.0, seed, lag_one)]
    near(found, truth.lag_one_tau, 0.01)
    assert np.mean(found) < truth.tau / 10
    with pytest.raises(AssertionError, match="z = "):
        near(found, truth.tau, 0.02)
