"""The entropy of arrays: its joint error, its interval, what is found of its terms; no chain is run."""

import numpy as np
import pytest

from annealz.diagnostics.entropy import EntropyJudgement, judge_entropy
from annealz.diagnostics.findings import Kind

LOGS = np.array([0.0, 1.5, -0.7, 2.0, 0.4, 1.0])  # log p* of six states
LAW = np.exp(LOGS) / np.exp(LOGS).sum()
EXACT = -(LAW @ np.log(LAW))
CHAINS = 100


def draws(count: int, size: int = CHAINS, spread: float = 0.3, seed: int = 0):
    """Importance weights of uniform draws, with noise of mean 1: (sets, size) of log w and of log p*."""
    generator = np.random.default_rng(seed)
    g = LOGS[generator.integers(len(LOGS), size=(count, size))]
    noise = generator.normal(-(spread**2) / 2, spread, g.shape)
    return g + noise, g


def independent_error(judged: EntropyJudgement) -> float:
    """The broken variant: both errors in quadrature, as if they came from different chains."""
    w = np.exp(judged.log_weights)
    return float(np.hypot(judged.mean_std_err, w.std() / w.mean() / np.sqrt(w.size)))


def test_calibrated_over_many_sets():
    """log w and log p* go together here, so that errors in quadrature would be far too large."""
    judged = [judge_entropy(*row) for row in zip(*draws(300), strict=True)]
    off = np.array([one.value + np.log(len(LOGS)) - EXACT for one in judged])
    ratio = off / [one.std_err for one in judged]
    assert 0.87 < np.sqrt((ratio**2).mean()) < 1.17
    wide = off / [independent_error(one) for one in judged]
    assert np.sqrt((wide**2).mean()) < 0.8
    bounds = [one.interval(0.9) for one in judged]
    truth = EXACT - np.log(len(LOGS))
    covered = sum(low < truth < high for low, high in bounds)
    assert 249 < covered < 291  # 270, and four standard deviations on either side


def test_the_error_is_that_of_the_jackknife():
    (log_weights,), (g,) = draws(1, size=400)
    judged = judge_entropy(log_weights, g)
    left_out = np.array(
        [judge_entropy(np.delete(log_weights, i), np.delete(g, i)).value for i in range(0, 400, 20)]
    )
    jackknife = np.sqrt(399**2 / 400 * ((left_out - judged.value) ** 2).mean())
    of_the_same = np.sqrt(_psi_squared(log_weights, g)[::20].mean() / 400)
    assert jackknife == pytest.approx(of_the_same, rel=0.02)
    assert judged.std_err == pytest.approx(np.sqrt(_psi_squared(log_weights, g).sum() / 400 / 399))


def _psi_squared(log_weights: np.ndarray, g: np.ndarray) -> np.ndarray:
    w = np.exp(log_weights) / np.exp(log_weights).mean()
    return (w * (1 - g + (w * g).mean()) - 1) ** 2


def test_islands_are_independent_and_chains_of_one_are_not():
    (log_weights,), (g,) = draws(1)
    apart = judge_entropy(log_weights, g)
    copied = judge_entropy(np.repeat(log_weights, 4), np.repeat(g, 4), island_size=4)
    assert copied.value == pytest.approx(apart.value)
    assert copied.std_err == pytest.approx(apart.std_err)
    low, high = copied.interval()
    assert (high - low) / copied.std_err == pytest.approx(2 * 1.984, abs=0.01)  # Student's, 99
    assert judge_entropy(log_weights, g, island_size=CHAINS).interval() == (-np.inf, np.inf)


@pytest.mark.parametrize(("size", "is_known"), [(1, False), (5, False), (20, True), (3000, True)])
def test_intervals_of_few_and_of_many_chains(size: int, is_known: bool):
    (log_weights,), (g,) = draws(1, size=size)
    judged = judge_entropy(log_weights, g)
    low, high = judged.interval(0.95)
    assert low < judged.value < high
    assert np.isfinite([low, high]).all() == is_known
    if size == 3000:
        assert (high - low) / judged.std_err == pytest.approx(2 * 1.96, rel=0.2)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        judged.interval(1.5)


def test_equal_chains_have_no_error():
    judged = judge_entropy(np.zeros(50), np.full(50, -3.0))
    assert (judged.value, judged.std_err, judged.mean_ess) == (3.0, 0.0, 50.0)
    assert judged.interval() == (3.0, 3.0)
    assert judged.ok


def test_ess_of_the_mean():
    """As many as chains where weights are equal; few where one weighty chain lies far off."""
    g = np.random.default_rng(1).normal(size=CHAINS)
    equal = judge_entropy(np.zeros(CHAINS), g)
    assert equal.mean_ess == pytest.approx(CHAINS, rel=0.02)
    assert equal.ok
    log_weights, far = np.zeros(CHAINS), g.copy()
    log_weights[0], far[0] = 2.0, 40.0
    assert Kind.FEW_EFFECTIVE_TERMS in judge_entropy(log_weights, far).findings


def test_heavy_terms_are_not_ok():
    generator = np.random.default_rng(2)
    heavy = -(generator.random(500) ** -1.5)  # k = 1.5, with equal weights
    judged = judge_entropy(np.zeros(500), heavy)
    assert Kind.HEAVY_TERMS in judged.findings
    assert not judged.ok


def test_chains_without_weight_have_no_part():
    (log_weights,), (g,) = draws(1)
    found = judge_entropy(np.append(log_weights, -1e18), np.append(g, -1e18))
    assert np.isfinite([found.value, found.std_err, *found.interval()]).all()
    assert found.mean == pytest.approx(judge_entropy(log_weights, g).mean)
