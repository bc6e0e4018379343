"""The diagnosis of annealed runs: weights, two sides, the second opinion, and wishes of time and error."""

from collections.abc import Iterator

from annealz.diagnostics.diagnostics import IslandJudgement, Judgement, judge, judge_islands
from annealz.diagnostics.findings import Finding, Kind, Remedy, by_kind
from annealz.diagnostics.status import Status
from annealz.diagnostics.two_sided import TwoSided, judge_two_sided
from annealz.engine.run import Run, Runs
from annealz.io.schedules import SCHEDULES
from annealz.methods.annealing.advice import whole_seconds
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.plan import AnnealingPlan
from annealz.methods.annealing.second_opinion import Probe, SecondOpinion, probed_chains
from annealz.methods.annealing.size import TIME_RESERVE
from annealz.paths.tempered import ZERO_DENSITY
from annealz.schedules.choose import DEFAULT_NUM_STEPS

_EXCHANGE_FROM = 1.0
"""Predicted Var[log w]: 1.4 on mnist-cd25-20, where exchange had a third of the squared error; 0.4 on
mnist-pcd-20 (equal) and mnist-pcd-500 (twice the squared error)."""


def diagnose(plan: AnnealingPlan, runs: Runs) -> Estimate:
    """Return the estimate that the runs of a plan give."""
    judgement = _judgement_of(runs.forward)
    both = _two_sides(plan, runs, judgement)
    opinion = None
    if runs.second is not None and plan.second is not None:
        first = judgement if both is None else both
        opinion = SecondOpinion(
            runs.forward.log_z0 + (judgement.log_mean if both is None else both.log_ratio),
            first.std_err,
            _judgement_of(runs.second),
            log_z0=runs.second.log_z0,
            base=plan.second.base,
            probe=_probe_of(runs, judgement.log_mean),
        )
    findings = by_kind([*plan.known_findings, *_findings(plan, runs, judgement)])
    parts = (runs.forward, runs.reverse, runs.second, runs.probe)
    said = tuple(message for run in parts if run is not None for message in run.messages)
    return Estimate(plan, runs, judgement, both, opinion, findings, extra_messages=said)


def _findings(
    plan: AnnealingPlan, runs: Runs, judgement: Judgement | IslandJudgement
) -> Iterator[Finding]:
    """Yield what speaks of wishes, of the density and of the pilot's prediction."""
    run, std_err = runs.forward, judgement.std_err
    target, limit = plan.request.target_std_err, plan.request.max_seconds
    if limit is not None:
        yield from _time_findings(plan, run, limit)
    if target is not None and not std_err <= target:
        remedy = None
        if judgement.status is Status.OK:  # else no error can be relied on
            remedy = Remedy(target_std_err=float(f"{1.2 * std_err:.2g}"), words="or more steps")
        yield Finding.of(Kind.MISSED_TARGET, remedy, target=target, std_err=std_err)
    if plan.rounding is not None and plan.rounding > std_err / 3:
        yield Finding.of(Kind.ROUNDED_DENSITY, rounding=plan.rounding, std_err=std_err)
    predicted = run.schedule.provenance.get("predicted_variance", 0.0)
    if predicted > _EXCHANGE_FROM and plan.is_density:
        yield Finding.of(Kind.SLOW_CHAINS, predicted=predicted, steps=run.num_steps)
    elif predicted > _EXCHANGE_FROM and plan.second:
        yield Finding.of(Kind.EXCHANGE_IS_CHEAPER, predicted=predicted)
    if run.log_weights.max() < ZERO_DENSITY / 2:
        yield Finding.of(Kind.ZERO_WEIGHT)
    if runs.failure is not None:
        yield Finding.of(Kind.FAILED_CHECK, why=runs.failure.rstrip("."))
    if limit is not None and runs.failure is None and _is_unconfirmed(plan, runs):
        kind = Kind.UNCONFIRMED if runs.second is None else Kind.UNPROBED
        yield Finding.of(kind, limit=limit)


def _time_findings(plan: AnnealingPlan, run: Run, limit: float) -> Iterator[Finding]:
    """Yield what a time limit left out, and the time that all of it should take."""
    request, chains, steps = plan.request, plan.wanted_chains, run.num_steps
    is_name = isinstance(request.schedule, str) and SCHEDULES.find(request.schedule) is not None
    if request.target_std_err is None and is_name:
        steps = request.num_steps or plan.wanted_steps or DEFAULT_NUM_STEPS
    if plan.cost.seconds > limit:
        yield Finding.of(Kind.SLOW_START, limit=limit, seconds=plan.cost.seconds)
    if run.num_steps < steps:
        yield Finding.of(Kind.SHORTENED, limit=limit, steps=run.num_steps, wanted=steps)
    if run.num_chains < chains:
        remedy = None
        if plan.whole_seconds is not None:
            whole = plan.cost.seconds + plan.whole_seconds / TIME_RESERVE
            whole = max(whole, 1.5 * limit, 1.0)
            remedy = Remedy(max_seconds=whole_seconds(whole), words="for all of them")
        yield Finding.of(Kind.OUT_OF_TIME, remedy, limit=limit, done=run.num_chains, wanted=chains)


def _is_unconfirmed(plan: AnnealingPlan, runs: Runs) -> bool:
    """Check whether time ran out before second chains had shown what they can.

    Second chains that can be trusted confirm by their log Z; others only by the way back from their ends.
    """
    if plan.second is None or plan.exact_log_z is not None:
        return False
    if runs.second is None:
        return True
    is_cut = not plan.has_time_after(runs.forward, runs.second)
    return is_cut and _judgement_of(runs.second).status is not Status.OK


def _two_sides(
    plan: AnnealingPlan, runs: Runs, judgement: Judgement | IslandJudgement
) -> TwoSided | None:
    """Return what forward and reverse work give together, where there is a reverse run."""
    run, reverse = runs.forward, runs.reverse
    if reverse is None:
        return None
    return judge_two_sided(
        run.work,
        reverse.work,
        are_exact=plan.draws == "exact",
        log_z0=run.log_z0,
        ancestors=reverse.ancestors,
        are_forward=plan.independent_draws is None,
        forward_judgement=judgement if isinstance(judgement, Judgement) else None,
    )


def _judgement_of(run: Run) -> Judgement | IslandJudgement:
    """Diagnose the weights of a forward run."""
    if run.island_size is None:
        return judge(run.log_weights)
    return judge_islands(run.island_log_means)


def _probe_of(runs: Runs, log_ratio: float) -> Probe | None:
    """Return what the way back from the ends of second chains shows."""
    if runs.probe is None or runs.second is None:
        return None
    run, second = runs.forward, runs.second
    chains, log_chances = probed_chains(second)
    return Probe(
        first_work=run.work,
        log_ratio=log_ratio,
        reverse_work=runs.probe.work,
        log_masses=second.log_z0 - run.log_z0 + second.log_weights[chains] - log_chances,
    )
