"""The verdict on a set of weights."""

import numpy as np
import pytest

from annealz.core.weights import bootstrap_interval, delta_interval
from annealz.diagnostics import diagnostics
from annealz.diagnostics.diagnostics import judge, pareto_k, pareto_k_limit
from annealz.diagnostics.findings import Kind
from annealz.diagnostics.status import Status


def _normal(sigma: float, size: int = 1000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(-(sigma**2) / 2, sigma, size)


def test_light_tails_are_ok():
    verdict = judge(_normal(0.5))
    assert verdict.status is Status.OK
    assert verdict.messages == ()


def test_an_interval_is_resampled_once_for_each_level(monkeypatch):
    calls = []
    monkeypatch.setattr(
        diagnostics,
        "bootstrap_interval",
        lambda *given, **more: calls.append(given[1]) or bootstrap_interval(*given, **more),
    )
    few = judge(_normal(0.5, 100))
    assert few.interval() == few.interval() != few.interval(0.5)
    assert few.interval(0.5) == bootstrap_interval(
        few.log_weights, 0.5, upper_std_err=_foretold(few)
    )
    assert calls == [0.95, 0.5]


def test_many_effective_chains_get_the_delta_interval():
    assert judge(_normal(0.5, 2000)).interval() == delta_interval(_normal(0.5, 2000))
    few = judge(_normal(0.5))
    assert few.interval() == bootstrap_interval(few.log_weights, upper_std_err=_foretold(few))


def _foretold(verdict) -> float:
    return np.sqrt(1 / verdict.foretold_ess - 1 / verdict.log_weights.size)


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails_are_called_a_lower_bound(seed: int):
    verdict = judge(_normal(4.0, seed=seed))
    assert verdict.status is Status.UNRELIABLE
    assert "probably underestimated" in verdict.messages[0]
    low, high = bootstrap_interval(verdict.log_weights)
    assert verdict.interval()[0] == low
    assert verdict.interval()[1] > high


def test_chains_left_behind_are_no_failure():
    """Half the chains with negligible weights: a large variance of log w, and a good mean."""
    log_weights = np.concatenate([_normal(0.4, 500), _normal(0.4, 500) - 12])
    verdict = judge(log_weights)
    assert verdict.variance > 30
    assert verdict.status is Status.OK
    assert "may be underestimated" in verdict.messages[0]
    low, high = bootstrap_interval(log_weights)
    assert verdict.interval() == pytest.approx((low, high), abs=0.1 * (high - low))


def test_few_chains_are_not_judged():
    for size in (1, 2, 24):
        verdict = judge(_normal(0.1, size))
        assert verdict.status is Status.UNRELIABLE
        assert list(verdict.findings) == [Kind.TOO_FEW_CHAINS]
        assert "try num_chains=100" in verdict.messages[0]


def test_equal_weights_are_perfect():
    verdict = judge(np.full(100, 2.5))
    assert (verdict.std_err, verdict.status) == (0, Status.OK)
    assert verdict.interval() == (2.5, 2.5)


def test_pareto_k_of_pareto_tails():
    """Weights with a Pareto tail of shape k have k-hat near k."""
    generator = np.random.default_rng(3)
    for shape in (0.3, 0.9):
        found = [pareto_k(-shape * np.log(generator.random(4000))) for _ in range(20)]
        assert abs(np.mean(found) - shape) < 0.1


def test_a_tail_that_was_not_drawn_is_predicted():
    """Log-normal weights of variance 4.4: some runs look sound by k-hat and ESS, and those are low."""
    verdicts = [judge(_normal(2.1, 500, seed)) for seed in range(100)]
    sound = [v for v in verdicts if v.pareto_k < pareto_k_limit(500) and v.ess >= 25]
    seen = [v for v in sound if list(v.findings) == [Kind.UNSEEN_TAIL]]
    assert len(seen) >= 5
    assert all("probably not drawn" in v.messages[0] for v in seen)
    assert np.mean([v.log_mean for v in sound]) < -0.15
    assert np.mean([v.log_mean for v in verdicts]) > -0.15


def test_two_modes_of_many_chains_are_no_unseen_tail():
    """A tenth of the chains with 0.9 of the mass: foretold few, but the largest are all alike."""
    generator = np.random.default_rng(0)
    log_weights = generator.normal(-0.25, 0.5**0.5, 1000)
    log_weights += np.where(np.arange(1000) < 100, np.log(9), np.log(1 / 9))
    verdict = judge(log_weights)
    assert verdict.foretold_ess < 25 < verdict.ess
    assert verdict.status is Status.OK


@pytest.mark.slow
def test_runs_called_ok_cover(seed: int):
    """Log-normal weights of variance 2.5: the ok ones of 300 runs cover, which mere limits do not reach.

    At a coverage of 0.92 fewer than 0.86 of 150 or more have p < 0.01.
    """
    generator = np.random.default_rng(seed)
    verdicts = [judge(generator.normal(-1.25, 2.5**0.5, 500)) for _ in range(300)]
    hits = [
        low < 0 < high for low, high in (v.interval() for v in verdicts if v.status is Status.OK)
    ]
    assert len(hits) > 150
    assert np.mean(hits) > 0.86


def test_limit_grows_with_chains_up_to_its_cap():
    assert pareto_k_limit(100) == pytest.approx(0.5)
    assert pareto_k_limit(10**6) == pytest.approx(0.7)


def test_weights_have_no_remedy():
    """What helps depends on more than weights (`advice.py`)."""
    found = judge(_normal(4.0)).findings
    assert found
    assert not any(finding.remedy for finding in found.values())
    wide = judge(_normal(1.3))
    assert list(wide.findings) == [Kind.WIDE_WEIGHTS]
    assert "above 1; log Z may be underestimated" in wide.messages[0]


def test_level_is_checked():
    with pytest.raises(ValueError, match="level"):
        judge(_normal(0.5)).interval(1.0)
