"""A run in the middle, on disk: enough to go on and end in the same bits.

Binary states are stored as bits, everything else as it is. The file carries a digest of all that
the run was given (path, kernel, observers, schedule, seed …) and refuses to continue another run.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from annealz.core import interrupts
from annealz.core.arrays import on_device
from annealz.io.archive import load_archive, real_numbers, save_archive
from annealz.io.fingerprint import fingerprint
from annealz.io.records import Record, finite, text, whole

CHECKPOINT = Record(
    "the record of a checkpoint",
    {"digest": text, "step": whole, "seconds": finite},
)


class RunState(NamedTuple):
    """Where a run stands: steps done, the blocks of chains, the records so far."""

    step: int
    blocks: list[Any]
    records: list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The checkpoint file of the run with this digest."""

    path: Path
    digest: str

    def save(self, now: RunState, seconds: float) -> None:
        """Replace the file, atomically."""
        leaves = jax.tree.leaves(now.blocks)
        arrays = {f"leaf:{i}": _pack(np.asarray(leaf)) for i, leaf in enumerate(leaves)}
        for key in now.records[0] if now.records else ():
            arrays[f"record:{key}"] = np.array([record[key] for record in now.records])
        meta = {"digest": self.digest, "step": now.step, "seconds": seconds}
        save_archive(self.path, arrays, meta)

    def load(self, start: RunState) -> tuple[RunState, float]:
        """Where the run stands and the seconds spent; the blocks take the structure of the start's."""
        arrays, meta = load_archive(self.path)
        if meta.get("digest") != self.digest:
            raise ValueError(
                f"{self.path} belongs to another run (other model, schedule, seed, chains or version)."
            )
        meta = CHECKPOINT.check(meta, self.path)
        leaves, structure = jax.tree.flatten(start.blocks)
        what, has_records = str(self.path), "record:step" in arrays
        stored = [
            _unpack(real_numbers(arrays, f"leaf:{i}", what), leaf, what)
            for i, leaf in enumerate(leaves)
        ]
        count = len(real_numbers(arrays, "record:step", what, num_axes=1)) if has_records else 0
        columns = {
            k.removeprefix("record:"): real_numbers(arrays, k, what, length=count)
            for k in arrays
            if k.startswith("record:")
        }
        records = [{key: column[i] for key, column in columns.items()} for i in range(count)]
        blocks = jax.tree.unflatten(structure, stored)
        return RunState(meta["step"], blocks, records), meta["seconds"]


class Saver:
    """Keeps a run on disk as it goes, if there is a checkpoint to keep it in.

    A disk that refuses it is mentioned once and stops nothing. Its clock counts the seconds of the run,
    those before an interruption too.
    """

    def __init__(self, checkpoint: Checkpoint | None, seconds_between: float):
        self._checkpoint, self._seconds_between = checkpoint, seconds_between
        self._spent, self._began = 0.0, time.monotonic()
        self._saved = self._began
        self._state: Callable[[], RunState] | None = None
        self.messages: list[str] = []

    def load(self, start: Callable[[], RunState]) -> RunState | None:
        """Where the run stood, if it was kept; the blocks take the structure of the start's."""
        if self._checkpoint is None or not self._checkpoint.path.exists():
            return None
        found, self._spent = self._checkpoint.load(start())
        return found

    @contextlib.contextmanager
    def keeping(self, state: Callable[[], RunState]) -> Iterator[None]:
        """Start the clock; keep what stands at the end, whatever ends it."""
        self._state = state
        self._began = self._saved = time.monotonic()
        with interrupts.awaiting():
            try:
                yield
            finally:
                self._save()

    @property
    def seconds(self) -> float:
        """Of the run until now."""
        return self._spent + time.monotonic() - self._began

    def save_if_due(self) -> None:
        if self._checkpoint is not None and time.monotonic() - self._saved > self._seconds_between:
            self._save()
            self._saved = time.monotonic()

    def _save(self) -> None:
        if self._checkpoint is None or self._state is None:
            return
        try:
            self._checkpoint.save(self._state(), self.seconds)
        except OSError as error:
            path = self._checkpoint.path
            message = f"could not write the checkpoint {path}: {error.strerror or error}."
            if message not in self.messages:
                self.messages.append(message)


def digest_of(tree: Any, settings: str) -> str:
    """SHA-256 of a pytree (structure, arrays, code of functions), settings and version of annealz."""
    return fingerprint(tree, f"{metadata.version('annealz')} {settings}")


def _pack(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.float32 and np.isin(array, (0, 1)).all():
        return np.packbits(array.astype(bool))
    return array


def _unpack(stored: np.ndarray, like: Any, what: str) -> jax.Array:
    is_packed = stored.dtype == np.uint8 and like.dtype == np.float32
    if is_packed and stored.shape == (-(-like.size // 8),):
        stored = np.unpackbits(stored, count=like.size).reshape(like.shape)
    elif is_packed or stored.shape != like.shape:
        raise ValueError(f"{what} is damaged: its states do not fit the run.")
    return on_device(stored, like.dtype)
