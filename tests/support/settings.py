"""Plans of runs that were never made."""

from typing import Any

from annealz.core.cost import Cost
from annealz.methods.annealing.plan import AnnealingPlan, SecondBase
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.plan import Plan
from annealz.schedules.rules import linear

_COMMON = {
    "model": "rbm",
    "model_digest": "0" * 64,
    "source": None,
    "base": "visible-bias",
    "base_digest": None,
    "marginal": "visible",
    "cost": Cost(),
    "exact_log_z": None,
    "evaluations_a_sweep": None,
}


def annealing_plan(asked: dict[str, Any] | None = None, **decided: Any) -> AnnealingPlan:
    """Of an estimate whose base was given, with a second opinion; `asked` are fields of its request."""
    known = {
        "num_chains": 400,
        "wanted_chains": 400,
        "second": SecondBase(base="uniform"),
        "schedule": linear(100),
    }
    words = {"model": "m.npz", "base": decided.get("base", "visible-bias"), **(asked or {})}
    return AnnealingPlan(request=AnnealingRequest(**words), **(_COMMON | known | decided))


def plan_of(request: Any, **decided: Any) -> Plan:
    """Of another method."""
    return Plan(request=request, **(_COMMON | decided))
