"""Plain importance sampling, as a method that another package adds.

    log Z = log Z_A + log mean w,    w = p*(x) / p*_A(x),    x from the base A

E[w] = Z / Z_A exactly, and the logarithm of the mean is biased low. The package declares the entry point
`importance = "importance_sampling:METHOD"` of the group `annealz.methods`.
"""

import dataclasses
from typing import Annotated, ClassVar

import numpy as np

import annealz
from annealz.core.arrays import indices
from annealz.core.random import Stream
from annealz.diagnostics.diagnostics import Judgement, judge
from annealz.diagnostics.status import against_exact
from annealz.io.archive import real_numbers
from annealz.io.records import optional, whole
from annealz.methods.estimate import AbstractEstimate
from annealz.methods.plan import Plan
from annealz.methods.problem import choose_problem, read_target
from annealz.methods.request import PathRequest, option


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportanceRequest(PathRequest):
    """The arguments: those of a path, and the number of draws."""

    method: ClassVar[str] = "importance"
    num_chains: Annotated[int | None, optional(whole)] = option(None, "Draws of the base.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportancePlan(Plan):
    """A plan without decisions of its own."""

    request_type = ImportanceRequest


@dataclasses.dataclass(frozen=True, repr=False)
class ImportanceEstimate(AbstractEstimate):
    """log Z with the diagnosis of the weights."""

    judgement: Judgement
    log_z = property(lambda self: self.plan.problem.path.log_z0 + self.judgement.log_mean)
    std_err = property(lambda self: self.judgement.std_err)

    @property
    def findings(self):
        known = against_exact(self.log_z, self.std_err, self.exact_log_z)
        return {**self.judgement.findings, **known}


class ImportanceSampling(annealz.AbstractMethod):
    """Weighted draws of the base."""

    request_type, plan_type = ImportanceRequest, ImportancePlan

    def plan(self, request, context):
        given = {n: getattr(request, n) for n in ("base", "data", "marginal", "path", "kernel")}
        problem = choose_problem(read_target(request.model), **given)
        return ImportancePlan.of(request, problem.with_exact(request.exact_log_z))

    def run(self, plan, context):
        if context.store is not None and context.store.has("weights"):
            return real_numbers(context.store.load("weights")[0], "log_weights", "a stored run")
        path, count = plan.problem.path, plan.request.num_chains or 1000
        draws = path.sample(Stream(plan.request.seed, "importance").at(0, indices(count)))
        log_weights = np.asarray(path.log_ratio(draws, 0.0, 1.0), np.float64)
        context.save("weights", {"log_weights": log_weights}, {})
        return log_weights

    def diagnose(self, plan, runs):
        return ImportanceEstimate(plan, judge(runs))


METHOD = ImportanceSampling()
