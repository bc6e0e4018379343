"""What follows from shapes alone is found once for each of them."""

import equinox as eqx
import jax.numpy as jnp
import pytest

from annealz.core.by_shape import by_shape


class Pair(eqx.Module):
    array: object
    number: object
    name: object = eqx.field(static=True, default="")
    more: object = None


@pytest.fixture
def calls() -> list:
    return []


@pytest.fixture
def size(calls: list):
    def size(pair: Pair, times: int) -> int:
        calls.append(pair)
        made = eqx.filter_eval_shape(lambda pair: pair.array * pair.number, pair)
        return times * made.size * made.dtype.itemsize

    return by_shape(size)


def test_numbers_of_arrays_do_not_matter(size, calls):
    assert [size(Pair(jnp.full(3, x), 2), 5) for x in (1.0, 2.0)] == [60, 60]
    assert len(calls) == 1


def test_all_else_does(size, calls):
    """Shape, type, numbers that are not arrays, what is static, and how many times."""
    array = jnp.ones(3)
    given = [
        (Pair(array, 2), 5, 60),
        (Pair(jnp.ones(4), 2), 5, 80),
        (Pair(jnp.ones(3, jnp.uint8), 2), 5, 15),
        (Pair(jnp.ones(3, jnp.uint8), 2.0), 5, 60),  # equal to 2, and not of its type
        (Pair(array, 3), 5, 60),
        (Pair(array, 2, "named"), 5, 60),
        (Pair(array, 2), 6, 72),
    ]
    for _ in range(2):
        assert [size(pair, times) for pair, times, _ in given] == [last for *_, last in given]
    assert len(calls) == len(given)


class Odd:
    """Has no hash."""

    __hash__ = None


def test_what_has_no_hash_is_asked_again(size, calls):
    for _ in range(2):
        assert size(Pair(jnp.ones(3), 2, more=Odd()), 1) == 12
    assert len(calls) == 2
