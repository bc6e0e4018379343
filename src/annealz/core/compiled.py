"""Programs that are optimised as far as their work is worth it.

On a CPU a run of a density in the plane takes 2.5 s of a core to compile, and 0.6 s without optimisations;
unoptimised, every number that is computed for a state takes about 0.25 µs longer (docs/design-notes.md). So
up to some million numbers nothing is optimised. What a program is worth follows from what it is asked to do
alone, so that a run that goes on elsewhere or later gives the same bits.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.devices import platform

__all__ = ["Compiled", "numbers_computed", "plain_options"]

_LITTLE = 2e6  # numbers, up to which nothing is optimised
_PLAIN: tuple[dict[str, Any], ...] = (  # the first that this version of XLA knows
    {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
    {"xla_backend_optimization_level": 0},
)


class Compiled:
    """A function that is compiled for the shapes of what it is given, as `equinox.filter_jit` does it.

    `work` of a call is about how many numbers the program computes, over all calls to come; by default
    many.
    """

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self._function, self._optimised = function, _jit(function)
        self.lower = self._optimised.lower

    @functools.cached_property
    def _plain(self) -> Any:
        options = plain_options()
        return self._optimised if options is None else _jit(self._function, options)

    def __call__(self, *arguments: Any, work: float = math.inf) -> Any:
        if work < _LITTLE and platform() == "cpu":
            return self._plain(*arguments)
        return self._optimised(*arguments)


@functools.cache
def plain_options() -> dict[str, Any] | None:
    """Options of XLA that leave its optimisations out; None where it knows none of them."""
    for options in _PLAIN:
        try:
            jax.jit(lambda x: x, compiler_options=options).lower(np.float32(0)).compile()
        except (jax.errors.JaxRuntimeError, ValueError):
            continue
        return options
    return None


def _jit(function: Callable[..., Any], options: dict[str, Any] | None = None) -> Any:
    jit: Any = eqx.filter_jit
    return jit(function) if options is None else jit(function, compiler_options=options)


def numbers_computed(function: Callable[..., Any], dim: int) -> float:
    """How many numbers a function of one position (dim,) computes, roughly."""
    traced = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((dim,), jnp.float32))
    return float(dim + _count(traced.jaxpr))


def _count(program: Any) -> float:
    total = 0.0
    for line in program.eqns:
        inside = [part for value in line.params.values() for part in _programs_in(value)]
        turns = line.params.get("length", math.inf if line.primitive.name == "while" else 1)
        total += turns * sum(map(_count, inside))
        size = sum(math.prod(getattr(out.aval, "shape", ())) for out in line.outvars)
        if line.primitive.name == "dot_general":
            (axes, _), _ = line.params["dimension_numbers"]
            size *= math.prod(line.invars[0].aval.shape[axis] for axis in axes)
        total += size
    return total


def _programs_in(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [part for one in value for part in _programs_in(one)]
    value = getattr(value, "jaxpr", value)
    return [value] if hasattr(value, "eqns") else []
