"""The blocks of a run on the workers of a cluster.

A task takes some blocks over a span of steps. Its blocks stay on the worker for the next span; what they
give to the records comes back, some hundred bytes per block, and is added here in the order of the
blocks. The blocks themselves come back when a checkpoint is due and at the end.

Dask runs again what was lost with a worker, from the last span that was kept. So that this never leads
back to the first step, the blocks come back and are sent again every `_MOST_SPANS` spans.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from annealz.engine.blocks import cut
from annealz.engine.cluster import tasks
from annealz.engine.cluster.cluster import Cluster
from annealz.engine.work import InBlocks

if TYPE_CHECKING:
    from distributed import Future

__all__ = ["ClusterBlocks"]

_MOST_SPANS = 50  # that are run again when a worker is lost
_TASKS_A_PLACE, _FEW_TASKS = 4, 64  # so that one can be taken from a slow worker by a quick one
_TASK_SECONDS = 0.02  # of a span for every task, whose scheduling takes some milliseconds
_FIRST = 10  # priority of what is waited for


class ClusterBlocks:
    """All blocks of a run, in their order.

    The state before the last span is kept beside the state after it, so that an interrupt between them
    finds all blocks at one step.
    """

    def __init__(self, run: InBlocks, cluster: Cluster):
        self.run, self.cluster = run, cluster
        self._packed = cluster.pack(run.fresh())
        self._standing: dict[int, list[Future]] = {}
        self._gathered: tuple[int, list[Any]] = (-1, [])
        self._spans = 0
        self._group()

    @property
    def span_seconds(self) -> float:
        """What a span should take: short enough for progress, long enough for the scheduler."""
        return max(1.0, _TASK_SECONDS * len(self._groups))

    @property
    def places(self) -> tuple[int, str]:
        """How many tasks run at a time, and what a place is called."""
        return self.cluster.num_places, "worker threads"

    def begin(self, draws: np.ndarray | None = None) -> None:
        """Stand before the first step; in reverse from these draws."""
        if draws is None:
            starts: list[Any] = [None] * len(self._groups)
        else:
            starts = self._grouped(cut(draws, *self.run.blocks))
        self._stand(0, self._map(tasks.begin, self._groups, starts))

    def put(self, step: int, blocks: Sequence[Any]) -> None:
        """Stand at this step, with these blocks."""
        self._group()
        arrays = jax.device_get(list(blocks))
        self._stand(step, self.cluster.map(tasks.place, self._grouped(arrays)))

    def at(self, step: int) -> list[Any]:
        """The blocks as they stand at this step, the last or the one before."""
        if self._gathered[0] != step:
            held = self.cluster.gather(self._standing[step])
            self._gathered = step, [block for one in held for block in one.blocks]
        return self._gathered[1]

    def advance(self, step: int, stop: int, *terms: Any) -> list[Any]:
        """Take steps step + 1 .. stop with every block; what each gives."""
        if self._spans >= _MOST_SPANS:
            self.put(step, self.at(step))
        before, count = self._standing[step], len(self._groups)
        after = self._map(
            tasks.advance, before, self._groups, [step] * count, [stop] * count, [terms] * count
        )
        try:
            parts = self.cluster.gather(self.cluster.map(tasks.parts_of, after, priority=_FIRST))
        except BaseException:
            for future in after:
                future.release()  # nobody waits for them
            raise
        self._standing, self._spans = {step: before, stop: after}, self._spans + 1
        return [part for group in parts for part in group]

    def close(self) -> None:
        self._standing, self._packed = {}, None

    def _stand(self, step: int, held: list["Future"]) -> None:
        self._standing, self._spans = {step: held}, 0

    def _map(self, function, *columns) -> list["Future"]:
        return self.cluster.map(function, [self._packed] * len(self._groups), *columns)

    def _group(self) -> None:
        """Blocks of a task each: neighbours, as many tasks as the workers there are now can share."""
        indices = np.arange(len(self.run.blocks[0]))
        count = min(len(indices), max(_TASKS_A_PLACE * self.cluster.num_places, _FEW_TASKS))
        self._groups = [group.tolist() for group in np.array_split(indices, count)]

    def _grouped(self, blocks: Sequence[Any]) -> list[list[Any]]:
        return [[blocks[i] for i in group] for group in self._groups]
