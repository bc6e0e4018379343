"""Context: where and how a call computes, until it ends.

    store      the folder of its run, locked while the call writes there
    client     the cluster whose workers compute
    device     a small density is computed on the CPU beside a GPU
    progress   a live display, and the caller's own callback

A sweep of a density is some fifty small programs of a GPU, about 0.3 ms whatever their size; a core
computes about a million numbers in that time. So a density whose chains take less than a million numbers
per sweep is computed on the CPU. A device that JAX was set to prefer is kept, and so is a cluster.
"""

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from annealz.core import interrupts
from annealz.core.devices import cpu, platform, preferred, preferring
from annealz.core.failures import user_errors
from annealz.engine.cluster import current_cluster, on_cluster
from annealz.engine.progress import OnProgress, begin
from annealz.engine.run import Run
from annealz.io.store import Store
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from distributed import Client

_CPU_NUMBERS = 1e6  # of a sweep of all chains, from which on a GPU is the quicker one


@dataclasses.dataclass(kw_only=True)
class Context:
    """Where and how a call computes: a context manager."""

    out: dataclasses.InitVar[str | Path | None] = None
    """The folder of the run, None for a run that is not kept."""
    force: bool = False
    """Overwrite a run that the folder holds."""
    client: "Client | None" = None
    progress: bool = False
    """Show a live display."""
    on_progress: Callable[..., None] | None = None
    """Called with every Progress, or with a name and a Progress."""
    on_forecast: Callable[[Any], None] | None = None
    """Called with what a wanted standard error should take."""
    chunk_steps: int | None = None
    """Steps between returns to the host."""
    checkpoint_seconds: float = 15.0
    """Between checkpoints."""
    is_resumed: bool = False

    def __post_init__(self, out: str | Path | None):
        self.store = None if out is None else Store(out)
        self.messages: list[str] = []
        self._is_read = self.is_resumed and self.store is not None and self.store.is_done
        self._stack = contextlib.ExitStack()

    @classmethod
    def of(cls, arguments: dict[str, Any], **more: Any) -> Self:
        """Take the arguments of a call that say where and how, out of all of them."""
        names = inspect.signature(cls).parameters.keys() & arguments.keys()
        return cls(**{name: arguments.pop(name) for name in names}, **more)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(interrupts.awaiting())
            stack.enter_context(user_errors())
            stack.enter_context(on_cluster(self.client))
            if self.store is not None and not self._is_read:
                stack.enter_context(self.store.writing())
            if self.progress:
                self._show(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def place(self, model: Any, num_chains: int | None) -> None:
        """Compute a small density on the CPU from here on."""
        if current_cluster() is not None or preferred() is not None or platform() != "gpu":
            return
        size, beside = getattr(model, "evaluation_size", None), cpu()
        if size is None or beside is None:
            return
        if size * (num_chains or model.usual_chains) <= _CPU_NUMBERS:
            self._stack.enter_context(preferring(beside))

    def check_folder(self) -> None:
        """Refuse a folder that cannot hold the run, before anything is computed."""
        if self.store is not None:
            self.store.check_free(self.force)

    def create(self, plan: Any) -> None:
        """Write the plan into the folder, in place of what was there."""
        if self.store is not None:
            self.store.create(plan.to_dict(), *plan.arrays())

    def begin(self, stage: str, part: int = 1, num_parts: int = 1) -> OnProgress | None:
        """Report that a stage begins; return the callback of a run that is this stage."""
        return begin(self.on_progress, stage, part, num_parts)

    def restored(self, plan: Any, **objects: Any) -> Any:
        """Return the plan that the folder holds, of this class."""
        assert self.store is not None
        record, (arrays, records) = self.store.record(), self.store.inputs()
        where = f"in {self.store.path}"
        found = plan.restored(record, arrays, records, where, is_done=self._is_read, **objects)
        if found.problem is not None:
            self.place(found.problem.model, getattr(found.request, "num_chains", None))
        return found

    def load(self, name: str, schedule: Schedule) -> Run | None:
        """Return a part of the run that is stored; None where it has yet to be computed."""
        if self.store is None or not self.store.has(name):
            return None
        return Run.from_arrays(*self.store.load(name), schedule)

    def how(self, name: str) -> dict[str, Any]:
        """Return the options of `anneal` that say how a part of the run is computed."""
        return {
            "chunk_steps": self.chunk_steps,
            "checkpoint": None if self.store is None else self.store.checkpoint(name),
            "checkpoint_seconds": self.checkpoint_seconds,
        }

    def keep(self, name: str, run: Run) -> Run:
        """Store a part of the run, and return it."""
        self.save(name, *run.to_arrays())
        return run

    def save(self, name: str, arrays: dict[str, np.ndarray], record: Mapping[str, Any]) -> None:
        """Store a part of the run; a disk that refuses it stops nothing."""
        if self.store is not None:
            with self._saving(self.store):
                self.store.save(name, arrays, dict(record))

    def finish(self, estimate: Any) -> Any:
        """Mark the run as done, and return the estimate with what could not be saved."""
        if self.store is not None and not self.messages and not self._is_read:
            with self._saving(self.store):
                self.store.finish(estimate.to_dict())
        for message in dict.fromkeys(self.messages):
            estimate = estimate.with_message(message)
        return estimate

    @contextlib.contextmanager
    def _saving(self, store: Store) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            self.messages.append(f"could not save the result to {store.path}: {reason}.")

    def _show(self, stack: contextlib.ExitStack) -> None:
        """Show progress, and call the caller's own function all the same."""
        from annealz.views.progress import live_report

        report = stack.enter_context(live_report())
        if report is None:
            return
        reports = [report, *filter(None, [self.on_progress])]

        def report_all(*now: Any) -> None:
            for one in reports:
                one(*now)

        self.on_progress = report_all
