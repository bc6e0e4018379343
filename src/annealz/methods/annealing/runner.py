"""The runs of one estimate: the forward run in parts, the reverse run, and the diagnosis of them.

How many chains the next part has depends on the settings and on the parts before it alone, so that a
resumed run takes as many.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from annealz.core.arrays import indices
from annealz.core.random import Stream, derive_seed
from annealz.diagnostics.diagnostics import Judgement, judge
from annealz.diagnostics.findings import Finding, Kind, Remedy, by_kind
from annealz.diagnostics.islands import IslandJudgement, judge_islands
from annealz.diagnostics.status import Status
from annealz.diagnostics.two_sided import judge_two_sided
from annealz.engine.anneal import anneal
from annealz.engine.merge import merge_runs
from annealz.engine.observers import AbstractObserver, Expectation, Slope
from annealz.engine.progress import begin, in_stage
from annealz.engine.run import Run, Runs
from annealz.io.registry.schedules import SCHEDULES
from annealz.methods.annealing.advice import whole_seconds
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.length import RUN_SHARE, TIME_RESERVE, opinion_chains
from annealz.methods.annealing.second_opinion import Probe, compare_opinions, probed_chains
from annealz.methods.folder import RunFolder
from annealz.methods.problem import Problem
from annealz.methods.settings import AnnealSettings
from annealz.paths import programs
from annealz.paths.tempered import ZERO_DENSITY
from annealz.pilots.draws import draw_with_ancestors
from annealz.pilots.sizing import more_chains
from annealz.schedules.choose import DEFAULT_NUM_STEPS
from annealz.schedules.schedule import Schedule

__all__ = ["Observe", "Runner", "estimate_of", "observers_of", "read_estimate"]

Observe = Mapping[str, Callable | AbstractObserver]
_EXCHANGE_FROM = (
    1.0  # predicted Var[log w]: 1.4 on mnist-cd25-20, where exchange had a third of the squared
)
# error; 0.4 on mnist-pcd-20 (equal) and mnist-pcd-500 (twice the squared error)


class Runner:
    """The runs of one estimate: forward in parts, then in reverse if wanted."""

    def __init__(
        self,
        settings: AnnealSettings,
        problem: Problem,
        schedule: Schedule,
        observers,
        chunk_steps,
        folder,
        on_progress,
        second_schedule: Schedule | None = None,
    ):
        self.second_schedule = second_schedule
        self.settings, self.problem, self.schedule = settings, problem, schedule
        self.folder: RunFolder | None = folder
        self.options = {
            "seed": settings.seed,
            "chunk_steps": chunk_steps,
            "record_every": settings.record_every,
            "checkpoint_seconds": settings.checkpoint_seconds,
        }
        self.observers, self.on_progress = observers, on_progress

    def estimate(self, start: np.ndarray | None) -> Estimate:
        run = self.forward()
        reverse = self.reverse(run, start) if self.settings.two_sided else None
        wants_second = self.second_schedule is not None and _is_left(self.settings, run)
        second = self.second(run) if wants_second else None
        wants_probe = second is not None and _is_left(self.settings, run, second)
        probe = self.probe(second) if second is not None and wants_probe else None
        runs = Runs(run, reverse, second, probe)
        estimate = dataclasses.replace(estimate_of(self.settings, runs), problem=self.problem)
        if self.folder is None:
            return estimate
        try:
            self.folder.finish(runs, estimate.to_dict())
        except OSError as error:
            return estimate.with_message(
                f"could not save the result to {self.folder.path}: {error.strerror or error}."
            )
        return estimate

    def forward(self) -> Run:
        runs: list[Run] = []
        while count := _next_part(self.settings, runs):
            part = len(runs) + 1
            left = self.settings.num_chains - sum(run.num_chains for run in runs)
            num_parts = part - 1 + max(-(-left // count), 1)
            begin(self.on_progress, "run", part, num_parts)
            runs.append(
                self._kept(
                    f"part-{part}",
                    on_progress=in_stage(self.on_progress, "run", part, num_parts),
                    num_chains=count,
                    purpose="anneal" if part == 1 else f"anneal {part}",
                    resample=self.settings.resample,
                    observers=self.observers,
                )
            )
        return merge_runs(runs)

    def reverse(self, run: Run, start: np.ndarray | None) -> Run:
        began = time.monotonic()
        settings, seed = self.settings, derive_seed(self.settings.seed, "draws")
        problem, ancestors = self.problem, None
        begin(self.on_progress, "draws")
        if settings.draws == "exact":
            layer = settings.marginal or problem.model.marginals[0]
            start = problem.model.exact_draws(run.num_chains, seed, layer)
        elif settings.draws == "approximate":
            sweeps = settings.sweeps_a_draw(run.num_chains)
            start, ancestors = draw_with_ancestors(
                problem.states, problem.kernel, run, run.num_chains, num_sweeps=sweeps, seed=seed
            )
        if settings.draws != "approximate":  # those are states already
            bits = Stream(seed, "states").at(0, indices(run.num_chains))
            start = np.asarray(programs.state(problem.states.unnamed(), bits, start))
        if settings.independent_draws is not None:
            ancestors = np.arange(run.num_chains) % settings.independent_draws
        drawn = time.monotonic() - began
        begin(self.on_progress, "reverse")
        reverse = self._kept(
            "reverse",
            num_chains=run.num_chains,
            purpose="reverse",
            start=start,
            reverse=True,
            on_progress=in_stage(self.on_progress, "reverse"),
        )
        seconds = reverse.seconds + drawn
        return dataclasses.replace(reverse, seconds=seconds, ancestors=ancestors)

    def second(self, run: Run) -> Run:
        """Chains from the second base, a tenth as many as the run has."""
        assert self.problem.second_path is not None
        assert self.second_schedule is not None
        resample = self.settings.resample
        begin(self.on_progress, "second")
        return self._quiet(
            "second",
            path=self.problem.second_states,
            kernel=self.problem.second_kernel,
            schedule=self.second_schedule,
            num_chains=opinion_chains(
                run.num_chains, self.settings.part_chains, resample is not None
            ),
            purpose="second",
            resample=resample,
            on_progress=in_stage(self.on_progress, "second"),
        )

    def probe(self, second: Run) -> Run | None:
        """Where the second chains ended, annealed back along the first path; None without a reversal,
        or without weight.
        """
        try:
            self.problem.kernel.reversed()
        except ValueError:
            return None
        if second.log_weights.max() < ZERO_DENSITY / 2:  # they ended nowhere
            return None
        if self.settings.draws == "exact":  # BAR knows of what forward chains miss
            return None
        probed = probed_chains(second)[0]
        start = second.states[probed]
        if self.problem.second_kernel is not None:  # states of another frame
            bits = Stream(derive_seed(self.settings.seed, "probe"), "states")
            place = programs.position(self.problem.second_states.unnamed(), start, work=0)
            bits = bits.at(0, indices(probed.size))
            own = self.problem.states.unnamed()
            work = probed.size * own.sweep_size  # the density is evaluated
            start = np.asarray(programs.state(own, bits, place, work=work))
        begin(self.on_progress, "probe")
        return self._quiet(
            "probe",
            num_chains=probed.size,
            purpose="probe",
            start=start,
            reverse=True,
            on_progress=in_stage(self.on_progress, "probe"),
        )

    def _quiet(self, name: str, **options) -> Run:
        """A run beside the main one, which says for both what devices and disks lack."""
        return dataclasses.replace(self._kept(name, **options), messages=())

    def _kept(
        self, name: str, *, path=None, kernel=None, schedule: Schedule | None = None, **options
    ) -> Run:
        """A run, or what the folder holds of it."""
        path = self.problem.states if path is None else path
        kernel = self.problem.kernel if kernel is None else kernel
        schedule = self.schedule if schedule is None else schedule
        options = {**self.options, **options}
        if self.folder is None:
            return anneal(path, kernel, schedule, **options)
        kept = self.folder.part(name, schedule)
        if kept is not None:
            return kept
        checkpoint = self.folder.checkpoint_of(name)
        run = anneal(path, kernel, schedule, checkpoint=checkpoint, **options)
        has_more = self.settings.two_sided or self.settings.part_chains
        if has_more or self.second_schedule or self.settings.target_std_err is not None:
            self.folder.save_part(name, run)
        return run


def _next_part(settings: AnnealSettings, runs: list[Run]) -> int:
    """Chains of the next part of the forward run; none where it is done."""
    wanted, done = settings.num_chains, sum(run.num_chains for run in runs)
    limit, target = settings.max_seconds, settings.target_std_err
    if limit is not None and runs:
        spent = settings.pilot_seconds + sum(run.seconds for run in runs)
        ahead = min(run.seconds for run in runs)  # the first may have compiled
        if settings.second is not None:  # which comes after them
            beside = 1.5 * opinion_chains(runs[0].num_chains, settings.part_chains)
            ahead *= 1 + beside / runs[0].num_chains
        if spent + ahead > _allowed(settings, limit):
            return 0
    if target is not None and done >= wanted:
        log_weights = np.concatenate([run.log_weights for run in runs])[:wanted]
        wanted += more_chains(log_weights, target)
    size = settings.part_chains or wanted
    return min(size, wanted - done)


def _is_left(settings: AnnealSettings, *runs: Run) -> bool:
    """Whether a time limit leaves time for one more run; after the first one for a run like the last."""
    if settings.max_seconds is None:
        return True
    spent = settings.pilot_seconds + sum(run.seconds for run in runs)
    return spent + (runs[-1].seconds if len(runs) > 1 else 0.0) < _allowed(
        settings, settings.max_seconds
    )


def _allowed(settings: AnnealSettings, limit: float) -> float:
    """Seconds until all runs should be done: some are left, however long pilots and compilation took."""
    return max(limit, settings.pilot_seconds + RUN_SHARE * limit)


def estimate_of(settings: AnnealSettings, runs: Runs) -> Estimate:
    """What the runs of these settings come to."""
    run, reverse = runs.forward, runs.reverse
    judgement = judgement_of(run)
    target, limit = settings.target_std_err, settings.max_seconds
    found = [Finding.from_record(record) for record in settings.pilot_findings or ()]
    if limit is not None:
        found += _of_time(settings, run, limit)
    if target is not None and not judgement.std_err <= target:
        remedy, std_err = None, judgement.std_err
        if judgement.status is Status.OK:  # else no error can be relied on
            remedy = Remedy(target_std_err=float(f"{1.2 * std_err:.2g}"), words="or more steps")
        found.append(Finding.of(Kind.MISSED_TARGET, remedy, target=target, std_err=std_err))
    if settings.rounding is not None and settings.rounding > judgement.std_err / 3:
        rounding, std_err = settings.rounding, judgement.std_err
        found.append(Finding.of(Kind.ROUNDED_DENSITY, rounding=rounding, std_err=std_err))
    predicted = run.schedule.provenance.get("predicted_variance", 0.0)
    if settings.evaluations_a_sweep is not None and predicted > _EXCHANGE_FROM:
        steps = run.num_steps
        found.append(Finding.of(Kind.SLOW_CHAINS, predicted=predicted, steps=steps))
    elif settings.second and predicted > _EXCHANGE_FROM:
        found.append(Finding.of(Kind.EXCHANGE_IS_CHEAPER, predicted=predicted))
    if run.log_weights.max() < ZERO_DENSITY / 2:
        found.append(Finding.of(Kind.ZERO_WEIGHT))
    both = None
    if reverse is not None:
        are_exact = settings.draws == "exact"
        both = judge_two_sided(
            run.work,
            reverse.work,
            are_exact=are_exact,
            log_z0=run.log_z0,
            ancestors=reverse.ancestors,
            are_forward=settings.independent_draws is None,
            forward_judgement=judgement if isinstance(judgement, Judgement) else None,
        )
    first = judgement if both is None else both
    opinion = None
    if runs.second is not None and settings.second is not None:
        log_z = run.log_z0 + (judgement.log_mean if both is None else both.log_ratio)
        opinion = compare_opinions(
            log_z,
            first.std_err,
            judgement_of(runs.second),
            log_z0=runs.second.log_z0,
            base=settings.second.base,
            probe=_probe_of(runs, judgement.log_mean),
        )
    if limit is not None and _is_unconfirmed(settings, runs):
        found.append(Finding.of(Kind.UNCONFIRMED, limit=limit))
    return Estimate(settings, runs, judgement, (), both, opinion, by_kind(found))


def _is_unconfirmed(settings: AnnealSettings, runs: Runs) -> bool:
    """Whether time ran out before second chains had shown what they can, and no exact value is known.

    Second chains that can be trusted confirm by their log Z; others only by the way back from their ends.
    """
    if settings.second is None or settings.exact_log_z is not None:
        return False
    if runs.second is None:
        return True
    is_cut = not _is_left(settings, runs.forward, runs.second)
    return is_cut and judgement_of(runs.second).status is not Status.OK


def _of_time(settings: AnnealSettings, run: Run, limit: float) -> Iterator[Finding]:
    """What a time limit left out, and the time that all of it should take."""
    chains, steps = settings.wanted_chains, run.num_steps
    if (
        settings.target_std_err is None
        and SCHEDULES.find(settings.asked.schedule or "") is not None
    ):
        steps = settings.asked.num_steps or settings.wanted_steps or DEFAULT_NUM_STEPS
    if settings.pilot_seconds > limit:
        yield Finding.of(Kind.SLOW_START, limit=limit, seconds=settings.pilot_seconds)
    if run.num_steps < steps:
        yield Finding.of(Kind.SHORTENED, limit=limit, steps=run.num_steps, wanted=steps)
    if run.num_chains < chains:
        remedy = None
        if settings.whole_seconds is not None:
            whole = settings.pilot_seconds + settings.whole_seconds / TIME_RESERVE
            whole = max(whole, 1.5 * limit, 1.0)
            remedy = Remedy(max_seconds=whole_seconds(whole), words="for all of them")
        yield Finding.of(Kind.OUT_OF_TIME, remedy, limit=limit, done=run.num_chains, wanted=chains)


def judgement_of(run: Run) -> Judgement | IslandJudgement:
    """Of the weights of a forward run."""
    if run.island_size is None:
        return judge(run.log_weights)
    return judge_islands(run.island_log_means)


def _probe_of(runs: Runs, log_ratio: float) -> Probe | None:
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


def read_estimate(folder: RunFolder, **given: Any) -> Estimate:
    """The estimate of a finished run; nothing is run.

    With the model, if that is `given`, posterior and entropy come along.
    """
    folder.check_done()
    settings = folder.settings()
    assert isinstance(settings, AnnealSettings)
    estimate = estimate_of(settings, folder.runs())
    if given.get("model") is None:
        return estimate
    return dataclasses.replace(estimate, problem=folder.problem(settings, **given))


def observers_of(observe: Observe | None) -> dict[str, AbstractObserver]:
    """What a run records: the slope, and what a user wants."""
    if observe and "slope" in observe:
        raise ValueError("observe must not use the name slope: the slope is always recorded.")
    given = {
        name: what if isinstance(what, AbstractObserver) else Expectation(what)
        for name, what in (observe or {}).items()
    }
    return {"slope": Slope(), **given}
