"""Reverse chains of common ancestors: their likeness, and BAR's error with it.

The work is that of a target of two modes, which forward chains enter with chances other than their masses;
it obeys Crooks's theorem. Draws are forward chains resampled by weight, which keep their mode or forget it.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import annealz
from annealz.core.weights import resample
from annealz.diagnostics.ancestry import kinship, related_bar, related_std_err
from annealz.diagnostics.bar import bar
from annealz.diagnostics.diagnostics import judge
from annealz.diagnostics.findings import Finding, Kind, by_kind
from annealz.diagnostics.status import Status
from annealz.diagnostics.two_sided import judge_two_sided
from support.work import gaussian_work

CHAINS, SPREAD = 300, 0.5


def related_work(generator, reached: float, *, is_forgotten: bool = False, size: int = CHAINS):
    """(forward work, reverse work, ancestors), log ratio 0; the second mode has half of the mass."""
    depths = np.log(0.5 / np.array([1 - reached, reached]))
    mode = (generator.random(size) < reached).astype(int)
    forward = generator.normal(depths[mode] - SPREAD**2 / 2, SPREAD)
    ancestors = resample(forward, generator)
    later = (generator.random(size) < 0.5).astype(int) if is_forgotten else mode[ancestors]
    return forward, generator.normal(depths[later] + SPREAD**2 / 2, SPREAD), ancestors


# --- the correlation --------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_correlation_of_unequal_groups(correlation, seed):
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(200):
        groups = np.repeat(np.arange(80), generator.integers(1, 12, 80))
        own = generator.normal(size=groups.size) * np.sqrt(1 - correlation)
        found.append(
            kinship(7 + own + np.sqrt(correlation) * generator.normal(size=80)[groups], groups)
        )
    values = np.array([(one.correlation, one.upper) for one in found])
    std_err = values[:, 0].std() / np.sqrt(200)
    assert values[:, 0].mean() == pytest.approx(correlation, abs=4 * std_err + 0.02)
    assert np.mean(values[:, 1] > correlation) > 0.85  # nominal 0.95


def test_correlation_in_closed_form():
    """Two groups of two: MSB = 4, MSW = 0.5, n_0 = 2."""
    found = kinship(np.array([0.0, 1.0, 2.0, 3.0]), np.array([5, 5, 9, 9]))
    assert found.num_ancestors == 2
    assert found.correlation == pytest.approx((8 - 1) / (8 - 1 + 2))
    assert found.upper > found.correlation


def test_what_cannot_be_told_is_not_forgotten():
    generator = np.random.default_rng(0)
    for work, ancestors in (
        (generator.normal(size=50), np.arange(50)),  # each has one draw
        (generator.normal(size=50), np.zeros(50, int)),  # all from one
        (np.zeros(50), np.arange(50) // 2),  # all alike
        (generator.normal(size=500), np.arange(500) % 5),  # few ancestors
        (np.arange(50) // 2 * 1.0, np.arange(50) // 2),  # copies
    ):
        found = kinship(work, ancestors)
        assert not found.is_forgotten
        assert found.in_words


def test_forgotten_and_not(seed):
    generator = np.random.default_rng(seed)
    _, reverse, ancestors = related_work(generator, 0.1, is_forgotten=True, size=3000)
    assert kinship(reverse, ancestors).is_forgotten
    _, reverse, ancestors = related_work(generator, 0.1, size=3000)
    found = kinship(reverse, ancestors)
    assert not found.is_forgotten
    assert found.correlation > 0.4


# --- the error --------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.01, 1.0, 5.0, 30.0])
def test_counted_chains_are_chains_repeated(s, seed):
    generator = np.random.default_rng(seed)
    forward, reverse = gaussian_work(generator, 80, 60, s, 1234.5)
    ancestors = generator.integers(80, size=60)
    counts = generator.multinomial(80, np.full(80, 1 / 80), size=20)
    counts[0] = 1
    found = related_bar(forward, reverse, ancestors, counts)
    expected = [
        bar(np.repeat(forward, times), np.repeat(reverse, times[ancestors])).log_ratio
        for times in counts
    ]
    np.testing.assert_allclose(found, expected, atol=1e-3 * s)


def test_a_resample_without_reverse_chains_has_no_value():
    counts = np.array([[2, 0], [0, 2]])
    found = related_bar(np.zeros(2), np.zeros(3), np.zeros(3, int), counts)
    assert found[0] == pytest.approx(0, abs=1e-9)
    assert np.isnan(found[1])
    assert related_std_err(np.zeros(1), np.zeros(3), np.zeros(3, int), 1) == np.inf


def coverage(generator, std_err_of, **options) -> tuple[float, float]:
    """(share of 95 % intervals that hold the truth, mean error over the s.d. of BAR)."""
    found = []
    for _ in range(100):
        work = related_work(generator, 0.05, **options)
        found.append((bar(*work[:2]).log_ratio, std_err_of(*work)))
    values, errors = np.array(found).T
    return float(np.mean(np.abs(values) < 1.96 * errors)), float(errors.mean() / values.std())


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_error_of_related_chains(is_forgotten, seed):
    covered, ratio = coverage(
        np.random.default_rng(seed),
        lambda *work: related_std_err(*work, num_resamples=100),
        is_forgotten=is_forgotten,
    )
    assert covered > 0.82
    assert ratio == pytest.approx(1, abs=0.3)


def test_mutants_that_take_draws_as_independent_cover_too_little(seed):
    """BAR's own error, and a bootstrap in which every reverse chain has an ancestor of its own."""
    mutants = (
        lambda forward, reverse, ancestors: bar(forward, reverse).std_err,
        lambda forward, reverse, ancestors: related_std_err(
            forward, reverse, np.random.default_rng(0).permutation(CHAINS), num_resamples=100
        ),
    )
    for mutant in mutants:
        covered, ratio = coverage(np.random.default_rng(seed), mutant)
        assert covered < 0.75
        assert ratio < 0.6


