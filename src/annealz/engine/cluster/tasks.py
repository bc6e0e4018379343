"""What a worker does: blocks of chains over a span of steps, each a function of what it is given.

    (run, blocks, step, stop)  ->  (blocks, what they give to the records)

A task that is lost with its worker is run again by another one, to the same bits. A run comes as bytes,
once to a worker, and is kept as long as the last few are. On GPUs a task has a device to itself; of a CPU
the worker's threads share the cores. Blocks rest in the worker's memory as NumPy arrays, which Dask can
count, send and write to disk.
"""

import contextlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import jax

from annealz.core.devices import (
    Device,
    Elsewhere,
    device_name,
    local_devices,
    platform,
    preferring,
)
from annealz.engine.cluster.packing import Bytes, unpack
from annealz.engine.local_blocks import on_one

__all__ = ["Held", "Packed", "advance", "begin", "call", "hold", "look", "parts_of", "place"]

_MOST_RUNS = 4  # that a worker keeps
_NAMES = ("annealz", "jax")


class Packed(NamedTuple):
    """A run as it travels, and what must be alike at both ends."""

    key: str
    payload: Bytes
    platform: str
    versions: dict[str, str]


class Held:
    """Some blocks of a run, and what they gave to the last span."""

    __slots__ = ("blocks", "parts")

    def __init__(self, blocks: list[Any], parts: list[Any]):
        self.blocks, self.parts = blocks, parts

    def __reduce__(self):
        return Held, (self.blocks, self.parts)

    def __sizeof__(self) -> int:
        """Bytes, by which Dask knows how much a worker holds."""
        leaves = jax.tree.leaves((self.blocks, self.parts))
        return 100 + sum(getattr(leaf, "nbytes", 32) for leaf in leaves)


class Seen(NamedTuple):
    """Where a worker computes."""

    where: Elsewhere
    num_places: int
    """Programs that its devices run at a time; 0 where threads decide."""


def look() -> Seen:
    """Where this worker computes."""
    where = Elsewhere(platform(), device_name())
    return Seen(where, 0 if where.platform == "cpu" else len(local_devices()))


def own_versions() -> dict[str, str]:
    """Versions that must be alike."""
    return {name: metadata.version(name) for name in _NAMES}


def hold(packed: Packed) -> Packed:
    """The run, kept by the cluster and sent to every worker that needs it."""
    return packed


def begin(packed: Packed, indices: Sequence[int], draws: Sequence[Any] | None) -> Held:
    """These blocks before their first step; in reverse from these draws, one set per block."""
    starts = [None] * len(indices) if draws is None else draws
    with _opened(packed, "begin") as (run, given):
        blocks = [run.first(given, i, x) for i, x in zip(indices, starts, strict=True)]
        return Held(jax.device_get(blocks), [])


def place(blocks: list[Any]) -> Held:
    """These blocks as they are."""
    return Held(blocks, [])


def advance(
    packed: Packed, held: Held, indices: Sequence[int], step: int, stop: int, terms: tuple
) -> Held:
    """These blocks after steps step + 1 .. stop."""
    with _opened(packed, "advance") as (run, given):
        done = [
            run.advance(given, i, block, step, stop, *terms)
            for i, block in zip(indices, held.blocks, strict=True)
        ]
        return Held(jax.device_get([block for block, _ in done]), [part for _, part in done])


def parts_of(held: Held) -> list[Any]:
    """What is sent back after a span."""
    return held.parts


def call(packed: Packed, function: Callable, row: tuple, options: dict[str, Any]) -> Any:
    """A function of things that were sent once and of others."""
    with _opened(packed, function.__name__) as (things, _):
        return jax.device_get(function(*things, *row, **options))


class _Opened:
    """A run as this worker has it: once a device."""

    def __init__(self, packed: Packed):
        self.run = unpack(packed.payload)
        self.lock = threading.Lock()
        self.compiled: set[str] = set()
        self._given: dict[Device | None, Any] = {}

    def given(self, device: Device | None) -> Any:
        """What every block needs, if it is a run."""
        if isinstance(self.run, tuple):
            return None
        with self.lock:
            if device not in self._given:
                given = self.run.given
                self._given[device] = given if device is None else on_one(given, device)
            return self._given[device]


_runs: OrderedDict[str, _Opened] = OrderedDict()
_runs_lock = threading.Lock()
_free: queue.SimpleQueue[Device] | None = None


@contextlib.contextmanager
def _opened(packed: Packed, what: str) -> Iterator[tuple[Any, Any]]:
    """The run and what its blocks need, on a device that is free."""
    _check(packed)
    with _runs_lock:
        if packed.key not in _runs:
            _runs[packed.key] = _Opened(packed)
            while len(_runs) > _MOST_RUNS:
                _runs.popitem(last=False)
        _runs.move_to_end(packed.key)
        opened = _runs[packed.key]
    with _device() as device:
        given = opened.given(device)
        if what in opened.compiled:
            yield opened.run, given
            return
        with opened.lock:  # one compiles, not all at once
            yield opened.run, given
            opened.compiled.add(what)


@contextlib.contextmanager
def _device() -> Iterator[Device | None]:
    """A GPU that no other task of this worker uses; None for a CPU."""
    global _free
    if platform() == "cpu":
        yield None
        return
    with _runs_lock:
        if _free is None:
            _free = queue.SimpleQueue()
            for device in local_devices():
                _free.put(device)
    device = _free.get()
    try:
        with preferring(device):
            yield device
    finally:
        _free.put(device)


def _check(packed: Packed) -> None:
    """Refuse to compute with other versions or on another platform than the run is of."""
    own = own_versions()
    if own != packed.versions:
        here, there = (
            " and ".join(f"{k} {v}" for k, v in one.items()) for one in (own, packed.versions)
        )
        raise ValueError(
            f"a worker has {here}, and the run is of {there}: install the same on both sides."
        )
    if platform() != packed.platform:
        raise ValueError(
            f"a worker computes on a {platform()} and others on a {packed.platform}, which round "
            "differently: give a run workers of one kind."
        )
