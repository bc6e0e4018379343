"""The runs of one estimate: the forward run in parts, the reverse run, and what is judged of them.

How many chains the next part has depends on the settings and on the parts before it alone, so that a
resumed run takes as many.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from annealz.anneal import anneal
from annealz.assist import pack_inputs
from annealz.batches import merge_runs
from annealz.diagnostics import Judgement, judge
from annealz.distributed import current_team
from annealz.draws import draw_with_ancestors
from annealz.estimate import Estimate
from annealz.folder import RunFolder
from annealz.islands import judge_islands
from annealz.observers import AbstractObserver, Expectation, Slope
from annealz.problem import Problem
from annealz.random import Stream, derive_seed
from annealz.run import Run
from annealz.schedules.schedule import Schedule
from annealz.sizing import more_chains
from annealz.stages import begin, in_stage
from annealz.status import Message, Status, longer
from annealz.two_sided import judge_two_sided

__all__ = ["Observe", "Runner", "estimate_of", "observers_of", "read_estimate"]

Observe = Mapping[str, Callable | AbstractObserver]


class Runner:
    """The runs of one estimate: forward in parts, then in reverse if wanted."""

    def __init__(
        self,
        settings: dict[str, Any],
        problem: Problem,
        schedule: Schedule,
        observers,
        chunk_steps,
        folder,
        on_progress,
    ):
        team = current_team()
        if team.size > 1:
            team.tell("inputs", pack_inputs(problem, schedule, settings))
        self.settings, self.problem, self.schedule = settings, problem, schedule
        self.folder: RunFolder | None = folder
        self.options = {
            "seed": settings["seed"],
            "chunk_steps": chunk_steps,
            "record_every": settings["record_every"],
            "checkpoint_seconds": settings["checkpoint_seconds"],
            "team": team,
        }
        self.observers, self.on_progress = observers, on_progress

    def estimate(self, start: np.ndarray | None) -> Estimate:
        run = self.forward()
        reverse = self.reverse(run, start) if self.settings.get("two_sided") else None
        estimate = estimate_of(self.settings, run, reverse)
        if self.folder is None:
            return estimate
        try:
            self.folder.finish(run, estimate.to_dict(), reverse)
        except OSError as error:
            return estimate.with_message(
                f"could not save the result to {self.folder.path}: {error.strerror or error}."
            )
        return estimate

    def forward(self) -> Run:
        runs: list[Run] = []
        while count := _next_part(self.settings, runs):
            part = len(runs) + 1
            left = self.settings["num_chains"] - sum(run.num_chains for run in runs)
            num_parts = part - 1 + max(-(-left // count), 1)
            begin(self.on_progress, "run", part, num_parts)
            runs.append(
                self._kept(
                    f"part-{part}",
                    on_progress=in_stage(self.on_progress, "run", part, num_parts),
                    num_chains=count,
                    purpose="anneal" if part == 1 else f"anneal {part}",
                    resample=self.settings.get("resample"),
                    observers=self.observers,
                )
            )
        return merge_runs(runs)

    def reverse(self, run: Run, start: np.ndarray | None) -> Run:
        began = time.monotonic()
        settings, seed = self.settings, derive_seed(self.settings["seed"], "draws")
        problem, ancestors = self.problem, None
        begin(self.on_progress, "draws")
        if settings["draws"] == "exact":
            layer = settings["marginal"] or problem.model.marginals[0]
            start = problem.model.exact_draws(run.num_chains, seed, layer)
        elif settings["draws"] == "approximate":
            sweeps = settings["draw_sweeps"] // run.num_chains
            start, ancestors = draw_with_ancestors(
                problem.states, problem.kernel, run, run.num_chains, num_sweeps=sweeps, seed=seed
            )
        if settings["draws"] != "approximate":  # those are states already
            bits = Stream(seed, "states").at(0, jnp.arange(run.num_chains))
            start = np.asarray(problem.states.state(bits, start))
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

    def _kept(self, name: str, **options) -> Run:
        """A run, or what the folder holds of it."""
        path, kernel = self.problem.states, self.problem.kernel
        if self.folder is None:
            return anneal(path, kernel, self.schedule, **options, **self.options)
        kept = self.folder.part(name)
        if kept is not None:
            return kept
        checkpoint = self.folder.checkpoint_of(name)
        run = anneal(path, kernel, self.schedule, checkpoint=checkpoint, **options, **self.options)
        has_more = self.settings.get("two_sided") or self.settings.get("part_chains")
        if has_more or self.settings["target_std_err"] is not None:
            self.folder.save_part(name, run)
        return run


def _next_part(settings: dict[str, Any], runs: list[Run]) -> int:
    """Chains of the next part of the forward run; none where it is done."""
    wanted, done = settings["num_chains"], sum(run.num_chains for run in runs)
    limit, target = settings.get("max_seconds"), settings["target_std_err"]
    if limit is not None and runs:
        spent = settings["pilot_seconds"] + sum(run.seconds for run in runs)
        if spent + runs[-1].seconds > limit:
            return 0
    if target is not None and done >= wanted:
        log_weights = np.concatenate([run.log_weights for run in runs])[:wanted]
        wanted += more_chains(log_weights, target)
    size = settings.get("part_chains") or wanted
    return min(size, wanted - done)


def estimate_of(settings: dict[str, Any], run: Run, reverse: Run | None) -> Estimate:
    """What the runs of these settings come to."""
    if run.island_size is None:
        judgement = judge(run.log_weights, run.num_steps)
    else:
        judgement = judge_islands(run.island_log_means, run.num_steps)
    target, limit, messages = settings["target_std_err"], settings.get("max_seconds"), []
    if limit is not None and run.num_chains < settings["wanted_chains"]:
        wanted = settings["wanted_chains"]
        messages.append(Message.OUT_OF_TIME.say(limit=limit, done=run.num_chains, wanted=wanted))
    if target is not None and not judgement.std_err <= target:
        more = longer(run.num_steps)
        if judgement.status is Status.OK:  # else no number of chains can be told
            more = f"--target-std-err {1.2 * judgement.std_err:.2g}, or {more}"
        messages.append(
            Message.MISSED_TARGET.say(target=target, std_err=judgement.std_err, more=more)
        )
    both = None
    if reverse is not None:
        are_exact = settings["draws"] == "exact"
        both = judge_two_sided(
            run.work,
            reverse.work,
            are_exact=are_exact,
            num_steps=run.num_steps,
            log_z0=run.log_z0,
            ancestors=reverse.ancestors,
            forward_judgement=judgement if isinstance(judgement, Judgement) else None,
        )
    return Estimate(settings, run, judgement, tuple(messages), reverse, both)


def read_estimate(folder: RunFolder) -> Estimate:
    """The estimate of a finished run; nothing is run."""
    folder.check_done()
    settings = folder.inputs()[0]
    return estimate_of(settings, folder.run(), folder.reverse_run())


def observers_of(observe: Observe | None) -> dict[str, AbstractObserver]:
    """What a run records: the slope, and what a user wants."""
    if observe and "slope" in observe:
        raise ValueError("observe must not use the name slope: the slope is always recorded.")
    given = {
        name: what if isinstance(what, AbstractObserver) else Expectation(what)
        for name, what in (observe or {}).items()
    }
    return {"slope": Slope(), **given}
