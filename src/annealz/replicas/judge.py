"""Can an estimate by replica exchange be trusted?

Replicas that stay at one end of the ladder are short chains with a long name: what they missed shows in no
error. A replica that went from the base to the target and back brought an independent start to the target,
so round trips are the first thing to look at. Fatal are

    round trips          none, or fewer than one per ensemble, in the last round
    halves               of the last round differ beyond Student's 0.999
    rounds               the last two differ beyond Student's 0.999

The differences are taken within ensembles (pseudo-values of one minus those of the other), because an
ensemble remembers its first half in its second.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from annealz.status import Findings, Found, Message, longer

if TYPE_CHECKING:
    from annealz.replicas.result import Round

__all__ = ["LEAST_ENSEMBLES", "ExchangeJudgement", "judge_exchange"]

LEAST_ENSEMBLES = 5  # fewer give no error to speak of, and are refused
_LEAST_TRIPS = 1.0  # per ensemble
_LEVEL = 0.999


@dataclasses.dataclass(frozen=True)
class ExchangeJudgement(Found):
    """What to think of the rounds."""

    findings: Findings


def judge_exchange(rounds: "tuple[Round, ...]") -> ExchangeJudgement:
    """What speaks against the estimate of the last round; remedies are told in sweeps."""
    last, findings = rounds[-1], {}
    count, trips = last.values.size, int(last.round_trips.sum())
    advice = longer(sum(one.num_sweeps for one in rounds))

    def find(kind: Message, **values) -> None:
        findings[kind] = kind.say(**values)

    if trips == 0:
        find(Message.NO_ROUND_TRIPS, longer=advice)
    elif trips < _LEAST_TRIPS * count:
        needed = int(np.ceil(_LEAST_TRIPS * count))
        find(Message.FEW_ROUND_TRIPS, trips=trips, size=count, needed=needed, longer=advice)
    drift = _contrast(*last.half_values)
    if drift is not None:
        size, error = drift
        find(Message.UNEQUAL_HALVES, size=size, error=error, longer=advice)
    if len(rounds) > 1:
        change = _contrast(rounds[-2].values, last.values)
        if change is not None and drift is None:
            size, error = change
            find(Message.UNEQUAL_ROUNDS, size=size, error=error, longer=advice)
    return ExchangeJudgement(findings)


def _contrast(before: np.ndarray, after: np.ndarray) -> tuple[float, float] | None:
    """How far log Z moved and the error of that, where it is more than chance explains."""
    moved = after - before
    error = float(moved.std(ddof=1) / np.sqrt(moved.size))
    limit = float(stdtrit(moved.size - 1, (1 + _LEVEL) / 2))
    size = float(moved.mean())
    return (size, error) if abs(size) > limit * error else None
