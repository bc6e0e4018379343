"""Nested sampling as a method."""

import dataclasses
import time
from typing import Annotated, Any, ClassVar

from annealz.bases.abstract import AbstractBase
from annealz.core.errors import InputError
from annealz.diagnostics.nested import judge_nested
from annealz.engine.cluster import current_cluster
from annealz.engine.context import Context
from annealz.io.records import finite, optional, whole
from annealz.methods.method import AbstractMethod
from annealz.methods.nested.estimate import NestedEstimate
from annealz.methods.nested.nested import nested
from annealz.methods.nested.request import NestedRequest
from annealz.methods.nested.result import NestedRun
from annealz.methods.nested.walk import Target
from annealz.methods.plan import Plan
from annealz.methods.problem import choose_problem, read_target
from annealz.models.log_density import LogDensity

_DEFAULT_LIVE = 500
_LIVE_PER_VARIABLE = 4  # in each run, by default
_MIN_LIVE = 20  # in each run
_STEPS_PER_VARIABLE, _MIN_STEPS = 5, 10
_DELETED_SHARE = 5  # live points for each that dies at once


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedPlan(Plan):
    """The plan of nested sampling."""

    what: ClassVar[str] = "the plan of nested sampling"
    request_type = NestedRequest

    num_live: Annotated[int, whole]
    """In all runs together."""
    num_runs: Annotated[int, whole]
    num_delete: Annotated[int, whole]
    num_inner_steps: Annotated[int, whole]
    tolerance: Annotated[float, finite]
    max_evaluations: Annotated[int | None, optional(whole)] = None


class NestedSampling(AbstractMethod):
    """Nested sampling of a density with a prior, which needs no gradients."""

    request_type = NestedRequest
    plan_type = NestedPlan

    def plan(self, request: NestedRequest, context: Context) -> NestedPlan:
        """Choose the prior and the numbers of points."""
        if current_cluster() is not None:
            raise InputError(
                "client",
                "does not fit {method} nested (it runs in this process)",
                remedy="leave it out",
            )
        context.begin("base")
        target, meta = read_target(request.model)
        if not isinstance(target, LogDensity):
            raise ValueError(
                "nested sampling takes a density over real variables (LogDensity), got "
                f"{target.name}: take annealing or replica exchange for it."
            )
        context.place(target, None)
        prior, live = _prior(target, request.base), _live(request, target.dim)
        delete = request.num_delete or max(1, live // _DELETED_SHARE)
        if delete > live // 2:
            raise InputError(
                "num_delete", f"must be at most half of the {live} live points of a run", delete
            )
        context.check_folder()
        limit = request.max_evaluations
        if limit is not None and limit < live * request.num_runs:
            raise InputError(
                "max_evaluations", f"must be at least {live * request.num_runs}", limit
            )
        problem = choose_problem((target, meta), base=prior).with_exact(request.exact_log_z)
        return NestedPlan.of(
            request,
            problem,
            num_live=live * request.num_runs,
            num_runs=request.num_runs,
            num_delete=delete,
            num_inner_steps=request.num_inner_steps
            or max(_MIN_STEPS, _STEPS_PER_VARIABLE * target.dim),
            tolerance=float(request.tolerance),
            max_evaluations=limit,
        )

    def run(self, plan: NestedPlan, context: Context) -> tuple[NestedRun, ...]:
        """Run each with a stream of its own; what one leaves of the evaluations goes to the others."""
        assert plan.problem is not None
        target = Target(plan.problem.model, plan.problem.path.base.unnamed())  # pyright: ignore
        runs: list[NestedRun] = []
        for i in range(plan.num_runs):
            part, store = f"nested-{i + 1}", context.store
            if store is not None and store.has(part):
                runs.append(NestedRun.from_arrays(*store.load(part)))
                continue
            left = None
            if plan.max_evaluations is not None:
                spent = sum(run.evaluations for run in runs)
                left = (plan.max_evaluations - spent) // (plan.num_runs - i)
            runs.append(
                nested(
                    target,
                    num_live=plan.num_live // plan.num_runs,
                    num_delete=plan.num_delete,
                    num_inner_steps=plan.num_inner_steps,
                    tolerance=plan.tolerance,
                    seed=plan.request.seed,
                    purpose=f"nested {i + 1}",
                    max_evaluations=left,
                    on_progress=context.begin("nested", i + 1, plan.num_runs),
                )
            )
            context.save(part, *runs[-1].to_arrays())
        return tuple(runs)

    def diagnose(self, plan: NestedPlan, runs: tuple[NestedRun, ...]) -> NestedEstimate:
        """Compare the runs and merge their points."""
        began = time.monotonic()
        judgement = judge_nested(
            runs,
            seed=plan.request.seed,
            num_inner_steps=plan.num_inner_steps,
            limit=plan.max_evaluations,
        )
        return NestedEstimate(plan, runs, judgement, time.monotonic() - began)


def _prior(model: LogDensity, base: Any) -> AbstractBase:
    """Return the base that is given, or the model's prior."""
    if isinstance(base, AbstractBase) or (isinstance(base, str) and base != "auto"):
        return model.choose_base(base)
    if not isinstance(base, str):
        raise InputError("base", f"must be a base or the name of one, got {type(base).__name__}")
    if model.prior is None:
        raise InputError(
            "",
            f"nested sampling needs a normalised prior, and {model.name} has none",
            remedy="make the model by annealz.from_prior or annealz.from_numpyro, or give {base}, a "
            "GaussianBase that is wider than the density",
        )
    return model.prior


def _live(request: NestedRequest, dim: int) -> int:
    """Return the live points of each run."""
    if request.num_live is None:
        return max(_DEFAULT_LIVE // request.num_runs, _LIVE_PER_VARIABLE * dim, _MIN_LIVE)
    least = max(_MIN_LIVE, 2 * dim)
    request.check_whole({"num_live": least * request.num_runs})
    return request.num_live // request.num_runs


METHOD = NestedSampling()
