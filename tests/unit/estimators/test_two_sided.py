"""A pair of forward and reverse work, judged; and its bounds."""

import itertools

import numpy as np
import pytest

from annealz.diagnostics.findings import Kind
from annealz.diagnostics.status import Status
from annealz.diagnostics.two_sided import judge_two_sided, sandwich
from annealz.testing import assert_within_mc_error
from support.work import gaussian_work

CHAINS = 400


def two_modes(generator, mass: float, reached: float, size: int = CHAINS):
    """Work of a target with a second mode of this mass, in which a forward chain ends this rarely."""
    s = 0.5
    missed = np.log(mass / reached), np.log((1 - mass) / (1 - reached))

    def side(probability: float, shift: float):
        is_second = generator.random(size) < probability
        return generator.normal(np.where(is_second, *missed) + shift, s)

    return side(reached, -(s**2) / 2), side(mass, s**2 / 2)


# --- the sandwich -----------------------------------------------------------------------------


def test_bounds_enclose_the_truth_and_their_gap_is_the_variance(seed):
    forward, reverse = gaussian_work(np.random.default_rng(seed), 2000, 1000, 1.5, 7.0)
    bounds = sandwich(forward, reverse)
    assert_within_mc_error(bounds.lower, 7 - 1.5**2 / 2, bounds.lower_std_err)
    assert_within_mc_error(bounds.upper, 7 + 1.5**2 / 2, bounds.upper_std_err)
    assert_within_mc_error(bounds.gap, 1.5**2, bounds.gap_std_err)
    assert bounds.lower < 7 < bounds.upper


def test_a_flipped_sign_fails_the_sandwich(seed):
    """The mutant: log w of a reverse run in the place of -log w."""
    forward, reverse = gaussian_work(np.random.default_rng(seed), CHAINS, CHAINS, 1.0, 7.0)
    assert sandwich(forward, reverse).gap > 0
    assert sandwich(forward, -reverse).gap < -10
    verdict = judge_two_sided(forward, -reverse, are_exact=True)
    assert Kind.NEGATIVE_GAP in verdict.findings
    assert verdict.status is Status.UNRELIABLE


def test_one_chain_has_no_known_error():
    bounds = sandwich(np.zeros(1), np.ones(2))
    assert (bounds.lower_std_err, bounds.gap_std_err) == (np.inf, np.inf)


# --- the judgement ----------------------------------------------------------------------------


def test_a_right_pair_is_ok(seed):
    forward, reverse = gaussian_work(np.random.default_rng(seed), CHAINS, CHAINS, 1.0, 7.0)
    verdict = judge_two_sided(forward, reverse, are_exact=True)
    assert (verdict.status, verdict.messages) == (Status.OK, ())
    assert_within_mc_error(verdict.log_ratio, 7, verdict.std_err)
    assert verdict.lower < verdict.log_ratio < verdict.upper
    assert verdict.gap == verdict.upper - verdict.lower
    assert verdict.overlap == pytest.approx(0.8, abs=0.05)
    low, high = verdict.interval(0.5)
    assert verdict.interval()[0] < low < verdict.log_ratio < high < verdict.interval()[1]
    with pytest.raises(ValueError, match="level"):
        verdict.interval(0.0)


def test_right_pairs_are_seldom_refused():
    """Gaussian pairs of every width and size that overlap."""
    generator = np.random.default_rng(2)
    for s, size in itertools.product([0.1, 0.5, 1.0, 2.0, 3.0], [100, 400]):
        verdict = judge_two_sided(*gaussian_work(generator, size, size, s), are_exact=True)
        assert verdict.status is Status.OK, (s, size, verdict.messages)


def test_draws_that_are_not_exact_are_mentioned(seed):
    forward, reverse = gaussian_work(np.random.default_rng(seed), CHAINS, CHAINS, 0.5)
    verdict = judge_two_sided(forward, reverse, are_exact=False)
    assert list(verdict.findings) == [Kind.INEXACT_DRAWS]
    assert verdict.status is Status.OK


