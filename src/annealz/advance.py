"""What runs on the device: a block of chains, and many steps of it in one compiled program.

    log w += log p*_{beta_k}(v_{k-1}) - log p*_{beta_{k-1}}(v_{k-1})
    record, if k is a recorded step: statistics of v_{k-1} under the weights just updated
    v_k ~ T_{beta_k}(. | v_{k-1})

The numbers of steps and of chains are traced values: one compiled program serves every chunk of every
schedule length.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.fused.chunk import Chains, Span
from annealz.numerics import add_compensated
from annealz.random import Stream
from annealz.resampling import Resampling

__all__ = [
    "CHUNK_CAPACITY",
    "RECORD_CAPACITY",
    "Block",
    "Record",
    "advance",
    "advance_fused",
    "repeat",
    "start",
    "start_reverse",
    "window",
]

CHUNK_CAPACITY = 32768  # steps a compiled chunk can hold
RECORD_CAPACITY = 256  # records a compiled chunk can hold
_ROUND_STEPS = {"gpu": 16}  # steps a round of known length, by platform; elsewhere none


class Block(eqx.Module):
    """The state of one block of chains."""

    x: Any
    log_weights: jax.Array
    compensation: jax.Array
    carries: dict[str, Any]
    num_resamplings: Any = None  # (islands,), where there are any


class Record(eqx.Module):
    """A block's part of the statistics of one recorded step, mergeable across blocks."""

    largest: jax.Array  # max log w
    weight: jax.Array  # sum of w / e^largest
    weight_squared: jax.Array  # sum of (w / e^largest)^2
    means: dict[str, jax.Array]
    variances: dict[str, jax.Array]


