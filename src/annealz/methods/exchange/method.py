"""Replica exchange as a method."""

import dataclasses
import time
from typing import Annotated, ClassVar

from annealz.core.cost import Cost
from annealz.engine.blocks import check_memory
from annealz.engine.context import Context
from annealz.io.records import whole
from annealz.methods.exchange.estimate import ExchangeEstimate
from annealz.methods.exchange.exchange import check_counts, exchange
from annealz.methods.exchange.request import ExchangeRequest
from annealz.methods.exchange.result import Exchange
from annealz.methods.method import AbstractMethod
from annealz.methods.plan import Plan
from annealz.methods.problem import choose_problem, read_target

_DEFAULT_SWEEPS = 10_000
_COUNTS = ("num_rungs", "num_ensembles", "num_sweeps", "num_draws")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExchangePlan(Plan):
    """The plan of a run of replica exchange."""

    what: ClassVar[str] = "the plan of a run of replica exchange"
    request_type = ExchangeRequest

    num_rungs: Annotated[int, whole]
    num_ensembles: Annotated[int, whole]
    num_sweeps: Annotated[int, whole]
    num_draws: Annotated[int, whole]


class ReplicaExchange(AbstractMethod):
    """Replica exchange between values of beta along the path."""

    request_type = ExchangeRequest
    plan_type = ExchangePlan

    def plan(self, request: ExchangeRequest, context: Context) -> ExchangePlan:
        """Choose the problem and tune its kernel."""
        sweeps = _DEFAULT_SWEEPS if request.num_steps is None else request.num_steps
        counts = check_counts(
            request.num_rungs, request.num_ensembles, sweeps, request.num_draws, context.chunk_steps
        )
        began = time.monotonic()
        context.begin("base")
        target = read_target(request.model)
        context.place(target[0], None)
        names = ("base", "data", "marginal", "path", "kernel")
        problem = choose_problem(target, **{name: getattr(request, name) for name in names})
        if getattr(problem.path.base, "evaluations", 0) > 0:  # a base that was fitted
            problem = problem.charged(Cost(seconds=time.monotonic() - began))
        replicas = counts[0] * counts[1]
        check_memory(problem.path, replicas, "num_ensembles", "num_rungs")  # not after a pilot
        context.check_folder()
        context.begin("tuning")
        problem = problem.prepared(
            request.seed, counts[2], replicas, on_progress=context.on_progress
        )
        problem = problem.with_exact(request.exact_log_z)
        return ExchangePlan.of(request, problem, **dict(zip(_COUNTS, counts, strict=True)))

    def run(self, plan: ExchangePlan, context: Context) -> Exchange:
        """Run all rounds, or read them."""
        store = context.store
        if store is not None and store.has("exchange"):
            return Exchange.from_arrays(*store.load("exchange"))
        assert plan.problem is not None
        result = exchange(
            plan.problem.states,
            plan.problem.kernel,
            **{name: getattr(plan, name) for name in _COUNTS},
            seed=plan.request.seed,
            chunk_sweeps=context.chunk_steps,
            checkpoint=None if store is None else store.checkpoint("exchange"),
            checkpoint_seconds=context.checkpoint_seconds,
            on_progress=context.begin("exchange"),
        )
        context.save("exchange", *result.to_arrays())
        return result

    def diagnose(self, plan: ExchangePlan, runs: Exchange) -> ExchangeEstimate:
        """Return the estimate of the last round."""
        return ExchangeEstimate(plan, runs, extra_messages=runs.extra_messages)


METHOD = ReplicaExchange()
