"""Where runs are computed: in this process, or on a cluster while a function is given `client=`.

All that runs inside that function goes there: pilots, surveys, annealing in either direction, exchange.
"""

import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from annealz.core.devices import computing_on
from annealz.engine.cluster.cluster import Cluster

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["as_task", "clustered", "compute_each", "current_cluster", "on_cluster", "side_by_side"]

Given = ParamSpec("Given")
Result = TypeVar("Result")
Item = TypeVar("Item")

_current: contextvars.ContextVar[Cluster | None] = contextvars.ContextVar("cluster", default=None)


def current_cluster() -> Cluster | None:
    """The cluster that runs go to; None for this process."""
    return _current.get()


@contextlib.contextmanager
def on_cluster(client: "Client") -> Iterator[None]:
    """Runs go to the workers of this client while the context lasts."""
    now = _current.get()
    if now is not None and now.client is client:
        yield
        return
    cluster = Cluster(client)
    token = _current.set(cluster)
    try:
        with computing_on(cluster.where):
            yield
    finally:
        _current.reset(token)


def clustered(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, its runs on the workers of `client` where one is given."""

    @functools.wraps(function)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
        given: dict[str, Any] = dict(options)
        client = given.pop("client", None)
        with contextlib.nullcontext() if client is None else on_cluster(client):
            return function(*arguments, **given)  # pyright: ignore[reportCallIssue]

    return call


def as_task(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function of a path, a kernel and options; on a cluster one task, whose progress is not reported."""

    @functools.wraps(function)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
        cluster = _current.get()
        if cluster is None:
            return function(*arguments, **options)
        plain = {name: value for name, value in options.items() if name != "on_progress"}
        things, rest = arguments[:2], arguments[2:]
        return cluster.call(call, things, [rest], plain)[
            0
        ]  # by its name, which a worker runs itself

    return call


def compute_each(function: Callable[..., Result], things: tuple, rows: list[tuple]) -> list[Result]:
    """function(*things, *row) of every row: here, or a task each on a cluster."""
    cluster = _current.get()
    if cluster is None:
        return [function(*things, *row) for row in rows]
    return cluster.call(function, things, rows, {})


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """function of each item, in their order: one after another here, all at once on a cluster."""
    cluster, items = _current.get(), list(items)
    if cluster is None or len(items) < 2:
        return [function(item) for item in items]
    context = contextvars.copy_context()
    stopped = threading.Event()

    def one(item: Item) -> Result:
        if stopped.is_set():
            raise KeyboardInterrupt
        return context.copy().run(function, item)

    with ThreadPoolExecutor(min(len(items), cluster.num_places + 1)) as pool:
        futures = [pool.submit(one, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
