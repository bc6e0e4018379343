"""A run in the middle, on disk: enough to go on and end in the same bits.

Binary states are stored as bits, everything else as it is. The file carries a digest of all that
the run was given (path, kernel, observers, schedule, seed …) and refuses to continue another run.
"""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.formats.archive import load_archive, save_archive

__all__ = ["Checkpoint", "digest_of"]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The checkpoint file of the run with this digest."""

    path: Path
    digest: str

    def exists(self) -> bool:
        return self.path.exists()

    def save(self, step: int, seconds: float, blocks: list[Any], records: list[dict]) -> None:
        """Replace the file, atomically."""
        arrays = {
            f"leaf:{i}": _pack(np.asarray(leaf)) for i, leaf in enumerate(jax.tree.leaves(blocks))
        }
        for key in records[0] if records else ():
            arrays[f"record:{key}"] = np.array([record[key] for record in records])
        save_archive(self.path, arrays, {"digest": self.digest, "step": step, "seconds": seconds})

    def load(self, blocks: list[Any]) -> tuple[int, float, list[Any], list[dict]]:
        """(step, seconds, blocks, records), the blocks in the structure of those given."""
        arrays, meta = load_archive(self.path)
        if meta.get("digest") != self.digest:
            raise ValueError(
                f"{self.path} belongs to another run (other model, schedule, seed, chains or version)."
            )
        leaves, structure = jax.tree.flatten(blocks)
        stored = [_unpack(arrays[f"leaf:{i}"], leaf) for i, leaf in enumerate(leaves)]
        columns = {
            k.removeprefix("record:"): v for k, v in arrays.items() if k.startswith("record:")
        }
        records = [
            {key: column[i] for key, column in columns.items()}
            for i in range(len(columns.get("step", ())))
        ]
        return meta["step"], meta["seconds"], jax.tree.unflatten(structure, stored), records


def digest_of(tree: Any, settings: str) -> str:
    """SHA-256 of the structure and every array of a pytree, and of a string of settings."""
    leaves, structure = jax.tree.flatten(tree)
    hasher = hashlib.sha256(settings.encode())
    hasher.update(str(structure).encode())
    for leaf in leaves:
        if isinstance(leaf, jax.Array | np.ndarray):
            hasher.update(np.asarray(leaf).tobytes())
        else:
            hasher.update(getattr(leaf, "__qualname__", repr(leaf)).encode())
    return hasher.hexdigest()


def _pack(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.float32 and np.isin(array, (0, 1)).all():
        return np.packbits(array.astype(bool))
    return array


def _unpack(stored: np.ndarray, like: Any) -> jax.Array:
    if stored.dtype == np.uint8 and like.dtype == np.float32:
        stored = np.unpackbits(stored, count=like.size).reshape(like.shape)
    return jnp.asarray(stored, like.dtype)
