"""Functions with copies of the arrays that they read."""

import functools

import jax
import numpy as np

from annealz.core.own_arrays import with_own_arrays

GLOBAL = np.array([1.0, 2.0])


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return (self.scale * x).sum()


def inner(x):
    return x + GLOBAL


def test_arrays_are_copied_wherever_they_are_read():
    near, kept = np.array([3.0, 4.0]), {"a": [np.array([5.0, 6.0])]}
    scaled = Scaled(np.array([7.0, 8.0]))
    part = functools.partial(lambda data, x: x * data, np.array([9.0, 1.0]))
    jitted = jax.jit(lambda x: x * near)

    twos = np.array([2.0, 2.0])

    def function(x, power=twos):
        return scaled(inner(x) * near + kept["a"][0]) + sum(part(x) ** power) + jitted(x).sum()

    x = np.array([0.5, 0.25])
    before = float(function(x))
    own = with_own_arrays(function)
    assert own is not function
    assert float(own(x)) == before
    for array in (GLOBAL, near, kept["a"][0], scaled.scale, part.args[0], *function.__defaults__):
        array += 1
    assert float(own(x)) == before
    assert float(function(x)) != before
    GLOBAL[:] = [1.0, 2.0]


def test_what_reads_no_array_stays_itself():
    def plain(x, depth=2):
        return plain(x, depth - 1) if depth else x.sum()

    assert with_own_arrays(plain) is plain
    assert with_own_arrays(Scaled(2.0)).scale == 2.0
