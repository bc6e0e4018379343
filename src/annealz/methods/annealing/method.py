"""Annealed importance sampling as a method."""

from annealz.engine.context import Context
from annealz.engine.run import Runs
from annealz.methods.annealing.diagnose import diagnose
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.plan import AnnealingPlan, make_plan
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.annealing.run import run_plan
from annealz.methods.method import AbstractMethod

__all__ = ["METHOD", "Annealing"]


class Annealing(AbstractMethod):
    """Annealed importance sampling from a base to the model."""

    request_type = AnnealingRequest
    plan_type = AnnealingPlan

    def plan(self, request: AnnealingRequest, context: Context) -> AnnealingPlan:
        return make_plan(request, context)

    def run(self, plan: AnnealingPlan, context: Context) -> Runs:
        return run_plan(plan, context)

    def diagnose(self, plan: AnnealingPlan, runs: Runs) -> Estimate:
        return diagnose(plan, runs)


METHOD = Annealing()