def test_a_mode_that_no_forward_chain_reaches_comes_with_the_draws(seed):
    """A third of the mass: forward chains alone are 0.4 low and look perfect, the pair is right."""
    generator = np.random.default_rng(seed)
    forward, reverse = two_modes(generator, mass=1 / 3, reached=1e-9)
    verdict = judge_two_sided(forward, reverse, are_exact=True)
    assert_within_mc_error(verdict.log_ratio, 0, verdict.std_err)
    assert verdict.forward_log_mean == pytest.approx(np.log(2 / 3), abs=0.15)
    assert verdict.status is Status.OK
    (message,) = verdict.messages
    assert "the forward estimate is -0." in message
    assert "trust the two sides together" in message


def test_sides_that_hardly_meet_are_unreliable(seed):
    work = gaussian_work(np.random.default_rng(seed), 100, 100, 7.0)
    verdict = judge_two_sided(*work, are_exact=True)
    assert Kind.LITTLE_OVERLAP in verdict.findings
    apart = judge_two_sided(np.full(50, -1e4), np.full(50, 1e4), are_exact=True)
    assert list(apart.findings) == [Kind.LITTLE_OVERLAP]


def test_few_chains_are_not_judged():
    for sizes in ((1, 100), (100, 9)):
        verdict = judge_two_sided(np.zeros(sizes[0]), np.zeros(sizes[1]), are_exact=True)
        assert verdict.status is Status.UNRELIABLE
        assert "too few" in verdict.messages[0]


def test_draws_from_elsewhere_contradict_the_forward_work(seed):
    """Upward, so that the gap looks right: only Crooks's theorem tells."""
    forward, reverse = gaussian_work(np.random.default_rng(seed), CHAINS, CHAINS, 1.0)
    verdict = judge_two_sided(forward, reverse + 0.7, are_exact=True)
    assert list(verdict.findings) == [Kind.UNEQUAL_WORK]
    assert "not from the target" in verdict.messages[0]


def test_messages_state_log_z(seed):
    forward, reverse = two_modes(np.random.default_rng(seed), mass=1 / 3, reached=1e-9)
    verdict = judge_two_sided(forward, reverse, are_exact=True, log_z0=100.0)
    stated = f"the forward estimate is {100 + verdict.forward_log_mean:.4f}"
    assert stated in verdict.findings[Kind.FORWARD_IS_LOW].what


def test_a_part_that_forward_chains_never_reach_is_trusted_to_exact_draws_alone(seed):
    """A third of the mass at work that no forward chain will see: nothing else is wrong with the pair."""
    forward, reverse = two_modes(np.random.default_rng(seed), mass=1 / 3, reached=1e-9)
    assert judge_two_sided(forward, reverse, are_exact=True).status is Status.OK
    verdict = judge_two_sided(forward, reverse, are_exact=False)
    assert Kind.BEYOND_REACH in verdict.findings
    assert verdict.status is Status.UNRELIABLE
    near = two_modes(np.random.default_rng(seed), mass=1 / 3, reached=0.1)
    assert Kind.BEYOND_REACH not in judge_two_sided(*near, are_exact=False).findings


def test_right_pairs_are_within_reach():
    """Gaussian pairs that overlap, as wide as they come."""
    generator = np.random.default_rng(3)
    for s, size in itertools.product([1.0, 2.0, 3.0], [100, 400, 10_000]):
        verdict = judge_two_sided(*gaussian_work(generator, size, size, s), are_exact=False)
        assert Kind.BEYOND_REACH not in verdict.findings, (s, size)


@pytest.mark.parametrize("side", ["forward", "reverse"])
def test_work_of_huge_variance_is_never_ok(side, seed):
    """A few chains far out leave overlap and effective chains as they were."""
    forward, reverse = gaussian_work(np.random.default_rng(seed), CHAINS, CHAINS, 1.0)
    if side == "forward":
        forward[:4] -= 1000
    else:
        reverse[:4] += 1000
    verdict = judge_two_sided(forward, reverse, are_exact=True)
    assert next(iter(verdict.findings)) is Kind.WIDE_WORK
    assert f"of the {side} work" in verdict.messages[0]


def test_given_draws_do_not_lift_an_unreliable_verdict(seed):
    """Gaussian work of s.d. 2.5: ESS below 25, and two sides that overlap well."""
    work = gaussian_work(np.random.default_rng(seed), CHAINS, CHAINS, 2.5)
    assert judge_two_sided(*work, are_exact=True).status is Status.OK
    verdict = judge_two_sided(*work, are_exact=False)
    assert verdict.status is Status.UNRELIABLE
    assert Kind.RELATED_DRAWS not in verdict.findings
