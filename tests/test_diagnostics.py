"""The verdict on a set of weights."""

import numpy as np
import pytest

from annealz.diagnostics import judge, pareto_k, pareto_k_limit
from annealz.estimators import bootstrap_interval, delta_interval
from annealz.status import Message, Status


def _normal(sigma: float, size: int = 1000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(-(sigma**2) / 2, sigma, size)


def test_light_tails_are_ok_and_get_the_delta_interval():
    verdict = judge(_normal(0.5))
    assert verdict.status is Status.OK
    assert verdict.messages == ()
    assert verdict.interval() == delta_interval(verdict.log_weights)


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails_are_called_a_lower_bound(seed: int):
    verdict = judge(_normal(4.0, seed=seed))
    assert verdict.status is Status.UNRELIABLE
    assert "probably a lower bound" in verdict.messages[0]
    assert verdict.interval() == bootstrap_interval(verdict.log_weights)


def test_chains_left_behind_are_no_failure():
    """Half the chains with negligible weights: a large variance of log w, and a good mean."""
    log_weights = np.concatenate([_normal(0.4, 500), _normal(0.4, 500) - 12])
    verdict = judge(log_weights)
    assert verdict.variance > 30
    assert verdict.status is Status.OK
    assert "may be a lower bound" in verdict.messages[0]
    assert verdict.interval() == bootstrap_interval(log_weights)


def test_few_chains_are_not_judged():
    for size in (1, 2, 24):
        verdict = judge(_normal(0.1, size))
        assert verdict.status is Status.UNRELIABLE
        assert list(verdict.findings) == [Message.TOO_FEW_CHAINS]
        assert "--chains 100" in verdict.messages[0]


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


def test_heavy_tails_need_more_effective_chains():
    """Between k-hat = 0.5 and the limit, 25 effective chains are not enough; below 0.5 they are."""
    verdicts = [judge(_normal(1.7, 1000, seed)) for seed in range(60)]
    few = [v for v in verdicts if 25 <= v.ess < 100]
    heavy = [v for v in few if 0.5 <= v.pareto_k < pareto_k_limit(1000)]
    light = [v for v in few if v.pareto_k < 0.5]
    assert heavy
    assert light
    assert all(list(v.findings) == [Message.FEW_EFFECTIVE_CHAINS] for v in heavy)
    assert all(v.status is Status.UNRELIABLE and "at least 100" in v.messages[0] for v in heavy)
    assert all(v.status is Status.OK for v in light)


def test_limit_grows_with_chains_up_to_its_cap():
    assert pareto_k_limit(100) == pytest.approx(0.5)
    assert pareto_k_limit(10**6) == pytest.approx(0.7)


def test_remedies_carry_the_number_of_steps():
    told = judge(_normal(4.0), num_steps=10_000).messages
    assert told
    assert all("try --steps 40000 or --two-sided." in message for message in told)
    assert all("try four times the steps or" in m for m in judge(_normal(4.0)).messages)
    wide = judge(_normal(1.3), num_steps=250)
    assert list(wide.findings) == [Message.WIDE_WEIGHTS]
    assert "--steps 1000 would narrow it" in wide.messages[0]


def test_level_is_checked():
    with pytest.raises(ValueError, match="level"):
        judge(_normal(0.5)).interval(1.0)
