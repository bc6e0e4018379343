"""What would help an estimate most that cannot be trusted: remedies, reported once for all findings.

In the order of what they are worth:

    the exact value      where the model can be enumerated
    data or their means  where they would give a base rate, and none was given
    another base         fitted by pilots, where another one was used
    replica exchange     which mixes between modes that annealing cannot join
    more time            where a limit left out chains or steps: first of all, and alone
    more steps           where the pilot predicts that they narrow the weights: K Var[log w] is constant

Steps are advised once: as many as should bring Var[log w] to 1. Where the weights spread wider than the
pilot predicts, chains are trapped, and more steps are not known to help.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.diagnostics.findings import Advice, Kind, Remedy
from annealz.diagnostics.status import Status

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate

_TOO_FEW = (Kind.TOO_FEW_CHAINS, Kind.TOO_FEW_ISLANDS, Kind.TOO_FEW_TWO_SIDED)
_DEFAULT_STEPS = 10_000
_MOST_LENGTHENING = 100.0
_PREDICTED = 0.25  # of the variance seen: if the pilot predicts as much, steps are what is missing
_NEAR = 1.5  # Var[log w]: what aims at 1 may come out so
_MOST_REMEDIES = 3  # in one sentence


def advice_of(estimate: Any) -> Advice:
    """Return what to try next; nothing if the estimate is ok."""
    if estimate.status is Status.OK:
        return Advice()
    findings, request = estimate.findings, estimate.plan.request
    if request.method == "exchange":
        sweeps = estimate.exchange.num_sweeps
        is_first = sweeps <= _DEFAULT_STEPS and Kind.CONTRADICTS_EXACT not in findings
        return Advice(next_try=Remedy(num_steps=4 * sweeps) if is_first else None)
    if request.method != "annealing":
        fatal = [one.remedy for one in findings.values() if one.kind.is_fatal and one.remedy]
        return Advice(next_try=_first_ready(fatal))
    few = next((findings[kind] for kind in _TOO_FEW if kind in findings), None)
    if few is not None:  # its own remedy is all that helps
        return Advice(next_try=_first_ready([few.remedy] if few.remedy else []))
    late = findings.get(Kind.OUT_OF_TIME)
    if late is not None:  # what is left of a run says little of what all of it would do
        return Advice(next_try=late.remedy)
    if {Kind.UNCONFIRMED, Kind.UNPROBED} & findings.keys() and request.max_seconds is not None:
        longer = 2 * max(request.max_seconds, estimate.seconds)
        return Advice(next_try=Remedy(max_seconds=whole_seconds(longer)))
    if Kind.CONTRADICTS_EXACT in findings:
        return Advice()
    remedies = list(_remedies(estimate))
    return Advice(tuple(remedies[:_MOST_REMEDIES]), _first_ready(remedies))


def next_command(estimate: Any, command: str = "estimate") -> str | None:
    """Return the command that may do better; None if nothing is advised or no command can do it.

    Where a wish or a file decides about steps and chains, other numbers of them are not advised.
    """
    remedy, request = advice_of(estimate).next_try, estimate.plan.request
    if remedy is None:
        return None
    schedule = getattr(request, "schedule", None)
    is_decided = getattr(request, "has_wish", False) or (
        isinstance(schedule, str) and Path(schedule).is_file()
    )
    if is_decided and {"num_steps", "num_chains"} & remedy.settings.keys():
        return None
    again = request.reproduction(remedy.settings, command=command)
    return again.text if again.is_command else None


def whole_seconds(seconds: float) -> int:
    """A limit to advise: rounded up to two digits."""
    digits = 10 ** max(int(np.log10(max(seconds, 1.0))) - 1, 0)
    return int(np.ceil(seconds / digits - 1e-6) * digits)


def _first_ready(remedies: list[Remedy]) -> Remedy | None:
    return next((remedy for remedy in remedies if remedy.is_ready), None)


def _remedies(estimate: Estimate) -> Iterator[Remedy]:
    """What would help, the best first."""
    plan = estimate.plan
    is_own = "path" not in plan.request.objects
    if is_own and plan.can_enumerate and estimate.exact_log_z is None:
        yield Remedy(exact=True, words="the exact value by enumeration")
    has_rate = estimate.base == "base-rate" or "data" in plan.request.objects
    if is_own and plan.takes_data and not has_rate:
        yield Remedy(data=True, words="the training data or their means")
    if is_own and plan.second and not plan.base_reason:
        yield Remedy(base="fitted", words="a base found by pilots")
    if is_own:
        yield Remedy(method="exchange", words="whose chains also go back to the base")
    steps = _steps(estimate)
    if steps is not None:
        yield Remedy(num_steps=steps)


def _steps(estimate: Estimate) -> int | None:
    """K at which Var[log w] should be about 1; None if steps are not known to help."""
    judgement, steps = estimate.judgement, estimate.num_steps
    predicted = estimate.schedule.provenance.get("predicted_variance")
    if predicted is None:
        return 4 * steps if steps <= _DEFAULT_STEPS else None
    seen = float(judgement.variance)
    if seen <= _NEAR or not predicted > _PREDICTED * seen:
        return None
    wanted = steps * min(max(seen, 2.0), _MOST_LENGTHENING)
    digits = 10 ** max(int(np.log10(wanted)) - 1, 0)
    return int(np.ceil(wanted / digits) * digits)
