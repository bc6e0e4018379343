"""Random bits as a pure function of (seed, purpose, chain, step, draw, unit).

A run is reproduced from its seed alone, whatever the chunk size, the number of devices or the
number of times it was resumed, because no generator state exists: every word is computed where
it is used.

    key       = BLAKE2b(seed, purpose)                              64 bits, once, on the host
    key_draw  = Threefry2x32-20(key; draw, 0)                       64 bits per draw, the first on the host
    (r0, r1)  = Threefry2x32-20(key_draw; chain, step)              64 bits per row
    word      = mix(r0 + unit * 0x9E3779B9, r1)                     32 bits per element

`mix` is a bijection of 32-bit words with three multiplications, keyed a second time by r1 half
way through. Rows are therefore as independent as Threefry (Salmon et al. 2011) makes them, and
the inner loop costs three multiplications per element, which XLA fuses into the comparison that
consumes the word: nothing is stored. `docs/design-notes.md` holds the battery it passes and the
generators it was chosen over.
"""

import hashlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray, UInt32

from annealz.core.arrays import on_device
from annealz.core.normal import tail_quantile

_GOLDEN = 0x9E3779B9
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_SCALE = np.float32(2.0**31)
_NUM_READY = 4  # draws whose keys a stream holds: deriving them makes a program slower to compile


def check_seed(seed: int) -> int:
    """The seed itself, if it is an integer in [0, 2**64)."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"seed must be an integer from 0 to 2**64 - 1, got {seed!r}.")
    return int(seed)


def derive_seed(seed: int, *words: object) -> int:
    """Another seed, unrelated to the seeds of other words."""
    text = " ".join(str(word) for word in (check_seed(seed), *words))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class Stream(eqx.Module):
    """The stream of one (seed, purpose): a 64-bit key.

    Streams of different purposes are unrelated, so pilot chains never share bits with the run
    that follows them.
    """

    key: UInt32[Array, "2"]
    draw_keys: UInt32[Array, "draws 2"]

    def __init__(self, seed: int, purpose: str):
        digest = hashlib.blake2b(
            check_seed(seed).to_bytes(8, "little") + purpose.encode(), digest_size=8
        ).digest()
        key = np.frombuffer(digest, dtype="<u4").astype(np.uint32)
        draws = np.arange(_NUM_READY, dtype=np.uint32)
        self.key = on_device(key, np.uint32)
        self.draw_keys = on_device(
            np.stack(threefry(key[:1], key[1:], draws, np.uint32(0)), 1), np.uint32
        )

    def at(self, step: int | Integer[Array, ""], chains: Integer[Array, " chains"]) -> "Bits":
        """The bits of one step for the chains of these global indices."""
        return Bits(self, on_device(chains, np.uint32), on_device(step, np.uint32))

    def draw_key(self, draw: int | Integer[Array, ""]):
        """The two words of key_draw; the number of the draw may be traced."""
        if not isinstance(draw, jax.Array) and draw < _NUM_READY:
            return self.draw_keys[draw, 0], self.draw_keys[draw, 1]
        return _traced_once(self.key[0], self.key[1], jnp.uint32(draw), jnp.uint32(0))


class Bits(eqx.Module):
    """The random bits that a step of the engine may use, one row per chain."""

    stream: Stream
    chains: UInt32[Array, " chains"]
    step: UInt32[Array, ""]

    @property
    def num_chains(self) -> int:
        return self.chains.shape[0]

    @eqx.filter_jit
    def words(self, num_units: int, draw: int) -> UInt32[Array, "chains units"]:
        """Uniform 32-bit words; `draw` distinguishes the uses within one step."""
        row0, row1 = row_keys(self.stream, draw, self.chains, self.step)
        return unit_words(row0[:, None], row1[:, None], jnp.arange(num_units, dtype=jnp.uint32))

    @eqx.filter_jit
    def uniforms(self, num_units: int, draw: int) -> Float[Array, "chains units"]:
        """Uniforms in [0, 1), float32 of 31 bits: exact to 2**-31 where they are small.

        The top bit of the word is spent because signed conversion is one instruction on every
        machine and unsigned conversion is not. Rounding may return 1.0.
        """
        return self.positives(num_units, draw) * (1 / _SCALE)

    def positives(self, num_units: int, draw: int) -> Float[Array, "chains units"]:
        """The uniforms times 2**31, before the multiplication that a comparison can do without."""
        return (self.words(num_units, draw) >> 1).astype(jnp.int32).astype(jnp.float32)

    @eqx.filter_jit
    def bernoulli(self, logits: Float[Array, "chains units"], draw: int) -> Float[Array, "..."]:
        """0.0 or 1.0, one with probability sigmoid(logits).

        u <= 1 / (1 + exp(-logit)) is compared as u (1 + exp(-logit)) <= 1, which saves the
        division; an overflowing exponential compares as probability 0, and a uniform that was
        rounded up to 1.0 is still a one where the probability is 1.
        """
        positives = self.positives(logits.shape[-1], draw)
        return (positives * (1 + jnp.exp(-logits)) <= _SCALE).astype(jnp.float32)

    @eqx.filter_jit
    def normals(self, num_units: int, draw: int) -> Float[Array, "chains units"]:
        """Standard normals by inversion: 31 bits for the size, the last one for the sign.

        The smallest tail has probability 2**-32, at 6.2 standard deviations.
        """
        words = self.words(num_units, draw)
        tails = ((words >> 1).astype(jnp.int32).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-32)
        sizes = tail_quantile(jnp.minimum(tails, 0.5))
        return jnp.where(words & 1, -sizes, sizes)

    def keys(self, draw: int) -> PRNGKeyArray:
        """A key of JAX's own generator for every chain, of 64 bits: for code that is written for it.

        What follows from a key is a function of (seed, purpose, chain, step, draw), as all else is.
        """
        return jax.random.wrap_key_data(self.words(2, draw), impl="threefry2x32")


def row_keys(stream: Stream, draw: int, chains, steps):
    """(r0, r1) of every chain at every step, as these two broadcast."""
    return _traced_once(*stream.draw_key(draw), chains, steps)


def unit_words(row0, row1, units):
    """The words of these units (uint32) in rows of these keys, as they broadcast."""
    return _mix(row0 + units * jnp.uint32(_GOLDEN), row1)


def _mix(word, key):
    word = (word ^ (word >> 17)) * jnp.uint32(0xED5AD4BB)
    word = (word ^ (word >> 11)) + key
    word = word * jnp.uint32(0xAC4C1B51)
    word = (word ^ (word >> 15)) * jnp.uint32(0x31848BAB)
    return word ^ (word >> 14)


def threefry(key0, key1, count0, count1):
    """Threefry2x32 with 20 rounds, element-wise on uint32, of NumPy or of JAX."""
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = count0 + keys[0], count1 + keys[1]
    for i in range(20):
        rotation = _ROTATIONS[i % 8]
        x0 = x0 + x1
        x1 = ((x1 << rotation) | (x1 >> (32 - rotation))) ^ x0
        if i % 4 == 3:
            turn = i // 4 + 1
            x0 = x0 + keys[turn % 3]
            x1 = x1 + keys[(turn + 1) % 3] + np.uint32(turn)
    return x0, x1


_traced_once = jax.jit(threefry)
