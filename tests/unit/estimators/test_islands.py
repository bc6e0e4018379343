"""The average over islands, judged."""

import numpy as np
import pytest

from annealz.diagnostics.diagnostics import judge_islands
from annealz.diagnostics.findings import Kind
from annealz.diagnostics.status import Status


def _normal(generator, size: int, s: float, repeats: int) -> np.ndarray:
    return generator.normal(-(s**2) / 2, s, (repeats, size))


def test_small_set_by_hand():
    verdict = judge_islands(np.log([1.0, 2.0, 3.0, 2.0, 2.0]))
    assert verdict.log_mean == pytest.approx(np.log(2))
    assert verdict.std_err == pytest.approx(np.sqrt(0.5 / 5) / 2)
    assert verdict.ess == pytest.approx(100 / 22)
    low, high = verdict.interval()
    assert verdict.log_mean - low == pytest.approx(2.776445 * verdict.std_err)
    mean, half = np.log(24) / 5, verdict.variance / 2
    # of a log-normal mean; 0.484419 is the quantile of chi-square
    spread = 1.959964**2 * verdict.variance / 5 + (half * (4 / 0.484419 - 1)) ** 2
    assert high == pytest.approx(mean + half + np.sqrt(spread), rel=1e-5)
    assert (verdict.status, verdict.messages) == (Status.OK, ())
    with pytest.raises(ValueError, match="level"):
        verdict.interval(1.0)


@pytest.mark.parametrize("size", [5, 16, 64])
def test_the_upper_end_is_students_where_islands_are_alike(size):
    verdict = judge_islands(np.random.default_rng(3).normal(0, 0.02, size))
    low, high = verdict.interval()
    assert (low + high) / 2 == pytest.approx(verdict.log_mean, abs=1e-4)


def _hits(sets: np.ndarray, is_students: bool = False) -> int:
    intervals = []
    for means in sets:
        verdict = judge_islands(means)
        low, high = verdict.interval()
        intervals.append((low, 2 * verdict.log_mean - low if is_students else high))
    return sum(low < 0 < high for low, high in intervals)


@pytest.mark.parametrize("s", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("size", [5, 16, 64])
def test_the_interval_covers(size, s, seed):
    """At level 0.95, 600 sets: a binomial count outside has p < 1e-5."""
    assert 537 <= _hits(_normal(np.random.default_rng(seed), size, s, 600)) <= 595


def test_students_interval_does_not_cover_wide_islands(seed):
    """The mutant: its upper end. Of 3000 sets a count of 2750 at 0.95 has p < 1e-12."""
    sets = _normal(np.random.default_rng(seed), 20, 1.0, 3000)
    assert _hits(sets, is_students=True) < 2750 < _hits(sets)


def test_the_normal_interval_of_a_biased_error_does_not_cover():
    """The mutant: no Student, no I - 1."""
    sets = _normal(np.random.default_rng(1), 5, 0.3, 600)
    verdicts = [judge_islands(means) for means in sets]
    naive = [1.96 * np.sqrt(4 / 5) * v.std_err for v in verdicts]
    hits = sum(abs(v.log_mean) < half for v, half in zip(verdicts, naive, strict=True))
    assert hits < 537


def test_a_constant_factor_moves_the_mean_and_nothing_else():
    means = np.random.default_rng(0).normal(0, 0.4, 12)
    here, there = judge_islands(means), judge_islands(means - 1e4)
    assert there.log_mean + 1e4 == pytest.approx(here.log_mean)
    assert there.std_err == pytest.approx(here.std_err)
    assert there.messages == here.messages


def test_few_or_unequal_islands_are_unreliable():
    for size in (1, 4):
        assert list(judge_islands(np.zeros(size)).findings) == [Kind.TOO_FEW_ISLANDS]
    assert judge_islands(np.zeros(1)).interval() == (-np.inf, np.inf)
    verdict = judge_islands(np.array([5.0] + [0.0] * 15))
    assert list(verdict.findings) == [Kind.FEW_EFFECTIVE_ISLANDS]
    assert verdict.status is Status.UNRELIABLE
    assert "larger islands may do better" in verdict.messages[0]
    verdict = judge_islands(np.array([0.0] * 12 + [-9.0] * 4))
    assert list(verdict.findings) == [Kind.WIDE_ISLANDS]
    assert "above 0.7" in verdict.messages[0]
    assert "larger islands may do better" in verdict.messages[0]


def test_equal_islands_are_perfect():
    verdict = judge_islands(np.full(10, 2.5))
    assert (verdict.std_err, verdict.status) == (0, Status.OK)
    assert verdict.interval() == (2.5, 2.5)
