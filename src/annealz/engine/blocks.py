"""Chains in blocks of one size, which share nothing.

The size is a function of the number of chains, the path and the platform alone. So neither the number of
devices nor that of processes changes a bit: a matrix product of another batch size may round differently.

Where a step is a few products, a CPU splits each of its dozen programs over the cores and waits for all of
them: two halves of the chains, each by a thread of its own, take up to half the time.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.devices import Device, platform
from annealz.core.errors import InputError
from annealz.core.random import Stream
from annealz.engine.advance import Block
from annealz.io.reading import available_memory
from annealz.paths.abstract import AbstractPath

_MAX_BLOCK = {"cpu": 1024}  # chains per block, by platform
_MAX_BLOCK_ELSEWHERE = 16384
_LEAST_HALVED = 32  # chains
_WEIGHT_BYTES = 100  # per chain: its weight in two precisions, and copies


def block_size(num_chains: int) -> int:
    """Return how many chains advance together."""
    return split_chains(num_chains)[1]


def split_chains(num_chains: int, unit: int = 1, is_halved: bool = False) -> tuple[list[int], int]:
    """Return the first chain of every block, and the size of a block, in whole units.

    With `is_halved` there are at least two of them on a CPU, except where chains are few.
    """
    largest = _MAX_BLOCK.get(platform(), _MAX_BLOCK_ELSEWHERE)
    num_units = -(-num_chains // unit)
    count = -(-num_units // max(largest // unit, 1))
    if is_halved and num_chains >= _LEAST_HALVED and platform() == "cpu":
        count = max(count, min(2, num_units))
    size = -(-num_units // count) * unit
    return [i * size for i in range(count)], size


def cut(x: np.ndarray, starts: list[int], size: int) -> list[np.ndarray]:
    """Cut these states into blocks, the last one filled up."""
    filling = np.repeat(x[-1:], starts[-1] + size - len(x), axis=0)
    return np.split(np.concatenate([x, filling]), starts[1:])


def gather(trees: list[Any], num_chains: int) -> Any:
    """Join the blocks' arrays along the chain axis, without the filling."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num_chains], *trees)


def last_states(path: AbstractPath, blocks: list[Block], num_chains: int) -> np.ndarray:
    """Return the last states of all chains; binary ones as bytes."""
    x = gather([block.x for block in blocks], num_chains)
    return np.unpackbits(x, axis=-1, count=path.num_units) if path.is_binary else x


def log_weights_of(block: Block) -> np.ndarray:
    """Return log weights in float64, those of the filling too."""
    high, low = jax.device_get((block.log_weights, block.compensation))
    return np.asarray(high, np.float64) + np.asarray(low, np.float64)


def memory_needed(path: AbstractPath, num_chains: int) -> int:
    """Return the bytes that a run takes: of every chain its states as they are stored, twice, and as they
    come back, and its weights with the copies that a diagnosis makes of them; and what a sweep of a block
    of chains takes.
    """
    one, stored = _one_chain(path)
    states = one.size * (1 if path.is_binary else one.dtype.itemsize)
    states += 2 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(stored))
    needed = num_chains * (_WEIGHT_BYTES + states)
    return needed + min(num_chains, _MAX_BLOCK["cpu"]) * path.sweep_bytes


def check_memory(path: AbstractPath, num_chains: int, *names: str) -> None:
    """Refuse what does not fit into the free memory; the product of the `names` is the number of chains."""
    if platform() != "cpu":
        return
    needed, memory = memory_needed(path, num_chains), available_memory()
    if needed > memory:
        words = " x ".join(f"{{{one}}}" for one in names)
        raise InputError(
            "",
            f"{words} = {num_chains:,} needs about {needed / 2**30:,.1f} GiB of memory and "
            f"{memory / 2**30:.1f} are free",
            remedy=f"take fewer {names[0].removeprefix('num_')}",
        )


def check_start(path: AbstractPath, start: Any, num_chains: int, name: str = "start") -> np.ndarray:
    """Return the states to start from, as the path holds them; a ValueError names what is wrong."""
    like, is_binary = states_like(path, num_chains), path.is_binary
    x = np.asarray(start)
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {x.dtype}.")
    if x.shape != like.shape:
        raise ValueError(
            f"{name} must hold one state of the path for each of num_chains = {num_chains} chains, an "
            f"array of shape {like.shape}, got shape {x.shape}: give as many draws as chains."
        )
    wrong = ~np.isin(x, (0, 1)) if is_binary else ~np.isfinite(x)
    if wrong.any():
        raise ValueError(
            f"{name} must hold {'zeros and ones' if is_binary else 'finite numbers'}, got "
            f"{x[wrong][0]} ({int(wrong.sum())} of {x.size} values): give draws from the model."
        )
    return x.astype(like.dtype)


def on_one(given: tuple, device: Device) -> tuple:
    """Put what every block needs on one device."""
    arrays, rest = eqx.partition(given, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, device), rest)


def states_like(path: AbstractPath, num_chains: int) -> jax.ShapeDtypeStruct:
    """Return shape and type of the states of so many chains."""
    one = _one_chain(path)[0]
    return jax.ShapeDtypeStruct((num_chains, *one.shape[1:]), one.dtype)


def _one_chain(path: AbstractPath) -> tuple[jax.ShapeDtypeStruct, Any]:
    """Return shape and type of the state of one chain, as it is and as it is stored."""

    def both(path: AbstractPath) -> tuple[Any, Any]:
        x = path.sample(Stream(0, "").at(0, jnp.zeros(1, jnp.int32)))
        return x, path.store(x)

    return eqx.filter_eval_shape(both, path)
