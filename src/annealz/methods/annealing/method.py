"""Annealed importance sampling as a method."""

from annealz.engine.context import Context
from annealz.engine.run import Runs
from annealz.methods.annealing.diagnose import diagnose
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.plan import AnnealingPlan, make_plan
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.annealing.run import (
    has_time_for_another,
    run_forward,
    run_probe,
    run_reverse,
    run_second,
)
from annealz.methods.method import AbstractMethod


class Annealing(AbstractMethod):
    """Annealed importance sampling from a base to the model."""

    request_type = AnnealingRequest
    plan_type = AnnealingPlan

    def plan(self, request: AnnealingRequest, context: Context) -> AnnealingPlan:
        return make_plan(request, context)

    def run(self, plan: AnnealingPlan, context: Context) -> Runs:
        request = plan.request
        options = {"seed": request.seed, "record_every": request.record_every}
        forward = run_forward(plan, context, options)
        reverse = run_reverse(plan, context, options, forward) if request.two_sided else None
        second = probe = None
        if plan.second_schedule is not None and has_time_for_another(plan, forward):
            second = run_second(plan, context, options, forward)
            if has_time_for_another(plan, forward, second):
                probe = run_probe(plan, context, options, second)
        return Runs(forward, reverse, second, probe)

    def diagnose(self, plan: AnnealingPlan, runs: Runs) -> Estimate:
        return diagnose(plan, runs)


METHOD = Annealing()
