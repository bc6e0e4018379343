"""What runs on the device: a block of chains, and many steps of it (`anneal.py`) in one compiled program.

The numbers of steps and of chains are traced values: one compiled program serves every chunk of every
schedule length.

A recorded step is a second copy of the step in the program, so that its statistics share the products of
the weights. Where they need none the state before the move is kept instead, and the step is there once:
half as much to compile.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.arrays import on_device
from annealz.core.devices import platform
from annealz.core.numerics import add_compensated
from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.engine.gpu.chunk import Chains, Span
from annealz.engine.resampling import Resampling

CHUNK_CAPACITY = 32768  # steps a compiled chunk can hold
RECORD_CAPACITY = 256  # records a compiled chunk can hold
FUSED_RECORD_CAPACITY = 1024  # of the slope alone
_ROUND_STEPS = {"gpu": (16, 10, 9, 4)}  # of rounds of known length, by platform; elsewhere none


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


@Compiled.without_search
def start(path, observers, stream: Stream, first_chain, block_size: int, size=None) -> Block:
    """A block of draws from p_0, in islands of this size if any."""
    x = path.sample(stream.at(0, first_chain + jnp.arange(block_size)))
    counts = None if size is None else jnp.zeros(block_size // size, jnp.int32)
    return _unweighted(path, observers, x, counts)


@Compiled.without_search
def start_reverse(path, kernel, observers, stream: Stream, first_chain, x) -> Block:
    """A block of draws from p_1, after the move at beta = 1 that a forward run ends with."""
    bits = stream.at(0, first_chain + jnp.arange(x.shape[0]))
    return _unweighted(path, observers, kernel.step(bits, x, path, jnp.float32(1)))


def _unweighted(path, observers, x, num_resamplings=None) -> Block:
    zeros = jnp.zeros(x.shape[0], jnp.float32)
    carries = {name: observer.init(x, path) for name, observer in observers.items()}
    return Block(path.store(x), zeros, zeros, carries, num_resamplings)


class Chunk(NamedTuple):
    """Steps start + 1 .. stop of one block of a run, all numbers traced."""

    first_chain: Any
    num_chains: Any
    """Of the run."""
    betas: Any
    """betas[i] is beta_{start + i}."""
    start: Any
    stop: Any
    every: Any
    """Every so many steps, and at the last of the run, there is a record."""
    last: Any

    def chains(self, block: Block) -> tuple[jax.Array, jax.Array]:
        """Numbers of the block's chains, and which are real: the last block is filled up."""
        chains = self.first_chain + jnp.arange(block.log_weights.shape[0])
        return chains, chains < self.num_chains


class _Step(NamedTuple):
    """Step k of a block whose states are packed."""

    path: Any
    kernel: Any
    observers: Any
    stream: Stream
    chunk: Chunk
    chains: jax.Array
    is_real: jax.Array
    is_reverse: bool
    resampling: Resampling | None

    def weigh(self, k, block: Block) -> tuple[Block, Any]:
        """The block after the increment of step k, its states unpacked; and beta_k."""
        path, (betas, start) = self.path, (self.chunk.betas, self.chunk.start)
        beta0, beta1 = betas[k - 1 - start], betas[k - start]
        x = path.unpack(block.x)
        low, high = (beta1, beta0) if self.is_reverse else (beta0, beta1)
        increment = path.log_ratio(x, low, high)  # upwards, where it keeps its digits
        if self.is_reverse:
            increment = -increment
        total, rest = add_compensated(block.log_weights, block.compensation, increment)
        carries = {
            name: observer.update(block.carries[name], x, path, beta0, beta1)
            for name, observer in self.observers.items()
        }
        return Block(x, total, rest, carries, block.num_resamplings), beta1

    def move(self, k, block: Block, beta) -> Block:
        bits = self.stream.at(k, self.chains)
        x = self.path.pack(self.kernel.step(bits, block.x, self.path, beta))
        if self.resampling is None:
            return Block(x, block.log_weights, block.compensation, block.carries)
        bits = self.stream.at(k, self.chains[:: self.resampling.island_size])
        held = x, block.carries
        taken = self.resampling(bits, block.log_weights, block.compensation, held)
        total, rest, held, which = taken
        return Block(held[0], total, rest, held[1], block.num_resamplings + which)