# --- the verdict ------------------------------------------------------------------------------


def test_related_draws_keep_an_unreliable_verdict(seed):
    forward, reverse, ancestors = related_work(np.random.default_rng(seed), 0.015)
    assert judge(forward).status is Status.UNRELIABLE
    verdict = judge_two_sided(forward, reverse, are_exact=False, ancestors=ancestors)
    assert verdict.status is Status.UNRELIABLE
    assert Kind.RELATED_DRAWS in verdict.findings
    assert {kind for kind in judge(forward).findings if kind.is_fatal} < set(verdict.findings)
    assert not any("two_sided" in message for message in verdict.messages)
    assert verdict.std_err > 2 * verdict.bar.std_err
    low, high = verdict.interval()
    assert high - low == pytest.approx(2 * 1.96 * verdict.std_err, rel=1e-3)


def test_forgotten_draws_lift_it(seed):
    forward, reverse, ancestors = related_work(
        np.random.default_rng(seed), 0.05, is_forgotten=True, size=3000
    )
    poor = dataclasses.replace(
        judge(forward), findings=by_kind([Finding.of(Kind.HEAVY_TAIL, k=0.9, limit=0.7)])
    )
    options = {"are_exact": False, "forward_judgement": poor}
    verdict = judge_two_sided(forward, reverse, ancestors=ancestors, **options)
    assert verdict.kinship is not None
    assert verdict.kinship.is_forgotten
    assert verdict.status is Status.OK
    assert abs(verdict.log_ratio) < 4 * verdict.std_err
    unknown = judge_two_sided(forward, reverse, **options)
    assert list(unknown.findings) == [Kind.HEAVY_TAIL, Kind.INEXACT_DRAWS]
    exact = judge_two_sided(forward, reverse, are_exact=True, forward_judgement=poor)
    assert exact.status is Status.OK


@pytest.fixture(scope="module")
def ferromagnet(tmp_path_factory) -> tuple[annealz.Estimate, Path]:
    """Two phases of nearly equal mass, of which forward chains mostly enter one."""
    coupling, (num_hidden, num_visible) = 0.18, (40, 30)
    model = annealz.RBM(
        np.full((num_hidden, num_visible), coupling),
        hidden_bias=np.full(num_hidden, -coupling * num_visible / 2),
        visible_bias=np.full(num_visible, -coupling * num_hidden / 2),
    )
    folder = tmp_path_factory.mktemp("ferromagnet") / "run"
    estimate = annealz.estimate_log_z(
        model,
        base=annealz.BernoulliBase.from_logits(np.full(num_visible, -1.0)),
        schedule="linear",
        num_steps=200,
        num_chains=CHAINS,
        seed=1,
        two_sided=True,
        second_opinion=False,
        out=folder,
    )
    return estimate, folder


def test_the_ferromagnet_is_not_ok(ferromagnet):
    estimate, _ = ferromagnet
    assert estimate.plan.draws == "approximate"
    assert estimate.judgement.status is Status.UNRELIABLE
    assert estimate.status is Status.UNRELIABLE
    assert Kind.RELATED_DRAWS in estimate.two_sided.findings
    assert estimate.std_err > 2 * estimate.two_sided.bar.std_err
    assert estimate.convergence().std_err[-1] == pytest.approx(estimate.std_err)


def test_a_folder_keeps_ancestors_and_verdict(ferromagnet):
    estimate, folder = ferromagnet
    again = annealz.resume(folder)
    assert again.reverse is not None
    assert estimate.reverse is not None
    assert again.reverse.ancestors is not None
    assert np.array_equal(again.reverse.ancestors, estimate.reverse.ancestors)
    assert again.to_dict() == estimate.to_dict()
