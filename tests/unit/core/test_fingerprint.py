"""Digests tell apart what differs, and nothing else."""

import functools
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from annealz.io.fingerprint import fingerprint

SCALE = 1.0


def scaled(x):
    return SCALE * x


class Holder:
    def __init__(self, value):
        self.value = value

    def method(self, x):
        return self.value * x


def closing_over(value):
    return lambda x: value * x


PAIRS = {
    "numbers of numpy": (np.float32(0.2), np.float32(2.0)),
    "arrays": (jnp.zeros(3), jnp.ones(3)),
    "closures": (closing_over(np.float32(1)), closing_over(np.float32(2))),
    "closures over objects": (closing_over(Holder(1)), closing_over(Holder(2))),
    "methods": (Holder(1).method, Holder(2).method),
    "partials": (functools.partial(max, [1, 2]), functools.partial(max, [1, 3])),
    "defaults": (lambda x, a=1: a * x, lambda x, a=2: a * x),
    "keyword defaults": (lambda x, *, a=1: a * x, lambda x, *, a=2: a * x),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_is_told_apart(name: str):
    one, other = PAIRS[name]
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


def test_globals_count(monkeypatch: pytest.MonkeyPatch):
    before = fingerprint(scaled)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert fingerprint(scaled) != before


def test_a_function_that_calls_itself_ends():
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    assert fingerprint(factorial) == fingerprint(factorial)


def test_another_process_comes_to_the_same(tmp_path):
    (tmp_path / "code.py").write_text(
        "import functools, jax.numpy as jnp\nfrom annealz.io.fingerprint import fingerprint\n"
        "class A:\n    b = 1\ndef f(x, a=A()):\n    return jnp.sin(x) * 2\n"
        "print(fingerprint((f, functools.partial(f, 3), A().__class__)))\n"
    )

    def run() -> str:
        command = [sys.executable, str(tmp_path / "code.py")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert run() == run()


def test_where_an_object_lies_does_not_count():
    """NumPy writes the address of a generator in capitals; SciPy's distributions hold one."""
    generators = [np.random.RandomState(0) for _ in range(2)]
    assert repr(generators[0]) != repr(generators[1])
    one, other = (functools.partial(scaled, x=generator) for generator in generators)
    assert fingerprint(one) == fingerprint(other)
