"""Programs of the runs to come are compiled in threads, while pilots and earlier runs are on their way.

    this thread    second base   pilot   schedule | run               | second opinion | way back
    others         programs of the run            | of the second opinion, of the way back

XLA and NVRTC compile without the lock of the interpreter, and what is compiled is found in JAX's own memory
of programs: a run waits for its own and compiles nothing twice. On a CPU one thread compiles, because the
cores have other work. Nothing of a run is decided here: where a program is not the one that the run takes
after all, or cannot be made, the run makes its own.

It is for paths between layers, all of whose functions are ours: those of users are called by one thread.
"""

import contextvars
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from annealz.core.devices import platform, preferred, preferring
from annealz.engine.cluster.current import current_cluster
from annealz.engine.observers import AbstractObserver, Slope
from annealz.engine.work import Work
from annealz.paths.abstract import AbstractLatentPath
from annealz.schedules.linear import linear
from annealz.workflows.length import opinion_chains
from annealz.workflows.options import Options
from annealz.workflows.problem import Problem
from annealz.workflows.second_opinion import num_probed

__all__ = ["Ahead"]

_NUM_THREADS = {"cpu": 1}  # elsewhere one a run
_MOST_THREADS = 3


class Ahead:
    """What is compiled for the runs of one estimate, each by the name of its stage."""

    def __init__(self):
        self._pool: ThreadPoolExecutor | None = None
        self._made: dict[str, Future] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        """What has not begun is left; what has is not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def run(
        self,
        problem: Problem,
        options: Options,
        num_steps: int,
        observers: Mapping[str, AbstractObserver],
    ) -> None:
        """The forward run, where base, kernel and length are known before any pilot."""
        if problem.is_open or not _is_foreseen(problem, options) or not _is_slope(observers):
            return
        self._begin("run", Work(
            problem.states, problem.kernel, dict(observers), linear(num_steps), options.chains, 0,
            "ahead", 1, resample=options.resample,
        ))  # fmt: skip

    def others(self, problem: Problem, options: Options, num_steps: int) -> None:
        """The second opinion and the way back from it, where there is a second base."""
        if problem.second_path is None or not _is_foreseen(problem, options):
            return
        observers, schedule = {"slope": Slope()}, linear(num_steps)
        count = opinion_chains(options.chains, None, options.resample is not None)
        kernel = problem.second_kernel or problem.kernel
        self._begin("second", Work(
            problem.second_states, kernel, observers, schedule, count, 0, "ahead", 1,
            resample=options.resample,
        ))  # fmt: skip
        self._begin("probe", Work(
            problem.states, problem.kernel, observers, schedule, num_probed(count), 0, "ahead", 1,
            is_reverse=True,
        ))  # fmt: skip

    def wait(self, name: str) -> None:
        """Until the programs of this stage are compiled, if they are being so."""
        made = self._made.pop(name, None)
        if made is not None and not made.cancel():
            made.exception()  # is the run's own to meet

    def _begin(self, name: str, work: Work) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                _NUM_THREADS.get(platform(), _MOST_THREADS), thread_name_prefix="annealz-ahead"
            )
        device, context = preferred(), contextvars.copy_context()

        def make() -> None:
            with preferring(device):
                work.compile()

        self._made[name] = self._pool.submit(context.run, make)


def _is_foreseen(problem: Problem, options: Options) -> bool:
    """Whether the run is as it was asked for, in this process, and all its functions are ours."""
    is_sized = options.target_std_err is not None or options.max_seconds is not None
    is_ours = isinstance(problem.states, AbstractLatentPath) and not problem.is_simple
    return is_ours and not is_sized and current_cluster() is None


def _is_slope(observers: Mapping[str, AbstractObserver]) -> bool:
    return all(type(observer) is Slope for observer in observers.values())
