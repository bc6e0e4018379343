"""Random bits: the reference vectors of Threefry, independence of every coordinate, fair coins."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from annealz.core.random import Bits, Stream, check_seed, threefry
from annealz.testing import assert_within_mc_error, default_seed

ALPHA = 1e-6
NUM_CHAINS, NUM_UNITS = 512, 512

# Random123's known-answer tests, kat_vectors, threefry2x32 20: counter, key, result.
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]

PINNED = [[0x85EC28FF, 0x4955BBFE], [0x102B12A9, 0xE96EE002]]  # seed 0, "test", step 1, draw 0


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_threefry_gives_the_published_words(counter, key, result):
    """A wrong rotation or key schedule would still look random: only the vectors catch it."""
    words = threefry(*(jnp.uint32(word) for word in (*key, *counter)))
    assert tuple(int(word) for word in words) == result


# --- coordinates -----------------------------------------------------------------------------


def words_of(
    seed: int,
    purpose: str = "test",
    step: int = 1,
    draw: int = 0,
    first_chain: int = 0,
    num_chains: int = NUM_CHAINS,
    num_units: int = NUM_UNITS,
) -> np.ndarray:
    chains = first_chain + jnp.arange(num_chains)
    return np.asarray(Stream(seed, purpose).at(step, chains).words(num_units, draw))


def assert_unrelated(one: np.ndarray, two: np.ndarray) -> None:
    """No more equal words than chance gives, no correlation, half of the bits differ."""
    assert stats.binomtest(int((one == two).sum()), one.size, 2.0**-32).pvalue > ALPHA
    centred = [words.ravel() / 2.0**32 - 0.5 for words in (one, two)]
    correlation = 12 * np.mean(centred[0] * centred[1])
    assert_within_mc_error(correlation, 0, one.size**-0.5)
    differing = np.unpackbits((one ^ two).view(np.uint8)).sum()
    bits = 32 * one.size
    assert_within_mc_error(differing / bits, 0.5, 0.5 * bits**-0.5)


OTHERS = {
    "seed": lambda seed: words_of(seed + 1),
    "purpose": lambda seed: words_of(seed, purpose="tesu"),
    "step": lambda seed: words_of(seed, step=2),
    "draw": lambda seed: words_of(seed, draw=1),
    "chain": lambda seed: words_of(seed, first_chain=1),
    "unit": lambda seed: words_of(seed, num_units=NUM_UNITS + 1)[:, 1:],
}


@pytest.mark.parametrize("coordinate", OTHERS)
def test_every_coordinate_gives_unrelated_words(coordinate: str, seed: int):
    """A coordinate that is dropped from the counter would repeat or shift the words."""
    assert_unrelated(words_of(seed), OTHERS[coordinate](seed))


def test_unrelatedness_is_refused_to_related_words(seed: int):
    """Mutants: a dropped coordinate, and words that share one bit."""
    words = words_of(seed)
    for related in (
        words,
        words ^ np.uint32(1),
        (words & 1) | (words_of(seed + 1) & ~np.uint32(1)),
    ):
        with pytest.raises(AssertionError):
            assert_unrelated(words, related.astype(np.uint32))


def test_words_do_not_depend_on_the_block_asked_for(seed: int):
    """Otherwise the block size would change the result of a run."""
    whole = words_of(seed)
    for first, count in ((0, 1), (17, 100), (NUM_CHAINS - 1, 1)):
        part = words_of(seed, first_chain=first, num_chains=count)
        np.testing.assert_array_equal(part, whole[first : first + count])
    np.testing.assert_array_equal(words_of(seed, num_units=3), whole[:, :3])


def test_words_inside_jit_are_the_words_outside(seed: int):
    bits = Stream(seed, "test").at(5, jnp.arange(7))
    inside = jax.jit(lambda bits: bits.words(9, 1))(bits)
    np.testing.assert_array_equal(inside, bits.words(9, 1))


def test_words_are_pinned():
    """A change of the generator changes every published number: it must not happen unseen."""
    words = words_of(0, num_chains=2, num_units=2)
    np.testing.assert_array_equal(words, PINNED)


def byte_p_value(words: np.ndarray) -> float:
    """The smallest chi-square p value over the four bytes of the words."""
    as_bytes = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 4)
    counts = [np.bincount(as_bytes[:, i], minlength=256) for i in range(4)]
    return min(float(stats.chisquare(count).pvalue) for count in counts)


LAYOUTS = {
    "many chains": {"num_chains": 2**14, "num_units": 64},
    "many units": {"num_chains": 64, "num_units": 2**14},
    "one unit": {"num_chains": 2**18, "num_units": 1},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_are_uniform(layout: str, seed: int):
    assert byte_p_value(words_of(seed, **LAYOUTS[layout])) > ALPHA


def test_bytes_of_a_bare_counter_are_not(seed: int):
    """Mutants: a counter without mixing, and one bit that is stuck in 2 % of the words."""
    words = words_of(seed, **LAYOUTS["many chains"]).copy()
    assert byte_p_value(np.arange(2**20, dtype=np.uint32)) < ALPHA
    words[:, 0] |= 1
    assert byte_p_value(words) < ALPHA


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", True, None])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be an integer"):
        check_seed(seed)


def test_the_largest_seed_is_accepted():
    assert check_seed(2**64 - 1) == 2**64 - 1
    assert check_seed(np.uint64(7)) == 7
    assert not np.array_equal(Stream(2**64 - 1, "a").key, Stream(2**32 - 1, "a").key)


@pytest.mark.parametrize("draw", [0, 1, 3, 4, 9])
def test_keys_of_draws_are_those_of_the_formula(draw: int, seed: int):
    """The first are derived on the host, others where they are used, a traced one there as well."""
    stream = Stream(seed, "draws")
    wanted = threefry(stream.key[0], stream.key[1], jnp.uint32(draw), jnp.uint32(0))
    traced = jax.jit(lambda draw: stream.draw_key(draw))(jnp.int32(draw))
    for found in (stream.draw_key(draw), traced):
        np.testing.assert_array_equal(found, wanted)


# --- uniforms and coins ----------------------------------------------------------------------


class CoarseBits(Bits):
    """Mutant: uniforms of 16 bits."""

    def positives(self, num_units, draw):
        return (self.words(num_units, draw) >> 16).astype(jnp.float32) * jnp.float32(2.0**15)


class BiasedBits(Bits):
    """Mutant: a coin that favours heads by a hundredth of a logit."""

    def bernoulli(self, logits, draw):
        return super().bernoulli(logits + 0.01, draw)


@eqx.filter_jit
def ones(stream: Stream, step, logit, kind: type[Bits]):
    bits = stream.at(step, jnp.arange(2**10))
    bits = kind(bits.stream, bits.chains, bits.step)
    return bits.bernoulli(jnp.full((2**10, 2**10), logit), 0).astype(jnp.int32).sum()


def count_heads(logit: float, num_steps: int, kind: type[Bits] = Bits) -> tuple[int, int]:
    """(ones, draws) of 2^20 coins a step."""
    stream, of = Stream(default_seed(), "coins"), np.float32(logit)
    return sum(
        int(ones(stream, np.int32(k), of, kind)) for k in range(num_steps)
    ), num_steps * 2**20


def head_p_value(logit: float, probability: float, **options) -> float:
    return float(stats.binomtest(*count_heads(logit, **options), probability).pvalue)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("probability", [0.5, 0.03, 0.9, 0.999])
def test_coins_have_their_probability(probability: float):
    logit = float(np.log(probability) - np.log1p(-probability))
    assert head_p_value(logit, probability, num_steps=4) > ALPHA


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("probability", [2e-6, 1 - 2e-6])
def test_rare_coins_have_their_probability(probability: float):
    """Uniforms of few bits would make rare events impossible or far too common."""
    logit = float(np.log(probability) - np.log1p(-probability))
    assert head_p_value(logit, probability, num_steps=64) > ALPHA


@pytest.mark.usefixtures("optimised")
def test_coin_tests_refuse_unfair_coins():
    """Mutants: 16-bit uniforms at a rare event, and a biased coin at an even one."""
    rare = float(np.log(2e-6))
    assert head_p_value(rare, 2e-6, num_steps=64, kind=CoarseBits) < ALPHA
    assert head_p_value(0.0, 0.5, num_steps=4, kind=BiasedBits) < ALPHA


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("size", [90.0, 200.0, 1e4, np.inf])
def test_saturated_coins_are_certain(outcome: int, size: float):
    """An overflowing exponential must not turn into NaN, nor a uniform of 1.0 into a stray coin."""
    heads, draws = count_heads(size if outcome else -size, num_steps=8)
    assert heads == outcome * draws


class EdgeBits(Bits):
    """Bits whose words are all the same: the extremes that chance shows once in 2^25 or 2^32."""

    def words(self, num_units, draw):
        return jnp.broadcast_to(self.chains[:, None], (self.num_chains, num_units))


@pytest.mark.parametrize("word", [0, 1, 2**32 - 128, 2**32 - 1])
def test_saturated_coins_are_certain_at_the_extreme_words(word: int):
    bits = EdgeBits(Stream(0, ""), jnp.array([word], jnp.uint32), jnp.uint32(0))
    logits = jnp.array([[-np.inf, -1e4, -200.0, 200.0, 1e4, np.inf]])
    coins = jax.jit(lambda logits: bits.bernoulli(logits, 0))(logits)
    np.testing.assert_array_equal(coins, [[0, 0, 0, 1, 1, 1]])


def test_coins_are_exactly_zero_or_one(seed: int):
    bits = Stream(seed, "coins").at(1, jnp.arange(100))
    logits = jnp.linspace(-20, 20, 100 * 30).reshape(100, 30)
    assert set(np.unique(bits.bernoulli(logits, 0))) == {0.0, 1.0}


def uniform_p_value(transform: Callable[[np.ndarray], np.ndarray]) -> float:
    uniforms = np.asarray(Stream(default_seed(), "u").at(1, jnp.arange(512)).uniforms(512, 0))
    assert uniforms.min() >= 0
    assert uniforms.max() <= 1
    return float(stats.kstest(transform(uniforms.ravel().astype(np.float64)), "uniform").pvalue)


def test_uniforms_are_uniform():
    assert uniform_p_value(lambda u: u) > ALPHA
    assert uniform_p_value(lambda u: u**1.02) < ALPHA  # mutant
