"""The runs of one estimate: the forward run in parts, the reverse run, and the second opinion.

How many chains the next part has depends on the plan and on the parts before it alone, so that a resumed
run takes as many.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from annealz.core.arrays import indices
from annealz.core.random import Stream, derive_seed
from annealz.engine.anneal import anneal
from annealz.engine.context import Context
from annealz.engine.merge import merge_runs
from annealz.engine.observers import AbstractObserver, Expectation, Slope
from annealz.engine.run import Run
from annealz.methods.annealing.plan import AnnealingPlan
from annealz.methods.annealing.second_opinion import probed_chains
from annealz.methods.annealing.size import RUN_SHARE, num_opinion_chains
from annealz.methods.problem import Problem
from annealz.paths import programs
from annealz.paths.tempered import ZERO_DENSITY
from annealz.pilots.draws import draw_with_ancestors
from annealz.pilots.sizing import more_chains

Observe = Mapping[str, Callable | AbstractObserver]


def run_forward(plan: AnnealingPlan, context: Context, options: dict[str, Any]) -> Run:
    """Return the forward run, its parts merged."""
    runs: list[Run] = []
    while count := _next_part(plan, runs):
        part = len(runs) + 1
        left = plan.num_chains - sum(run.num_chains for run in runs)
        on_progress = context.begin("run", part, part - 1 + max(-(-left // count), 1))
        compute = functools.partial(
            anneal,
            getattr(plan.problem, "states", None),  # of a run that is done there may be none
            getattr(plan.problem, "kernel", None),
            plan.schedule,
            num_chains=count,
            purpose="anneal" if part == 1 else f"anneal {part}",
            resample=plan.request.resample,
            observers=observers_of(plan.request.observe),
            on_progress=on_progress,
            **options,
        )
        runs.append(context.run(f"forward-{part}", plan.schedule, compute))
    return merge_runs(runs)


def run_reverse(plan: AnnealingPlan, context: Context, options: dict[str, Any], run: Run) -> Run:
    """Return the run from the target down to the base."""

    def compute(**how: Any) -> Run:
        began = time.monotonic()
        context.begin("draws")
        start, ancestors = _start(plan, run)
        drawn = time.monotonic() - began
        reverse = anneal(
            _problem(plan).states,
            _problem(plan).kernel,
            plan.schedule,
            num_chains=run.num_chains,
            purpose="reverse",
            start=start,
            reverse=True,
            on_progress=context.begin("reverse"),
            **options,
            **how,
        )
        return dataclasses.replace(reverse, seconds=reverse.seconds + drawn, ancestors=ancestors)

    return context.run("reverse", plan.schedule, compute)


def _start(plan: AnnealingPlan, run: Run) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the states that a reverse run starts from, and the forward chains that they come from."""
    problem, seed, ancestors = _problem(plan), derive_seed(plan.request.seed, "draws"), None
    start = plan.start
    if plan.draws == "approximate":
        sweeps = plan.sweeps_per_draw(run.num_chains)
        return draw_with_ancestors(
            problem.states, problem.kernel, run, run.num_chains, sweeps, seed
        )
    if plan.draws == "exact":
        layer = plan.marginal or problem.model.marginals[0]
        start = problem.model.exact_draws(run.num_chains, seed, layer)
    bits = Stream(seed, "states").at(0, indices(run.num_chains))
    start = np.asarray(programs.state(problem.states.unnamed(), bits, start))
    if plan.independent_draws is not None:
        ancestors = np.arange(run.num_chains) % plan.independent_draws
    return start, ancestors


def run_second(plan: AnnealingPlan, context: Context, options: dict[str, Any], run: Run) -> Run:
    """Return chains from the second base, a tenth as many as the run has."""
    resample, schedule = plan.request.resample, plan.second_schedule
    assert schedule is not None
    count = num_opinion_chains(run.num_chains, plan.part_chains, resample is not None)

    def compute(**how: Any) -> Run:
        return anneal(
            _problem(plan).second_states,
            _problem(plan).second_kernel or _problem(plan).kernel,
            schedule,
            num_chains=count,
            purpose="second",
            resample=resample,
            on_progress=context.begin("second"),
            **options,
            **how,
        )

    # the main run says for both what devices and disks lack
    return dataclasses.replace(context.run("second", schedule, compute), messages=())


def run_probe(
    plan: AnnealingPlan, context: Context, options: dict[str, Any], second: Run
) -> Run | None:
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

    def compute(**how: Any) -> Run:
        problem, probed = _problem(plan), probed_chains(second)[0]
        start = second.states[probed]
        if problem.second_kernel is not None:  # states of another frame
            bits = Stream(derive_seed(plan.request.seed, "probe"), "states")
            place = programs.position(problem.second_states.unnamed(), start, work=0)
            own = problem.states.unnamed()
            work = probed.size * own.sweep_size  # the density is evaluated
            start = programs.state(own, bits.at(0, indices(probed.size)), place, work=work)
        return anneal(
            problem.states,
            problem.kernel,
            plan.schedule,
            num_chains=probed.size,
            purpose="probe",
            start=np.asarray(start),
            reverse=True,
            on_progress=context.begin("probe"),
            **options,
            **how,
        )

    return dataclasses.replace(context.run("probe", plan.schedule, compute), messages=())


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
        if spent + ahead > _allowed_seconds(plan, limit):
            return 0
    if target is not None and done >= wanted:
        log_weights = np.concatenate([run.log_weights for run in runs])[:wanted]
        wanted += more_chains(log_weights, target)
    size = plan.part_chains or wanted
    return min(size, wanted - done)


def has_time_for_another(plan: AnnealingPlan, *runs: Run) -> bool:
    """Check whether a time limit leaves time for one more run, after the first for one like the last."""
    limit = plan.request.max_seconds
    if limit is None:
        return True
    spent = plan.cost.seconds + sum(run.seconds for run in runs)
    return spent + (runs[-1].seconds if len(runs) > 1 else 0.0) < _allowed_seconds(plan, limit)


def _allowed_seconds(plan: AnnealingPlan, limit: float) -> float:
    """Return the seconds until all runs should be done: some are left, however long pilots took."""
    return max(limit, plan.cost.seconds + RUN_SHARE * limit)


def observers_of(observe: Observe | None) -> dict[str, AbstractObserver]:
    """Return what a run records: the slope, and what a user wants."""
    if observe and "slope" in observe:
        raise ValueError("observe must not use the name slope: the slope is always recorded.")
    given = {
        name: what if isinstance(what, AbstractObserver) else Expectation(what)
        for name, what in (observe or {}).items()
    }
    return {"slope": Slope(), **given}
