"""Programs that are optimised as far as they are worth it: the same numbers, and how many are computed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.core import programs
from annealz.core.programs import (
    Compiled,
    Recent,
    numbers_computed,
    optimisation_level,
    xla_options,
)


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch):
    """Return a function that sets the options of a level for one test."""

    def set_level(name: str, *options: dict) -> None:
        monkeypatch.setitem(programs._LEVELS, name, options)
        xla_options.cache_clear()

    yield set_level
    monkeypatch.undo()
    xla_options.cache_clear()


def test_little_work_is_not_optimised():
    """Both forms give the same numbers, and each is compiled where it is asked for."""
    traces = []

    def function(x):
        traces.append(x)
        return jnp.exp(-x) * jnp.sin(x).sum()

    compiled, x = Compiled(function), np.linspace(0, 1, 1000, dtype=np.float32)
    careful = compiled(x)
    assert len(traces) == 1
    quick = compiled(x, work=1e3)
    assert len(traces) == 2
    np.testing.assert_allclose(quick, careful, rtol=1e-6)
    compiled(x, work=1e9)
    compiled(x, work=0)
    assert len(traces) == 2


def test_options_that_xla_does_not_know_are_left_out(levels):
    assert xla_options("plain") is not None
    known, unknown = {"xla_backend_optimization_level": 0}, {"xla_no_such_option": 1}
    for options, expected in (((unknown, known), known), ((unknown,), None)):
        levels("plain", *options)
        assert xla_options("plain") == expected
        np.testing.assert_allclose(Compiled(jnp.exp)(np.float32(0), work=0), 1.0)


def test_much_work_uses_the_widest_vectors(levels):
    """Where XLA does not know the option the program is compiled without."""
    assert xla_options("wide") == {"xla_cpu_prefer_vector_width": 512}
    levels("wide", {"xla_no_such_option": 1})
    assert xla_options("wide") is None
    np.testing.assert_allclose(Compiled(jnp.exp)(np.float32(0)), 1.0)


def test_few_numbers_are_left_to_one_core(levels):
    """Another program, the same bits; where XLA does not know the option it is optimised as others are."""
    traces = []

    def function(x):
        traces.append(x)
        return jax.lax.fori_loop(
            0, 50, lambda k, x: jnp.sin(x) + k * jnp.cos(x).sum(-1)[:, None], x
        )

    compiled, x = Compiled(function), np.linspace(0, 1, 40_000, dtype=np.float32).reshape(200, 200)
    shared, alone = compiled(x), compiled(x, at_once=x.size)
    assert len(traces) == 2
    np.testing.assert_array_equal(alone, shared)
    sizes = 1, 65_535, 65_536, np.inf
    assert [optimisation_level(1e9, n) for n in sizes] == ["narrow"] * 2 + ["wide"] * 2
    assert optimisation_level(1e6, 1) == "plain"
    options = xla_options("narrow")
    assert options is not None
    assert options["xla_disable_hlo_passes"] == "cpu-parallel-task-assigner"
    levels("narrow", {"xla_no_such_option": 1}, {})
    assert xla_options("narrow") == {}


def test_shapes_are_known_without_a_program():
    found = Compiled(lambda x, size: jnp.zeros((size, *x.shape))).shapes(np.ones(3, np.float32), 4)
    assert found.shape == (4, 3)


def test_a_function_is_as_large_as_its_arrays():
    matrix = jnp.ones((300, 10))
    assert numbers_computed(jnp.sum, 10) < 30
    assert 3000 <= numbers_computed(lambda x: (matrix @ x).sum(), 10) < 4000
    assert 300 <= numbers_computed(lambda x: jnp.exp(x[0] * matrix[:, 0]).sum(), 10) < 2000


def test_what_is_repeated_counts_as_often():
    def scanned(x):
        return jax.lax.scan(lambda carry, _: (jnp.sin(carry), None), x, None, length=50)[0].sum()

    def until(x):
        return jax.lax.while_loop(lambda x: x.sum() > 0, lambda x: x - 1, x).sum()

    assert 500 <= numbers_computed(scanned, 10) < 700
    assert numbers_computed(until, 10) == np.inf  # nobody knows how often


def test_what_was_made_of_the_same_objects_and_names_is_not_made_again():
    recent, array, made = Recent(2), np.ones(2), []

    def get(*of):
        return recent.get(of, lambda: made.append(of) or len(made))

    name = "vis"
    assert get(array, "visible") == 1
    assert get(array, f"{name}ible") == 1  # an equal name that is another object
    assert get(array.copy(), "visible") == 2  # an equal array that is another object
    assert get(array, "hidden") == 3
    assert get(array) == 4
    assert get(array, "visible") == 5  # the last two are held, no more
