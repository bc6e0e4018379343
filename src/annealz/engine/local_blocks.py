"""The blocks of a run in this process, each on one of its devices.

Blocks share nothing, so each has a device to itself for as long as a chunk of steps takes, and nothing
passes between devices. A thread waits for each of them, because the call that advances a block returns
only when it is done (a loop of unknown length asks the host whether to go on). A CPU is one device to
JAX and runs as many blocks side by side as it has cores.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import numpy as np

from annealz.core.devices import (
    Device,
    is_first,
    local_devices,
    num_side_by_side,
    preferred,
    preferring,
)
from annealz.engine.blocks import cut
from annealz.engine.work import InBlocks

__all__ = ["LocalBlocks", "on_one"]


class LocalBlocks:
    """All blocks of a run, in their order.

    The state before the last chunk is kept beside the state after it, so that an interrupt between
    them finds all blocks at one step.
    """

    span_seconds = 0.25
    """What a chunk should take: an interrupt is answered within about this."""

    def __init__(self, run: InBlocks):
        devices, count = local_devices(), len(run.blocks[0])
        self.run, self._num_devices = run, len(devices)
        self._where = [devices[i % len(devices)] for i in range(count)]
        self._is_placed = not is_first(devices)  # else where JAX puts it by itself
        self._given = {
            device: on_one(run.given, device) if self._is_placed else run.given
            for device in devices
        }
        num_threads = min(count, num_side_by_side(devices))
        self._pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None
        self._is_compiled = False
        self._standing: dict[int, list[Any]] = {}

    def begin(self, draws: np.ndarray | None = None) -> None:
        """Stand before the first step; in reverse from these draws."""
        count = len(self._where)
        starts = [None] * count if draws is None else cut(draws, *self.run.blocks)
        self.put(0, [
            self.run.first(self.given(i), i, starts[i]) for i in range(count)
        ])  # fmt: skip

    def put(self, step: int, blocks: Sequence[Any]) -> None:
        """Stand at this step, with these blocks."""
        self._standing = {step: [self.placed(block, i) for i, block in enumerate(blocks)]}

    def at(self, step: int) -> list[Any]:
        """The blocks as they stand at this step, the last or the one before."""
        return self._standing[step]

    def advance(self, step: int, stop: int, *terms: Any) -> list[Any]:
        """Take steps step + 1 .. stop with every block; what each gives."""
        before, device = self.at(step), preferred()

        def one(i: int) -> tuple[Any, Any]:
            with preferring(device):  # in a thread that has a preference of its own
                return self.run.advance(self.given(i), i, before[i], step, stop, *terms)

        alone = 0 if self._is_compiled or self._pool is None else 1  # one compiles, not all at once
        done = [one(i) for i in range(len(before) if self._pool is None else alone)]
        if self._pool is not None:
            done += self._pool.map(one, range(alone, len(before)))
        self._is_compiled = True
        self._standing = {step: before, stop: [block for block, _ in done]}
        return [part for _, part in done]

    def given(self, i: int) -> tuple:
        """What block i needs, where it is."""
        return self._given[self._where[i]]

    def placed(self, block: Any, i: int) -> Any:
        """Block i, where it has its place."""
        return jax.device_put(block, self._where[i]) if self._is_placed else block

    @property
    def places(self) -> tuple[int, str]:
        """How many blocks run at a time at least, and what a place is called."""
        return self._num_devices, "devices"

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def on_one(given: tuple, device: Device) -> tuple:
    """What every block needs, on one device."""
    arrays, rest = eqx.partition(given, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, device), rest)
