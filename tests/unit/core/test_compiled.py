"""Programs that are optimised as far as they are worth it: the same numbers, and how many are computed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.core import compiled as module
from annealz.core.compiled import (
    Compiled,
    care_of,
    narrow_options,
    numbers_computed,
    plain_options,
    wide_options,
)


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


def test_options_that_xla_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch):
    assert plain_options() is not None
    known, unknown = {"xla_backend_optimization_level": 0}, {"xla_no_such_option": 1}
    for options, expected in (((unknown, known), known), ((unknown,), None)):
        monkeypatch.setattr(module, "_PLAIN", options)
        plain_options.cache_clear()
        assert plain_options() == expected
        np.testing.assert_allclose(Compiled(jnp.exp)(np.float32(0), work=0), 1.0)
    plain_options.cache_clear()


def test_much_work_uses_the_widest_vectors(monkeypatch: pytest.MonkeyPatch):
    """Where XLA does not know the option the program is compiled without."""
    assert wide_options() == {"xla_cpu_prefer_vector_width": 512}
    monkeypatch.setattr(module, "_WIDE", ({"xla_no_such_option": 1},))
    wide_options.cache_clear()
    assert wide_options() is None
    np.testing.assert_allclose(Compiled(jnp.exp)(np.float32(0)), 1.0)
    wide_options.cache_clear()


def test_few_numbers_are_left_to_one_core(monkeypatch: pytest.MonkeyPatch):
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
    assert [care_of(1e9, n) for n in (1, 65_535, 65_536, np.inf)] == ["narrow"] * 2 + ["wide"] * 2
    assert care_of(1e6, 1) == "plain"
    options = narrow_options()
    assert options is not None
    assert options["xla_disable_hlo_passes"] == "cpu-parallel-task-assigner"
    monkeypatch.setattr(module, "_NARROW", ({"xla_no_such_option": 1}, {}))
    narrow_options.cache_clear()
    assert narrow_options() == {}
    narrow_options.cache_clear()


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
