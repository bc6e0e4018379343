"""A race: contestants timed in turn, round after round, one at a time.

Each contestant first runs twice to compile and to learn its pace, and gets a number of steps that
fills about the same time; one more call at that length warms it up. Then every round times each of
them once, starting with another one each time. Time per step = wall clock of the whole call /
steps. Reported: the median over the rounds, the smallest and largest, and ratios of medians with
the spread of the ratio within single rounds (machine drift moves both times of a round).
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from problem import Timing

__all__ = ["Contestant", "num_steps_for", "race", "ratio", "summary"]

_PILOT_STEPS = 20
_FEWEST, _MOST = 20, 5000


class Contestant(Protocol):
    name: str

    def __call__(self, num_steps: int, seed: int = 0) -> Timing: ...


def num_steps_for(contestant: Contestant, seconds: float) -> int:
    """Steps that take about `seconds`, after a call that compiles."""
    contestant(_PILOT_STEPS)
    pace = contestant(_PILOT_STEPS).seconds / _PILOT_STEPS
    return max(_FEWEST, min(_MOST, int(seconds / pace)))


def race(
    contestants: Sequence[Contestant],
    num_rounds: int,
    seconds: float,
    on_round: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """By contestant: steps a call, and milliseconds per step, median, range and raw."""
    steps = {c.name: num_steps_for(c, seconds) for c in contestants}
    for contestant in contestants:
        contestant(steps[contestant.name])
    raw: dict[str, list[float]] = {c.name: [] for c in contestants}
    for turn in range(num_rounds):
        on_round(turn)
        first = turn % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            timing = contestant(steps[contestant.name], seed=turn)
            raw[contestant.name].append(1e3 * timing.seconds / steps[contestant.name])
    return {name: {"num_steps": steps[name], **summary(raw[name])} for name in raw}


def summary(ms_per_step: list[float]) -> dict[str, Any]:
    """Median, range and raw values."""
    return {
        "ms_per_step": statistics.median(ms_per_step),
        "range": [min(ms_per_step), max(ms_per_step)],
        "raw": ms_per_step,
    }


def ratio(above: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
    """Ratio of two contestants' medians, and the range of the ratio within rounds."""
    paired = [a / b for a, b in zip(above["raw"], below["raw"], strict=True)]
    return {
        "ratio": above["ms_per_step"] / below["ms_per_step"],
        "range": [min(paired), max(paired)],
        "median_of_rounds": statistics.median(paired),
    }
