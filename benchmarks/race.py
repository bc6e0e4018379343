"""A race: contestants timed in turn, round after round, one at a time.

Time per step is the difference of two lengths, which leaves out what a call costs however long it
is (start states, allocation):

    (wall clock of K steps - wall clock of 2 steps) / (K - 2)

Each contestant first runs a few times to compile and to learn its pace, and gets a K that fills about the
same time; it is warmed up at both lengths. Then every round times each of them once, starting with
another one each time. Reported: the median over the rounds, the smallest and largest, and ratios of
medians with the spread of the ratio within single rounds (machine drift moves both times of a
round).
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from problem import Timing

__all__ = ["Contestant", "race", "ratio", "summary", "time_step", "warm_up"]

_SHORT = 2
_PILOT = 20
_FEWEST, _MOST = 20, 5000


class Contestant(Protocol):
    name: str

    def __call__(self, num_steps: int, seed: int = 0) -> Timing: ...


def warm_up(contestant: Contestant, seconds: float) -> int:
    """Compile; the number of steps that takes about `seconds`."""
    steps = _PILOT
    for _ in range(3):  # what a call costs however long it is hides the pace of a short one
        contestant(steps)
        pace = contestant(steps).seconds / steps
        steps = max(_FEWEST, min(_MOST, int(seconds / pace)))
    for num_steps in (_SHORT, steps):
        contestant(num_steps)
    return steps


def time_step(contestant: Contestant, num_steps: int, seed: int) -> float:
    """Milliseconds per step."""
    difference = contestant(num_steps, seed).seconds - contestant(_SHORT, seed).seconds
    return 1e3 * difference / (num_steps - _SHORT)


def race(
    contestants: Sequence[Contestant],
    num_rounds: int,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """By contestant: steps a call, and milliseconds per step, median, range and raw."""
    say("warm-up")
    steps = {c.name: warm_up(c, seconds) for c in contestants}
    raw: dict[str, list[float]] = {c.name: [] for c in contestants}
    for turn in range(num_rounds):
        say(f"round {turn + 1} of {num_rounds}")
        first = turn % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            raw[contestant.name].append(time_step(contestant, steps[contestant.name], turn))
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
