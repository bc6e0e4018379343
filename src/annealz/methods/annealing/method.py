"""Annealed importance sampling as a method: forward in parts, in reverse, and the second opinion.

How many chains the next part has depends on the plan and on the parts before it alone, so that a resumed
run takes as many.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from annealz.core.arrays import indices
from annealz.core.random import Stream, derive_seed
from annealz.engine.anneal import anneal
from annealz.engine.context import Context
from annealz.engine.observers import AbstractObserver, Expectation, Slope
from annealz.engine.run import Run, Runs
from annealz.engine.statistics import merge_runs
from annealz.methods.annealing.diagnose import diagnose
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.plan import AnnealingPlan, make_plan
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.annealing.second_opinion import probed_chains
from annealz.methods.annealing.size import num_opinion_chains
from annealz.methods.method import AbstractMethod
from annealz.methods.problem import Problem
from annealz.paths import programs
from annealz.paths.tempered import ZERO_DENSITY
from annealz.pilots.draws import draw_with_ancestors
from annealz.pilots.sizing import more_chains

Observe = Mapping[str, Callable | AbstractObserver]
_FAILURE = "failed-check"  # the part that says why the second opinion could not be computed


class Annealing(AbstractMethod):
    """Annealed importance sampling from a base to the model."""

    request_type = AnnealingRequest
    plan_type = AnnealingPlan

    def plan(self, request: AnnealingRequest, context: Context) -> AnnealingPlan:
        """Run all pilots."""
        return make_plan(request, context)

    def run(self, plan: AnnealingPlan, context: Context) -> Runs:
        """Anneal forward, in reverse where that is asked for, and from a second base."""
        forward = run_forward(plan, context)
        reverse = run_reverse(plan, context, forward) if plan.request.two_sided else None
        if plan.second_schedule is None or not plan.has_time_after(forward):
            return Runs(forward, reverse)
        store, second = context.store, context.load("second", plan.second_schedule)
        probe = context.load("probe", plan.schedule)
        if store is not None and store.has(_FAILURE):
            return Runs(forward, reverse, failure=str(store.load(_FAILURE)[1].get("why", "")))
        try:
            second = second or run_second(plan, context, forward)
            if plan.has_time_after(forward, second):
                probe = probe or run_probe(plan, context, second)
        except ValueError as error:  # of a check, which leaves the estimate as it is
            context.save(_FAILURE, {}, {"why": str(error)})
            return Runs(forward, reverse, failure=str(error))
        return Runs(forward, reverse, second, probe)

    def diagnose(self, plan: AnnealingPlan, runs: Runs) -> Estimate:
        """Return the estimate that the runs give."""
        return diagnose(plan, runs)


METHOD = Annealing()


def run_forward(plan: AnnealingPlan, context: Context) -> Run:
    """Return the forward run, its parts merged."""
    runs: list[Run] = []
    while count := _next_part(plan, runs):
        part, left = len(runs) + 1, plan.num_chains - sum(run.num_chains for run in runs)
        name, num_parts = f"forward-{part}", part - 1 + max(-(-left // count), 1)
        run = context.load(name, plan.schedule) or context.keep(
            name,
            anneal(
                _problem(plan).states,
                _problem(plan).kernel,
                plan.schedule,
                num_chains=count,
                purpose="anneal" if part == 1 else f"anneal {part}",
                resample=plan.request.resample,
                observers=observers_of(plan.request.observe),
                on_progress=context.begin("run", part, num_parts),
                **_shared(plan),
                **context.how(name),
            ),
        )
        runs.append(run)
    return merge_runs(runs)


def _shared(plan: AnnealingPlan) -> dict[str, Any]:
    """Return what all runs of a plan are given."""
    return {"seed": plan.request.seed, "record_every": plan.request.record_every}


def run_reverse(plan: AnnealingPlan, context: Context, run: Run) -> Run:
    """Return the run from the target down to the base."""
    stored = context.load("reverse", plan.schedule)
    if stored is not None:
        return stored
    began = time.monotonic()
    context.begin("draws")
    start, ancestors = _start(plan, run)
    drawn = time.monotonic() - began
    reverse = _annealed_back(plan, context, "reverse", start)
    reverse = dataclasses.replace(reverse, seconds=reverse.seconds + drawn, ancestors=ancestors)
    return context.keep("reverse", reverse)


def _annealed_back(plan: AnnealingPlan, context: Context, purpose: str, start: np.ndarray) -> Run:
    """Anneal these states back along the first path."""
    return anneal(
        _problem(plan).states,
        _problem(plan).kernel,
        plan.schedule,
        num_chains=len(start),
        purpose=purpose,
        start=start,
        reverse=True,
        on_progress=context.begin(purpose),
        **_shared(plan),
        **context.how(purpose),
    )


def _start(plan: AnnealingPlan, run: Run) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the states that a reverse run starts from, and the forward chains that they come from."""
    problem, seed, ancestors = _problem(plan), derive_seed(plan.request.seed, "draws"), None
    start = plan.start
    if plan.draws == "approximate":
        sweeps = plan.sweeps_per_draw(run.num_chains)
        return draw_with_ancestors(
            problem.states, problem.kernel, run, run.num_chains, num_sweeps=sweeps, seed=seed
        )
    if plan.draws == "exact":
        start = problem.model.exact_draws(run.num_chains, seed, problem.layer)
    bits = Stream(seed, "states").at(0, indices(run.num_chains))
    start = np.asarray(programs.state(problem.states.unnamed(), bits, start))
    if plan.independent_draws is not None:
        ancestors = np.arange(run.num_chains) % plan.independent_draws
    return start, ancestors


