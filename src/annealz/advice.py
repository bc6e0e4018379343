"""What would help most, of an estimate that cannot be trusted: said once, in words and as options to type.

In the order of what they are worth:

    the exact value      where the model can be enumerated
    data or their means  where they would give a base rate, and none was given
    another base         fitted by pilots, where another one was used
    replica exchange     which mixes between modes that annealing cannot join
    more steps           where the pilot predicts that they narrow the weights: K Var[log w] is constant

Steps are advised once: as many as should bring Var[log w] to 1. Where the weights spread wider than the
pilot predicts, chains are trapped, and more steps are not known to help.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from annealz.status import Message, Status

if TYPE_CHECKING:
    from annealz.estimate import Estimate
    from annealz.replicas.estimate import ExchangeEstimate

__all__ = ["Advice", "advice_of"]

_NO_CURE = (Message.TOO_FEW_CHAINS, Message.TOO_FEW_ISLANDS, Message.TOO_FEW_TWO_SIDED)
_USUAL_STEPS = 10_000
_MOST_LENGTHENING = 100.0
_PREDICTED = 0.25  # of the variance seen: if the pilot predicts as much, steps are what is missing
_NEAR = 1.5  # Var[log w]: what aims at 1 may come out so
_MOST_WORDS = 3  # remedies in one sentence


class Advice(NamedTuple):
    """One sentence, and the options of the first remedy that can be typed as it is."""

    words: str
    options: dict[str, str | None]
    """With their values; None for a flag."""


def advice_of(estimate: Estimate | ExchangeEstimate) -> Advice:
    """What to try next; nothing where the estimate is ok."""
    from annealz.replicas.estimate import ExchangeEstimate

    if estimate.status is Status.OK:
        return Advice("", {})
    kinds = estimate.findings
    if isinstance(estimate, ExchangeEstimate):
        sweeps = estimate.exchange.num_sweeps
        is_first = sweeps <= _USUAL_STEPS and Message.CONTRADICTS_EXACT not in kinds
        return Advice("", {"--steps": str(4 * sweeps)} if is_first else {})
    few = next((kind for kind in _NO_CURE if kind in kinds), None)
    if few is not None:
        return Advice("", {} if few is Message.TOO_FEW_ISLANDS else {"--chains": "100"})
    if Message.CONTRADICTS_EXACT in kinds:
        return Advice("", {})
    remedies = list(_remedies(estimate))
    words = ", or ".join(text for text, _ in remedies[:_MOST_WORDS])
    options: dict[str, str | None] = next((options for _, options in remedies if options), {})
    return Advice(f"to do better: {words}." if words else "", options)


def _remedies(estimate: Estimate) -> Iterator[tuple[str, dict[str, str | None]]]:
    """(words, options) of what would help, the best first."""
    settings = estimate.settings
    given, asked = settings["given"], settings.get("asked") or {}
    is_own = not given.get("path")
    if is_own and settings.get("can_enumerate") and estimate.exact_log_z is None:
        yield "--exact, the exact value by enumeration", {"--exact": None}
    has_rate = estimate.base == "base-rate" or asked.get("data")
    if is_own and settings.get("takes_data") and not has_rate:
        yield "--data with the training data or their means", {}
    if is_own and settings.get("second") and not settings.get("base_reason"):
        yield "--base fitted, a base found by pilots", {"--base": "fitted"}
    if is_own:
        yield "--method exchange, which crosses between modes", {"--method": "exchange"}
    steps = _steps(estimate)
    if steps is not None:
        yield f"--steps {steps}", {"--steps": str(steps)}


def _steps(estimate: Estimate) -> int | None:
    """K at which Var[log w] should be about 1; None where steps are not known to help."""
    judgement, steps = estimate.judgement, estimate.num_steps
    predicted = estimate.schedule.provenance.get("predicted_variance")
    if predicted is None:
        return 4 * steps if steps <= _USUAL_STEPS else None
    seen = float(judgement.variance)
    if seen <= _NEAR or not predicted > _PREDICTED * seen:
        return None
    wanted = steps * min(max(seen, 2.0), _MOST_LENGTHENING)
    digits = 10 ** max(int(np.log10(wanted)) - 1, 0)
    return int(np.ceil(wanted / digits) * digits)
