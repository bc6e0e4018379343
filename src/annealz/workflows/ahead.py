"""What the stages to come need is made in threads, while earlier ones are on their way.

    this thread    second base             | pilot, schedule, run           | second opinion, way back
    others         of the pilot and the run | of second opinion and way back

Programs are compiled, and on a GPU a short pilot is run, beside those of the second bases
(`pilots/beside.py`): no one of them needs another.

XLA and NVRTC compile without the lock of the interpreter, and what is compiled is found in JAX's own memory
of programs: a stage waits for its own and compiles nothing twice. On a CPU one thread compiles, because the
cores have other work. Nothing of a run is decided here: where a program is not the one that the stage takes
after all, or cannot be made, the stage makes its own. What a process compiled once is not asked for again.

It is for paths between layers, all of whose functions are ours: those of users are called by one thread.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from annealz.core.by_shape import shape_key
from annealz.core.devices import platform, preferred
from annealz.core.threads import submit
from annealz.engine.anneal import usual_spacing
from annealz.engine.cluster.current import current_cluster
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.work import Work
from annealz.paths.abstract import AbstractLatentPath
from annealz.schedules.linear import linear
from annealz.schedules.terrain import Terrain
from annealz.workflows.length import opinion_chains
from annealz.workflows.options import Options
from annealz.workflows.pilots.base_search import scout_budget
from annealz.workflows.pilots.beside import may_go_beside
from annealz.workflows.pilots.plan import mixing_budget
from annealz.workflows.pilots.survey_mixing import (
    compile_survey,
    survey_chains,
    survey_mixing,
)
from annealz.workflows.problem import Problem
from annealz.workflows.second_opinion import num_probed

__all__ = ["Ahead"]

_NUM_THREADS, _MOST_THREADS = {"cpu": 1}, 4  # by platform, and elsewhere
_MOST_KEYS = 256
_asked: set[Any] = set()  # what this process was asked to compile

Observers = Mapping[str, AbstractObserver]


class Ahead:
    """What is compiled for one estimate, by the names of its stages."""

    def __init__(self):
        self._pool: ThreadPoolExecutor | None = None
        self._made: dict[str, Future] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        """What has not begun is left; what has is not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

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
        if budget is not None and is_searched and may_go_beside(kernel, budget):
            self._made["terrain"] = self._submit(
                lambda: survey_mixing(path, kernel, budget=budget, seed=options.seed)
            )
        elif budget is not None and is_searched and survey_chains(budget) != survey_chains(scouts):
            key = shape_key(path.unnamed(), kernel), budget
            self._begin("pilot", key, lambda: compile_survey(path, kernel, budget))
        if all(type(observer) is Slope for observer in observers.values()):
            self._begin_run("run", Work(
                path, kernel, dict(observers), linear(num_steps), options.chains, 0, "ahead",
                options.record_every or usual_spacing(num_steps), resample=options.resample,
            ))  # fmt: skip

    def others(self, problem: Problem, options: Options, num_steps: int) -> None:
        """The second opinion and the way back from it, where there is a second base."""
        if problem.second_path is None or not _is_foreseen(problem, options):
            return
        observers, schedule = {"slope": Slope()}, linear(num_steps)
        every = options.record_every or usual_spacing(num_steps)
        count = opinion_chains(options.chains, None, options.resample is not None)
        kernel = problem.second_kernel or problem.kernel
        self._begin_run("second", Work(
            problem.second_states, kernel, observers, schedule, count, 0, "ahead", every,
            resample=options.resample,
        ))  # fmt: skip
        self._begin_run("probe", Work(
            problem.states, problem.kernel, observers, schedule, num_probed(count), 0, "ahead", every,
            is_reverse=True,
        ))  # fmt: skip

    def terrain(self) -> Terrain | None:
        """What the survey of the path saw, where it was begun; its seconds are those waited for here."""
        made = self._made.pop("terrain", None)
        if made is None:
            return None
        began = time.monotonic()
        terrain = made.result()
        return dataclasses.replace(terrain, seconds=time.monotonic() - began)

    def wait(self, name: str) -> None:
        """Until the programs of this stage are compiled, if they are being so."""
        made = self._made.pop(name, None)
        if made is not None and not made.cancel():
            made.exception()  # the stage will meet it itself

    def _begin_run(self, name: str, work: Work) -> None:
        of = work.path.unnamed(), work.kernel, work.observers, work.resampling
        key = shape_key(*of), work.blocks[1], work.size, work.is_reverse
        self._begin(name, key, work.compile)

    def _begin(self, name: str, key: Any, compile: Callable[[], None]) -> None:
        if not _is_new((key, platform(), preferred())):
            return
        self._made[name] = self._submit(compile)

    def _submit(self, call: Callable[[], Any]) -> Future:
        if self._pool is None:
            count = _NUM_THREADS.get(platform(), _MOST_THREADS)
            self._pool = ThreadPoolExecutor(count, thread_name_prefix="annealz-ahead")
        return submit(self._pool, call)


def _is_foreseen(problem: Problem, options: Options) -> bool:
    """Whether the run is as it was asked for, in this process, and all its functions are ours."""
    is_sized = options.target_std_err is not None or options.max_seconds is not None
    is_ours = isinstance(problem.states, AbstractLatentPath) and not problem.is_simple
    return is_ours and not is_sized and current_cluster() is None


def _is_new(key: Any) -> bool:
    """Whether it was not asked for yet; not where that cannot be found out."""
    try:
        if key in _asked:
            return False
    except TypeError:  # without a hash
        return False
    if len(_asked) >= _MOST_KEYS:
        _asked.clear()
    _asked.add(key)
    return True
