"""The blocks of a run on the workers of a Dask cluster.

A block of chains over a span of steps is a pure task, which anybody may run, and run again:

    (program, block, step, stop)  ->  (block, what it gives to the records)

The program travels as bytes, once to every worker that needs it. Blocks come and go with every task, so
that nothing is lost with a worker but the span that it computed, which Dask runs again. What blocks give to
the records is added in their order. Spans are long enough for what has to travel.

What is sent goes with the task that needs it and not by `scatter`, whose data die with their worker. Each
thread of a worker computes on one of its devices; of a CPU the threads share the cores.
"""

import contextlib
import contextvars
import dataclasses
import functools
import itertools
import math
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax

from annealz.core import devices
from annealz.core.failures import user_errors
from annealz.engine.blocks import on_one
from annealz.io.reading import need

if TYPE_CHECKING:
    from distributed import Client, Future

    from annealz.engine.loop import BlockProgram

Item = TypeVar("Item")
Result = TypeVar("Result")

WAIT_SECONDS = 60  # for the first worker, and for one after all others are lost
_LOOK_SECONDS = 5  # between looks at who is there
_TASK_SECONDS = 0.02  # of a span for every task, whose scheduling takes some milliseconds
_BYTE_SECONDS = 5e-8  # of a span for every byte of the blocks, which come and go with it
_MOST_PROGRAMS = 4  # that a worker keeps


class LostCluster(RuntimeError):
    """The cluster of a run is gone; what its folder holds can be resumed, with a cluster or without.

    Examples
    --------
    >>> import annealz
    >>> def estimate_or_resume(model, client):
    ...     try:
    ...         return annealz.estimate_log_z(model, out="run", client=client)
    ...     except annealz.LostCluster:
    ...         return annealz.resume("run")  # in this process
    """


# --- on a worker ------------------------------------------------------------------------------


class SentProgram(NamedTuple):
    """A program as it travels, for hosts of this description."""

    payload: bytes
    host: str


def describe_host() -> str:
    """Return what must be alike of all who compute a run, for the same bits."""
    versions = [f"{name} {metadata.version(name)}" for name in ("annealz", "jax")]
    return " and ".join(versions) + f" on a {devices.platform()}"


def describe_worker() -> tuple[str, devices.Elsewhere]:
    """Return who this worker is, and where it computes."""
    return describe_host(), devices.Elsewhere(devices.platform(), devices.device_name())


def check_host(other: str, wanted: str) -> None:
    """Refuse a worker of another description than the run is for."""
    if other != wanted:
        raise ValueError(
            f"a worker has {other} and the run is for {wanted}: install the same everywhere, and take "
            "devices of one kind, which round alike."
        )


def keep(value: Any) -> Any:
    """Return the value: a task whose result Dask keeps, sends on, and makes again."""
    return value


class _OpenedProgram:
    """A program as this worker has it."""

    def __init__(self, sent: SentProgram):
        check_host(describe_host(), sent.host)
        try:
            self.program: BlockProgram = pickle.loads(sent.payload)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"a worker has no module {error.name!r}, which the run needs: install it on the workers, "
                "or send it with client.upload_file."
            ) from error
        self.lock = threading.Lock()
        self.compiled: set[str] = set()
        self.given = functools.cache(lambda device: on_one(self.program.given, device))


_open = functools.lru_cache(_MOST_PROGRAMS)(_OpenedProgram)
_counter, _opening, _thread = itertools.count(), threading.Lock(), threading.local()


def call(sent: SentProgram, method: str, i: int, row: tuple) -> Any:
    """Call a method of the program for block i, on the device of this thread: one of all, in turn."""
    with _opening:
        opened, every = _open(sent), devices.local_devices()
        if not hasattr(_thread, "device"):
            _thread.device = every[next(_counter) % len(every)]
    alone = contextlib.nullcontext() if method in opened.compiled else opened.lock  # compiles
    with devices.preferring(_thread.device), alone, user_errors():
        result = getattr(opened.program, method)(opened.given(_thread.device), i, *row)
    opened.compiled.add(method)
    return jax.device_get(result)


# --- in the process that asks -----------------------------------------------------------------


