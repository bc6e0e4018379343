"""What the stages to come need is made in threads, while earlier ones are on their way.

    this thread    second base             | pilot, schedule, run           | second opinion, way back
    others         of the pilot and the run | of second opinion and way back

Programs are compiled, and on a GPU a short pilot is run, beside those of the second bases
(`pilots/beside.py`): no one of them needs another. That is for paths between layers, all of whose functions
are ours: those of users are called by one thread. Of other paths all runs are traced in this thread before
the first of them, when their length is known, and compiled side by side.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Self

from annealz.core.by_shape import shape_key
from annealz.core.compilers import Compilers
from annealz.core.threads import are_ours
from annealz.engine.anneal import usual_spacing
from annealz.engine.cluster.current import current_cluster
from annealz.engine.local_blocks import traced
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.work import Work
from annealz.methods.annealing.length import opinion_chains
from annealz.methods.annealing.options import Options
from annealz.methods.annealing.second_opinion import num_probed
from annealz.methods.problem import Problem
from annealz.methods.settings import AnnealSettings
from annealz.paths.abstract import AbstractLatentPath
from annealz.pilots.base_search import scout_budget
from annealz.pilots.beside import may_go_beside
from annealz.pilots.plan import mixing_budget
from annealz.pilots.survey_mixing import (
    compile_survey,
    survey_chains,
    survey_mixing,
)
from annealz.schedules.linear import linear
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

__all__ = ["Ahead"]

Observers = Mapping[str, AbstractObserver]
Terms = Options | AnnealSettings


class Ahead:
    """What is compiled for one estimate, by the names of its stages."""

    def __init__(self):
        self._compilers = Compilers()
        self._terrain: Future[Terrain] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given) -> None:
        self._compilers.__exit__(*given)

    def first(
        self,
        problem: Problem,
        options: Options,
        schedule: Any,
        num_steps: int,
        observers: Observers,
    ) -> None:
        """Pilot and run, where base, kernel and length are known before."""
        if problem.is_open or not _is_foreseen(problem, options):
            return
        path, kernel = problem.states, problem.kernel
        budget = mixing_budget(schedule, num_steps, options.chains)
        scouts = scout_budget(num_steps * options.chains)
        is_searched = problem.is_searched(options.second_opinion)
        if budget is not None and is_searched and may_go_beside(kernel, budget, path):
            self._terrain = self._compilers.submit(
                lambda: survey_mixing(path, kernel, budget=budget, seed=options.seed)
            )
        elif budget is not None and is_searched and survey_chains(budget) != survey_chains(scouts):
            key = shape_key(path.unnamed(), kernel), budget
            self._compilers.begin_apart("pilot", key, lambda: compile_survey(path, kernel, budget))
        if all(type(observer) is Slope for observer in observers.values()):
            run = _run(problem, linear(num_steps), options.chains, observers, options)
            self._begin_run("run", run)

    def others(self, problem: Problem, options: Options, num_steps: int) -> None:
        """The second opinion and the way back from it, where there is a second base."""
        if problem.second_path is None or not _is_foreseen(problem, options):
            return
        count = opinion_chains(options.chains, None, options.resample is not None)
        schedule = linear(num_steps)
        for name, work in _others(problem, schedule, schedule, count, options).items():
            self._begin_run(name, work)

    def runs(
        self,
        problem: Problem,
        settings: AnnealSettings,
        schedule: Schedule,
        second: Schedule | None,
        observers: Observers,
    ) -> None:
        """All runs as they are to be, where no time limit ends some: what was not asked for before."""
        if current_cluster() is not None or settings.max_seconds is not None:
            return
        count, part = settings.num_chains, settings.part_chains
        first = min(part or count, count)
        works = {"run": _run(problem, schedule, first, observers, settings)}
        if second is not None:
            count = opinion_chains(count, part, settings.resample is not None)
            works |= _others(problem, schedule, second, count, settings)
        if settings.draws == "exact":  # then there is no way back
            works.pop("probe", None)
        for name, work in works.items():
            self._compilers.begin(name, work.program_key, functools.partial(_unless_fused, work))

    def terrain(self) -> Terrain | None:
        """What the survey of the path saw, where it was begun; its seconds are those waited for here."""
        if self._terrain is None:
            return None
        began = time.monotonic()
        terrain = self._terrain.result()
        return dataclasses.replace(terrain, seconds=time.monotonic() - began)

    def wait(self, name: str) -> float:
        """Until the programs of this stage are compiled; the seconds that it took this thread."""
        return self._compilers.wait(name)

    def _begin_run(self, name: str, work: Work) -> None:
        def compile_all() -> None:
            for compile in traced(work):
                compile()

        self._compilers.begin_apart(name, work.program_key, compile_all)


def _run(
    problem: Problem, schedule: Schedule, num_chains: int, observers: Observers, terms: Terms
) -> Work:
    """The forward run, as it is known before it begins."""
    return _work(
        problem.states,
        problem.kernel,
        schedule,
        num_chains,
        terms.record_every,
        observers=dict(observers),
        resample=terms.resample,
    )


def _others(
    problem: Problem, schedule: Schedule, second: Schedule, num_chains: int, terms: Terms
) -> dict[str, Work]:
    """The second opinion of so many chains, and the way back."""
    kernel, every = problem.second_kernel or problem.kernel, terms.record_every
    back = problem.states, problem.kernel, schedule, num_probed(num_chains), every
    return {
        "second": _work(
            problem.second_states, kernel, second, num_chains, every, resample=terms.resample
        ),
        "probe": _work(*back, is_reverse=True),
    }


def _work(
    states: Any, kernel: Any, schedule: Schedule, num_chains: int, every: int | None, **more: Any
) -> Work:
    more = {"observers": {"slope": Slope()}} | more
    every = every or usual_spacing(schedule.num_steps)
    return Work(
        path=states,
        kernel=kernel,
        schedule=schedule,
        num_chains=num_chains,
        seed=0,
        purpose="ahead",
        every=every,
        **more,
    )


def _unless_fused(work: Work) -> Iterable[Callable[[], Any]]:
    """NVRTC compiles while a program is traced: nothing would be gained."""
    return () if work.is_fused else traced(work)


def _is_foreseen(problem: Problem, options: Options) -> bool:
    """Whether the run is as it was asked for, in this process, and all its functions are ours."""
    is_sized = options.target_std_err is not None or options.max_seconds is not None
    of = problem.model, problem.states, problem.states.base, problem.kernel
    is_ours = isinstance(problem.states, AbstractLatentPath) and are_ours(*of)
    return is_ours and not problem.is_simple and not is_sized and current_cluster() is None
