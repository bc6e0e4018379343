"""Pieces by the clock: they grow where the work is quick, and one that was compiled shrinks nothing."""

import pytest

from annealz.core import interrupts as module
from annealz.core.interrupts import Pace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """A clock that is set by hand."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(module.time, "monotonic", lambda: Clock.now)
    return Clock


def take(pace: Pace, clock, seconds_a_step: float, limit: int = 10**6, extra: float = 0.0) -> int:
    count = pace.take(limit)
    with pace:
        clock.now += count * seconds_a_step + extra
    return count


def test_pieces_take_the_time_that_they_should(clock):
    pace = Pace(seconds=0.25)
    taken = [take(pace, clock, 1e-4) for _ in range(5)]
    assert taken == pytest.approx([8, 512, 2500, 2500, 2500], abs=2)


def test_a_first_piece_that_was_compiled_shrinks_nothing(clock):
    pace = Pace(seconds=0.25, first=2048)
    assert take(pace, clock, 1e-6, extra=5.0) == 2048
    assert take(pace, clock, 1e-6) == 2048
    assert take(pace, clock, 1e-6) == 64 * 2048  # and later ones grow


def test_later_pieces_shrink(clock):
    pace = Pace(seconds=0.25)
    take(pace, clock, 1e-4)
    take(pace, clock, 1e-4)
    assert take(pace, clock, 0.01) == pytest.approx(2500, abs=2)
    assert take(pace, clock, 0.01) == 25
    assert take(pace, clock, 0.01, limit=7) == 7


def test_a_fixed_length_is_kept(clock):
    pace = Pace(13)
    assert [take(pace, clock, 1.0) for _ in range(3)] == [13, 13, 13]