@Compiled
def advance(
    path, kernel, observers, stream: Stream, block: Block, chunk: Chunk,
    is_reverse: bool = False, resampling: Resampling | None = None, rounds: int | None = None,
):  # fmt: skip
    """The block after the steps of this chunk, and what is recorded on the way."""
    chains = chunk.chains(block)
    step = _Step(path, kernel, observers, stream, chunk, *chains, is_reverse, resampling)
    weigh, move = jax.jit(step.weigh), jax.jit(step.move)  # traced once for both kinds of steps

    def plain(k, block: Block) -> Block:
        return move(k, *weigh(k, block))

    @jax.jit
    def recorded(k, block: Block) -> tuple[Block, Record]:
        block, beta = weigh(k, block)
        return move(k, block, beta), _record(path, observers, block, beta, step.is_real)

    def both(k, pair: tuple[Block, Block]) -> tuple[Block, Block]:
        """The block after step k, and before its move."""
        block, beta = weigh(k, pair[0])
        return move(k, block, beta), block

    def steps_to(end, k, block: Block) -> tuple[Block, Record]:
        """The block after steps k + 1 .. end, and the record of the last."""
        if rounds == 0:
            return recorded(end, block)
        if not path.is_cheap_to_record:
            return recorded(end, repeat(plain, k + 1, end, block, rounds))
        first = block, eqx.tree_at(lambda b: b.x, block, path.unpack(block.x))
        block, before = repeat(both, k + 1, end + 1, first, rounds)
        beta = chunk.betas[end - chunk.start]
        return block, _record(path, observers, before, beta, step.is_real)

    def segment(loop):
        """Plain steps up to the next recorded one (or the chunk's last), and that one."""
        k, slot, block, records = loop
        target = jnp.minimum((k // chunk.every + 1) * chunk.every, chunk.last)
        end = jnp.minimum(target, chunk.stop)
        block, record = steps_to(end, k, block)
        put = jax.lax.dynamic_update_index_in_dim
        records = jax.tree.map(lambda all, one: put(all, one, slot, 0), records, record)
        return end, slot + (end == target), block, records  # an unrecorded slot is written again

    block = eqx.tree_at(lambda b: b.x, block, path.pack(path.restore(block.x)))
    like = jax.eval_shape(recorded, jnp.int32(1), block)[1]
    records = jax.tree.map(lambda a: jnp.zeros((RECORD_CAPACITY, *a.shape), a.dtype), like)
    loop = (chunk.start, jnp.int32(0), block, records)
    _, _, block, records = jax.lax.while_loop(lambda loop: loop[0] < chunk.stop, segment, loop)
    return eqx.tree_at(lambda b: b.x, block, path.store(path.unpack(block.x))), records


@Compiled.without_search
def advance_fused(fused, path, stream: Stream, block: Block, chunk: Chunk):
    """The same by fused steps, which record the slope and nothing else."""
    chains, is_real = chunk.chains(block)
    held = Chains(chains, path.restore(block.x), block.log_weights, block.compensation)
    span = Span(chunk.start, chunk.stop, chunk.every, chunk.last, FUSED_RECORD_CAPACITY)
    held, (log_weights, compensation, slope) = fused(stream, held, chunk.betas, span)
    records = jax.vmap(lambda w, c, u: _summary(w, c, {"slope": u}, is_real))(
        log_weights, compensation, slope
    )
    block = Block(path.store(held.x), held.log_weights, held.compensation, block.carries)
    return block, records


def round_steps(path, every: int) -> int | None:
    """The length of rounds in which the steps up to a recorded one ask the host least often.

    None where they are not taken in rounds, 0 where every step is recorded. Of a path that is not cheap to
    record the recorded step is apart.
    """
    sizes, count = _ROUND_STEPS.get(platform()), every - (not path.is_cheap_to_record)
    if sizes is None or every == 1:
        return None if sizes is None else 0
    return min(sizes, key=lambda n: count // n + count % n)  # few sizes: each is another program


def repeat(step, start, stop, block: Any, size: int | None = None) -> Any:
    """step(stop - 1, … step(start, block)), in rounds of this size, by default of the most steps.

    At every turn of a loop of unknown length a GPU asks the host whether to go on, which costs a
    fifth of a small step. So most of the steps are taken in rounds of known length.
    """
    size = size or max(_ROUND_STEPS.get(platform(), (0,))) or None
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
    return on_device(window)