def run_second(plan: AnnealingPlan, context: Context, run: Run) -> Run:
    """Return chains from the second base, a tenth as many as the run has."""
    resample, schedule = plan.request.resample, plan.second_schedule
    assert schedule is not None
    second = anneal(
        *_problem(plan).along_second(),
        schedule,
        num_chains=num_opinion_chains(run.num_chains, plan.part_chains, resample is not None),
        purpose="second",
        resample=resample,
        on_progress=context.begin("second"),
        **_shared(plan),
        **context.how("second"),
    )  # the main run reports on devices and disks
    return context.keep("second", dataclasses.replace(second, messages=()))


def run_probe(plan: AnnealingPlan, context: Context, second: Run) -> Run | None:
    """Return the run back along the first path from where the second chains ended.

    None if the kernel has no reversal, if the second chains have no weight, and beside exact draws, because
    BAR knows of what forward chains miss.
    """
    if plan.draws == "exact" or second.log_weights.max() < ZERO_DENSITY / 2:
        return None
    if plan.problem is not None:
        try:
            plan.problem.kernel.reversed()
        except ValueError:
            return None

    problem, probed = _problem(plan), probed_chains(second)[0]
    start = second.states[probed]
    if problem.second is not None and problem.second.kernel is not None:  # of another frame
        bits = Stream(derive_seed(plan.request.seed, "probe"), "states")
        place = programs.position(problem.along_second()[0].unnamed(), start, work=0)
        own = problem.states.unnamed()
        work = probed.size * own.sweep_size  # the density is evaluated
        start = programs.state(own, bits.at(0, indices(probed.size)), place, work=work)
    probe = _annealed_back(plan, context, "probe", np.asarray(start))
    return context.keep("probe", dataclasses.replace(probe, messages=()))


def _problem(plan: AnnealingPlan) -> Problem:
    """Return what is annealed, which a run that is not done needs."""
    assert plan.problem is not None
    return plan.problem


def _next_part(plan: AnnealingPlan, runs: list[Run]) -> int:
    """Return the chains of the next part of the forward run; none where it is done."""
    wanted, done = plan.num_chains, sum(run.num_chains for run in runs)
    limit, target = plan.request.max_seconds, plan.request.target_std_err
    if limit is not None and runs:
        spent = plan.cost.seconds + sum(run.seconds for run in runs)
        ahead = min(run.seconds for run in runs)  # the first may have compiled
        if plan.second is not None:  # which comes after them
            second = 1.5 * num_opinion_chains(runs[0].num_chains, plan.part_chains)
            ahead *= 1 + second / runs[0].num_chains
        if spent + ahead > plan.allowed_seconds:
            return 0
    if target is not None and done >= wanted:
        log_weights = np.concatenate([run.log_weights for run in runs])[:wanted]
        wanted += more_chains(log_weights, target)
    size = plan.part_chains or wanted
    return min(size, wanted - done)


def observers_of(observe: Observe | None) -> dict[str, AbstractObserver]:
    """Return what a run records: the slope, and what a user wants."""
    if observe and "slope" in observe:
        raise ValueError("observe must not use the name slope: the slope is always recorded.")
    given = {
        name: what if isinstance(what, AbstractObserver) else Expectation(what)
        for name, what in (observe or {}).items()
    }
    return {"slope": Slope(), **given}
