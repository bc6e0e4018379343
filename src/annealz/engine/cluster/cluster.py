"""A Dask cluster as a run sees it: who works there, and how things are sent and lost.

What is sent to the workers goes with the task that needs it, not by `scatter`: when a worker dies, Dask
computes it on another one.
"""

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from importlib import metadata
from typing import TYPE_CHECKING, Any

from annealz.engine.cluster import tasks
from annealz.engine.cluster.lost import LostCluster
from annealz.engine.cluster.packing import pack
from annealz.io.reading import need

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["WAIT_SECONDS", "Cluster"]

WAIT_SECONDS = 60  # for the first worker, and for one after all others are lost
_LOOK_SECONDS = 5  # between looks at who is there
_MOST_KEPT = 4  # things sent for calls


class Cluster:
    """The workers behind a client, all of one version and one kind of device."""

    def __init__(self, client: "Client"):
        self.client: Any = _checked(client)  # Any: all its methods may be coroutines to a checker
        self.address = self.client.scheduler.address
        self._kept: list[tuple[tuple, Future]] = []
        self._wait_for_workers()
        self._check_versions()
        with self.watched():
            seen: dict[str, tasks.Seen] = self.client.run(tasks.look)
        platforms = sorted({one.where.platform for one in seen.values()})
        if len(platforms) > 1:
            raise ValueError(
                f"the workers at {self.address} compute on {' and '.join(platforms)}, which round "
                "differently: give a run workers of one kind."
            )
        self.where = next(iter(seen.values())).where
        self._places = max(one.num_places for one in seen.values())

    @property
    def num_places(self) -> int:
        """How many tasks can run at a time, on the workers that are there now."""
        with self.watched():
            threads = self.client.nthreads().values()
        most = self._places or math.inf
        return max(int(sum(min(count, most) for count in threads)), 1)

    def pack(self, what: Any) -> "Future":
        """Send this once to every worker that needs it."""
        payload = pack(what)
        key = hashlib.sha256(payload[0]).hexdigest()
        packed = tasks.Packed(key, payload, self.where.platform, tasks.own_versions())
        return self.map(tasks.hold, [packed])[0]

    def map(self, function: Callable, *columns: Sequence[Any], priority: int = 0) -> list["Future"]:
        """A task for every row of these columns."""
        from dask import config

        with (
            self.watched(),
            config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}),
        ):
            return self.client.map(function, *columns, pure=False, priority=priority)

    def gather(self, futures: list["Future"]) -> list[Any]:
        """What the tasks came to. Lost workers are waited for, as long as for the first ones."""
        deadline = math.inf
        with self.watched(), self.client.as_current():
            while not self._are_done(futures):
                now = time.monotonic()
                deadline = math.inf if self.client.nthreads() else min(deadline, now + WAIT_SECONDS)
                if now >= deadline:
                    raise LostCluster(
                        f"all workers at {self.address} are gone, and none came within {WAIT_SECONDS} s."
                    )
            return self.client.gather(futures)

    def _are_done(self, futures: list["Future"]) -> bool:
        """Whether they end within some seconds."""
        import distributed

        try:
            distributed.wait(futures, timeout=_LOOK_SECONDS)
        except TimeoutError:
            return False
        return True

    def call(
        self, function: Callable, things: tuple, rows: Sequence[tuple], options: dict[str, Any]
    ) -> list[Any]:
        """function(*things, *row, **options) of every row; the things are sent once."""
        found = next((one for known, one in self._kept if _are_same(known, things)), None)
        if found is None:
            found = self.pack(things)
            self._kept = [*self._kept[1 - _MOST_KEPT :], (things, found)]
        count = len(rows)
        columns = [found] * count, [function] * count, list(rows), [options] * count
        return self.gather(self.map(tasks.call, *columns))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Say in one sentence that the cluster is gone."""
        import distributed

        gone = LostCluster(f"the connection to the scheduler at {self.address} is lost.")
        if self.client.status != "running":  # what it connects to again has forgotten the run
            raise gone
        try:
            yield
        except distributed.KilledWorker as error:
            raise LostCluster(
                f"the chains of a task were lost with {error.allowed_failures + 1} workers in turn: look "
                "into the workers' logs, they may be short of memory."
            ) from None
        except CancelledError:  # whether or not it is connected again: futures are forgotten
            raise gone from None
        except (OSError, RuntimeError) as error:
            if isinstance(error, LostCluster) or self.client.status == "running":
                raise
            raise gone from None

    def _wait_for_workers(self) -> None:
        with self.watched():
            try:
                self.client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError:
                raise ValueError(
                    f"no worker came to the scheduler at {self.address} within {WAIT_SECONDS} s: start "
                    f"some, such as 'dask worker {self.address}'."
                ) from None

    def _check_versions(self) -> None:
        for name, own in tasks.own_versions().items():
            with self.watched():
                found = self.client.run(metadata.version, name, on_error="return")
            for worker, other in found.items():
                if other != own:
                    has = (
                        f"has no {name}" if isinstance(other, Exception) else f"has {name} {other}"
                    )
                    raise ValueError(
                        f"the worker {worker} {has} and this process has {name} {own}: install the same "
                        "on both sides."
                    )


def _checked(client: Any) -> Any:
    distributed = need("distributed", "client= is served", "cluster")
    if not isinstance(client, distributed.Client):
        raise ValueError(
            f"client must be a dask.distributed.Client, got {type(client).__name__}: make one, such as "
            "Client('tcp://host:8786')."
        )
    if client.asynchronous:
        raise ValueError(
            "client must not be asynchronous: make it without asynchronous=True, outside of coroutines."
        )
    if client.status != "running":
        raise ValueError(
            f"client must be connected, and this one is {client.status}: make a new one."
        )
    return client


def _are_same(some: tuple, others: tuple) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