class Cluster:
    """The workers behind a client, all of one version and one kind of device."""

    def __init__(self, client: "Client"):
        distributed = need("distributed", "client= is served", "cluster")
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise ValueError(
                "client must be a dask.distributed.Client that is not asynchronous, got "
                f"{type(client).__name__}: make one, such as Client('tcp://host:8786')."
            )
        if client.status != "running":
            raise ValueError(f"client must be connected, and is {client.status}: make a new one.")
        self.client: Any = client  # its methods may be coroutines to a checker
        self.address = self.client.scheduler.address
        with self.watched():
            try:
                client.wait_for_workers(1, timeout=WAIT_SECONDS)
            except TimeoutError:
                raise ValueError(
                    f"no worker came to the scheduler at {self.address} within {WAIT_SECONDS} s: start "
                    f"some, such as 'dask worker {self.address}'."
                ) from None
            self.client.get_versions(check=True)
            workers = list(self.client.run(describe_worker).values())
        self.host, self.where = workers[0]
        for other, _ in workers:
            check_host(other, self.host)

    @property
    def num_places(self) -> int:
        """How many tasks can run at a time, on the workers that are there now."""
        with self.watched():
            return max(sum(self.client.nthreads().values()), 1)

    def map(self, function: Callable, *columns: Sequence[Any]) -> list["Future"]:
        """Submit a task for every row of these columns."""
        from dask import config

        quiet = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
        with self.watched(), config.set(quiet):
            return self.client.map(function, *columns, pure=False)

    def gather(self, futures: list["Future"]) -> list[Any]:
        """Return what tasks come to. Lost workers are waited for, as long as for the first ones."""
        import distributed

        deadline = math.inf
        with self.watched(), self.client.as_current():
            while True:
                with contextlib.suppress(TimeoutError):
                    distributed.wait(futures, timeout=_LOOK_SECONDS)
                    return self.client.gather(futures)
                now = time.monotonic()
                deadline = math.inf if self.client.nthreads() else min(deadline, now + WAIT_SECONDS)
                if now >= deadline:
                    raise LostCluster(
                        f"all workers at {self.address} are gone, and none came within {WAIT_SECONDS} s."
                    )

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


class ClusterWorkers:
    """The workers of a cluster, which call a method of the program for every block: as `LocalDevices`."""

    def __init__(self, program: "BlockProgram", cluster: Cluster):
        import cloudpickle

        self.cluster = cluster
        fresh: Any = dataclasses.replace(program)  # pyright: ignore[reportArgumentType]
        # nothing that was made on this machine goes with it
        sent = SentProgram(cloudpickle.dumps(fresh), cluster.host)
        self._sent = cluster.map(keep, [sent])
        self._count = len(program.blocks[0])
        leaves = jax.tree.leaves(program.like)
        self._num_bytes = self._count * sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)

    @property
    def span_seconds(self) -> float:
        """What a span should take: short enough for progress, long enough for scheduler and network."""
        return max(1.0, _TASK_SECONDS * self._count, _BYTE_SECONDS * self._num_bytes)

    @property
    def places(self) -> tuple[int, str]:
        """How many tasks run at a time, and what a place is called."""
        return self.cluster.num_places, "worker threads"

    def place(self, blocks: Sequence[Any]) -> list[Any]:
        """Return the blocks as they travel."""
        return jax.device_get(list(blocks))

    def call(self, method: str, rows: Sequence[tuple]) -> list[Any]:
        """Call a method of the program with each of these rows of arguments, one for every block."""
        count = len(rows)
        futures = self.cluster.map(call, self._sent * count, [method] * count, range(count), rows)
        try:
            return self.cluster.gather(futures)
        finally:
            for future in futures:
                future.release()  # nobody waits for those that are left

    def close(self) -> None:
        """Forget the program that the workers hold."""
        self._sent = []


_current: contextvars.ContextVar[Cluster | None] = contextvars.ContextVar("cluster", default=None)


def current_cluster() -> Cluster | None:
    """Return the cluster that runs go to; None for this process."""
    return _current.get()


@contextlib.contextmanager
def on_cluster(client: "Client | None") -> Iterator[None]:
    """Send runs to the workers of this client while the context lasts; None changes nothing."""
    now = _current.get()
    if client is None or (now is not None and now.client is client):
        yield
        return
    cluster = Cluster(client)
    token = _current.set(cluster)
    try:
        with devices.computing_on(cluster.where):
            yield
    finally:
        _current.reset(token)


def map_concurrently(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return function of each item, in order: one after another here, all at once on a cluster."""
    cluster, items, context = _current.get(), list(items), contextvars.copy_context()
    if cluster is None or len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(len(items), cluster.num_places + 1)) as pool:
        return list(pool.map(lambda item: context.copy().run(function, item), items))
