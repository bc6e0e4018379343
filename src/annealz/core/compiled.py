"""Programs that are optimised as far as their work is worth it.

What is optimised uses the widest vectors that the processor has: XLA alone keeps to 256 bits, and a step of
an RBM takes a tenth longer.

On a CPU a run of a density in the plane takes 2.5 s of a core to compile, and 0.6 s without optimisations;
unoptimised, every number that is computed for a state takes about 0.25 µs longer (docs/design-notes.md). So
up to some million numbers nothing is optimised. What a program is worth follows from what it is asked to do
alone, so that a run that goes on elsewhere or later gives the same bits.

A CPU's cores share each of the small programs that a step consists of, and wait for each other after each.
Where the states are few numbers that takes longer than one core alone: 224 and 203 µs for a step of 50,000
spins, 369 and 397 for 100,000 (two cores). So programs of few numbers at a time are not shared. The results
have the same bits.

On a GPU XLA tries many ways to compute a product, for a second or more. Where products take no time, as in
a start or beside fused steps, it tries none.
"""

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.devices import platform

__all__ = [
    "Compiled",
    "care_of",
    "narrow_options",
    "numbers_computed",
    "plain_options",
    "unsearched_options",
    "wide_options",
]

_Options = dict[str, Any]  # of XLA, for one program
_one_at_a_time = threading.RLock()
_LITTLE = 2e6  # numbers, up to which nothing is optimised
_FEW = 2**16  # numbers of all states together, up to which one core takes a program
_ALONE: _Options = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
_WIDE: tuple[_Options, ...] = ({"xla_cpu_prefer_vector_width": 512},)
_NARROW: tuple[_Options, ...] = (*({**one, **_ALONE} for one in _WIDE), _ALONE, *_WIDE)
_UNSEARCHED: tuple[_Options, ...] = ({"xla_gpu_autotune_level": 0},)
_PLAIN: tuple[_Options, ...] = (
    {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
    {"xla_backend_optimization_level": 0},
)


class Compiled:
    """A function that is compiled for the shapes of what it is given, as `equinox.filter_jit` does it.

    `work` of a call is about how many numbers the program computes, over all calls to come, and `at_once`
    how many the states are that it computes at a time; by default many.
    """

    def __init__(self, function: Callable[..., Any], is_searched: bool = True):
        functools.update_wrapper(self, function)
        self._function, self._is_searched = function, is_searched

    @classmethod
    def without_search(cls, function: Callable[..., Any]) -> "Compiled":
        """Of products that matter little: on a GPU the fastest way to compute them is not searched for."""
        return cls(function, is_searched=False)

    @functools.cached_property
    def _elsewhere(self) -> Any:
        return eqx.filter_jit(self._function)

    @functools.cached_property
    def _unsearched(self) -> Any:
        return self._with(unsearched_options())

    @functools.cached_property
    def _wide(self) -> Any:
        return self._with(wide_options())

    @functools.cached_property
    def _narrow(self) -> Any:
        return self._with(narrow_options())

    @functools.cached_property
    def _plain(self) -> Any:
        return self._with(plain_options())

    def _with(self, options: _Options | None) -> Any:
        jit: Any = eqx.filter_jit
        return self._elsewhere if options is None else jit(self._function, compiler_options=options)

    def __call__(self, *arguments: Any, work: float = math.inf, at_once: float = math.inf) -> Any:
        return self._program(work, at_once)(*arguments)

    def lower(self, *arguments: Any) -> Any:
        """The optimised program for these arguments, before it is compiled."""
        return self._program(math.inf, math.inf).lower(*arguments)

    def shapes(self, *arguments: Any) -> Any:
        """Shapes and types of what a call returns."""
        return eqx.filter_eval_shape(self._function, *arguments)

    def _program(self, work: float, at_once: float) -> Any:
        with _one_at_a_time:  # or two threads would make it twice
            return self._chosen(work, at_once)

    def _chosen(self, work: float, at_once: float) -> Any:
        if platform() == "gpu" and not self._is_searched:
            return self._unsearched
        if platform() != "cpu":
            return self._elsewhere
        return getattr(self, f"_{care_of(work, at_once)}")


def care_of(work: float, at_once: float) -> str:
    """How a CPU's program of so much work, with states of so many numbers, is compiled."""
    if work < _LITTLE:
        return "plain"
    return "narrow" if at_once < _FEW else "wide"


@functools.cache
def wide_options() -> _Options | None:
    """Options of XLA for the widest vectors of a CPU; None where it does not know them."""
    return _known(_WIDE)


@functools.cache
def narrow_options() -> _Options | None:
    """The same for programs that one core takes alone."""
    return _known(_NARROW)


@functools.cache
def unsearched_options() -> _Options | None:
    """Options of XLA that try no ways to compute a product on a GPU; None where it does not know them."""
    return _known(_UNSEARCHED)


@functools.cache
def plain_options() -> _Options | None:
    """Options of XLA that leave its optimisations out; None where it knows none of them."""
    return _known(_PLAIN)


def _known(candidates: tuple[_Options, ...]) -> _Options | None:
    """The first that this version of XLA knows."""
    for options in candidates:
        try:
            jax.jit(lambda x: x, compiler_options=options).lower(np.float32(0)).compile()
        except (jax.errors.JaxRuntimeError, ValueError):
            continue
        return options
    return None


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