@eqx.filter_jit
def start(path, observers, stream: Stream, first_chain, block_size: int, size=None) -> Block:
    """A block of draws from p_0, in islands of this size if any."""
    x = path.sample(stream.at(0, first_chain + jnp.arange(block_size)))
    counts = None if size is None else jnp.zeros(block_size // size, jnp.int32)
    return _unweighted(path, observers, x, counts)


@eqx.filter_jit
def start_reverse(path, kernel, observers, stream: Stream, first_chain, x) -> Block:
    """A block of draws from p_1, after the move at beta = 1 that a forward run ends with."""
    bits = stream.at(0, first_chain + jnp.arange(x.shape[0]))
    return _unweighted(path, observers, kernel.step(bits, x, path, jnp.float32(1)))


def _unweighted(path, observers, x, num_resamplings=None) -> Block:
    zeros = jnp.zeros(x.shape[0], jnp.float32)
    carries = {name: observer.init(x, path) for name, observer in observers.items()}
    return Block(path.store(x), zeros, zeros, carries, num_resamplings)


@eqx.filter_jit
def advance(
    path, kernel, observers, stream, block, first_chain, num_chains, betas, start, stop, every, last,
    is_reverse: bool = False, resampling: Resampling | None = None,
):  # fmt: skip
    """Steps start + 1 .. stop of one block; betas[i] is beta_{start + i}, counted from where it began."""
    chains = first_chain + jnp.arange(block.log_weights.shape[0])
    is_real = chains < num_chains  # the last block is filled up with chains that do not count

    def weigh(k, block: Block):
        """The block after the increment of step k, its states unpacked; and beta_k."""
        beta0, beta1 = betas[k - 1 - start], betas[k - start]
        x = path.unpack(block.x)
        low, high = (beta1, beta0) if is_reverse else (beta0, beta1)
        increment = path.log_ratio(x, low, high)  # upwards, where it keeps its digits
        if is_reverse:
            increment = -increment
        total, rest = add_compensated(block.log_weights, block.compensation, increment)
        carries = {
            name: observer.update(block.carries[name], x, path, beta0, beta1)
            for name, observer in observers.items()
        }
        return Block(x, total, rest, carries, block.num_resamplings), beta1

    def move(k, block: Block, beta):
        x = path.pack(kernel.step(stream.at(k, chains), block.x, path, beta))
        if resampling is None:
            return Block(x, block.log_weights, block.compensation, block.carries)
        bits = stream.at(k, chains[:: resampling.island_size])
        held = x, block.carries
        total, rest, held, which = resampling(bits, block.log_weights, block.compensation, held)
        return Block(held[0], total, rest, held[1], block.num_resamplings + which)

    def plain(k, block: Block):
        return move(k, *weigh(k, block))

    def recorded(k, block: Block):
        block, beta = weigh(k, block)
        return move(k, block, beta), _record(path, observers, block, beta, is_real)

    def segment(loop):
        """Plain steps up to the next recorded one (or the chunk's last), and that one."""
        k, slot, block, records = loop
        target = jnp.minimum((k // every + 1) * every, last)
        end = jnp.minimum(target, stop)
        block = repeat(plain, k + 1, end, block)
        block, record = recorded(end, block)
        records = jax.tree.map(lambda all, one: all.at[slot].set(one), records, record)
        return end, slot + (end == target), block, records  # an unrecorded slot is written again

    block = eqx.tree_at(lambda b: b.x, block, path.pack(path.restore(block.x)))
    like = jax.eval_shape(recorded, jnp.int32(1), block)[1]
    records = jax.tree.map(lambda a: jnp.zeros((RECORD_CAPACITY, *a.shape), a.dtype), like)
    loop = (start, jnp.int32(0), block, records)
    _, _, block, records = jax.lax.while_loop(lambda loop: loop[0] < stop, segment, loop)
    return eqx.tree_at(lambda b: b.x, block, path.store(path.unpack(block.x))), records


@eqx.filter_jit
def advance_fused(
    fused, path, stream, block, first_chain, num_chains, betas, start, stop, every, last
):
    """The same by fused steps, which tell the slope and nothing else."""
    chains = first_chain + jnp.arange(block.log_weights.shape[0])
    held = Chains(chains, path.restore(block.x), block.log_weights, block.compensation)
    span = Span(start, stop, every, last, RECORD_CAPACITY)
    held, (log_weights, compensation, slope) = fused(stream, held, betas, span)
    is_real = chains < num_chains
    records = jax.vmap(lambda w, c, u: _summary(w, c, {"slope": u}, is_real))(
        log_weights, compensation, slope
    )
    block = Block(path.store(held.x), held.log_weights, held.compensation, block.carries)
    return block, records


def repeat(step, start, stop, block: Any) -> Any:
    """step(stop - 1, … step(start, block)).

    At every turn of a loop of unknown length a GPU asks the host whether to go on, which costs a
    fifth of a small step. So most of the steps are taken in rounds of known length.
    """
    size = _ROUND_STEPS.get(jax.default_backend())
    if size is not None:
        rounds = (stop - start) // size

        def take_round(i, block):
            first = start + i * size
            return jax.lax.fori_loop(0, size, lambda j, b: step(first + j, b), block)

        block = jax.lax.fori_loop(0, rounds, take_round, block)
        start = start + rounds * size
    return jax.lax.fori_loop(start, stop, step, block)


def _record(path, observers, block: Block, beta, is_real) -> Record:
    values = {
        name: observer.measure(block.carries[name], block.x, path, beta)
        for name, observer in observers.items()
    }
    return _summary(block.log_weights, block.compensation, values, is_real)


def _summary(log_weights, compensation, values: dict[str, jax.Array], is_real) -> Record:
    largest = jnp.max(jnp.where(is_real, log_weights, -jnp.inf))
    weights = jnp.where(is_real, jnp.exp(log_weights - largest + compensation), 0)
    total = weights.sum()
    means, variances = {}, {}
    for name, value in values.items():
        shares = (weights / total).reshape(-1, *(1,) * (value.ndim - 1))
        means[name] = (shares * value).sum(0)
        variances[name] = (shares * (value - means[name]) ** 2).sum(0)
    return Record(largest, total, (weights**2).sum(), means, variances)


def window(betas: np.ndarray, step: int) -> jax.Array:
    """betas[step : step + capacity + 1], filled up with ones."""
    window = np.ones(CHUNK_CAPACITY + 1, np.float32)
    here = betas[step : step + CHUNK_CAPACITY + 1]
    window[: here.size] = here
    return jnp.asarray(window)
