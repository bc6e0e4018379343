"""Compile programs, each optimised as far as its work is worth it.

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

Compiled programs are kept for later commands by `core/compilation_cache.py`.
"""

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core.devices import platform

_Options = dict[str, Any]  # of XLA, for one program
_one_at_a_time = threading.RLock()
_LITTLE = 2e6  # numbers, up to which nothing is optimised
_FEW = 2**16  # numbers of all states together, up to which one core takes a program
_ALONE: _Options = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
_WIDE: _Options = {"xla_cpu_prefer_vector_width": 512}
_LEVELS: dict[str, tuple[_Options, ...]] = {  # the first that this version of XLA knows
    "wide": (_WIDE,),
    "narrow": ({**_WIDE, **_ALONE}, _ALONE, _WIDE),
    "plain": (
        {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
        {"xla_backend_optimization_level": 0},
    ),
    "unsearched": ({"xla_gpu_autotune_level": 0},),
    "default": (),
}


class Compiled:
    """A function that is compiled for the shapes of what it is given, as `equinox.filter_jit` does it.

    `work` of a call is about how many numbers the program computes, over all calls to come, and `at_once`
    how many the states are that it computes at a time; by default many.
    """

    def __init__(self, function: Callable[..., Any], is_searched: bool = True):
        functools.update_wrapper(self, function)
        self._function, self._is_searched = function, is_searched
        self._programs: dict[str, Any] = {}

    @classmethod
    def without_search(cls, function: Callable[..., Any]) -> "Compiled":
        """Compile a function whose products matter little: a GPU's fastest way to them is not searched."""
        return cls(function, is_searched=False)

    def __call__(self, *arguments: Any, work: float = math.inf, at_once: float = math.inf) -> Any:
        return self._program(work, at_once)(*arguments)

    def lower(self, *arguments: Any) -> Any:
        """Return the optimised program for these arguments, before it is compiled."""
        return self._program(math.inf, math.inf).lower(*arguments)

    def shapes(self, *arguments: Any) -> Any:
        """Return shapes and types of what a call returns."""
        return eqx.filter_eval_shape(self._function, *arguments)

    def _program(self, work: float, at_once: float) -> Any:
        level = "default" if self._is_searched else "unsearched"
        if platform() == "cpu":
            level = optimisation_level(work, at_once)
        elif platform() != "gpu":
            level = "default"
        with _one_at_a_time:  # or two threads would make it twice
            if level not in self._programs:
                options = xla_options(level)
                more: Any = {} if options is None else {"compiler_options": options}
                self._programs[level] = eqx.filter_jit(self._function, **more)
            return self._programs[level]


def optimisation_level(work: float, at_once: float) -> str:
    """Return how a CPU's program of so much work, with states of so many numbers, is compiled."""
    if work < _LITTLE:
        return "plain"
    return "narrow" if at_once < _FEW else "wide"


@functools.cache
def xla_options(level: str) -> _Options | None:
    """Return the options of XLA for programs of a level; None where it knows none of them."""
    for options in _LEVELS[level]:
        try:
            jax.jit(lambda x: x, compiler_options=options).lower(np.float32(0)).compile()
        except (jax.errors.JaxRuntimeError, ValueError):
            continue
        return options
    return None


def numbers_computed(function: Callable[..., Any], dim: int) -> float:
    """Return how many numbers a function of one position (dim,) computes, roughly."""
    traced = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((dim,), jnp.float32))
    return float(dim + _count(traced.jaxpr))


def _count(program: Any) -> float:
    total = 0.0
    for line in program.eqns:
        inside = [getattr(part, "jaxpr", part) for part in programs_in(line)]
        turns = line.params.get("length", math.inf if line.primitive.name == "while" else 1)
        total += turns * sum(map(_count, inside))
        size = sum(math.prod(getattr(out.aval, "shape", ())) for out in line.outvars)
        if line.primitive.name == "dot_general":
            (axes, _), _ = line.params["dimension_numbers"]
            size *= math.prod(line.invars[0].aval.shape[axis] for axis in axes)
        total += size
    return total


def programs_in(line: Any) -> list[Any]:
    """Return the programs inside of one line of a program."""
    parts = jax.tree.leaves(list(line.params.values()), is_leaf=_is_program)
    return [part for part in parts if _is_program(part)]


def _is_program(part: Any) -> bool:
    return hasattr(part, "eqns") or hasattr(part, "jaxpr")


class Recent:
    """The last few values, each with the objects that it was made of.

    Names are compared, everything else is by identity the same: it is held as long as the value, so that no
    other object can take its place. Threads that ask for the same at once wait for the first of them.
    """

    def __init__(self, size: int):
        self._size, self._lock = size, threading.RLock()
        self._held: list[tuple[tuple[Any, ...], Any]] = []

    def get(self, of: Sequence[Any], make: Callable[[], Any]) -> Any:
        """Return the value made of these objects, made if it is not held."""
        of = tuple(of)
        with self._lock:
            for others, value in self._held:
                pairs = zip(of, others, strict=False)
                is_same = all(a is b or (isinstance(a, str) and a == b) for a, b in pairs)
                if is_same and len(of) == len(others):
                    return value
            value = make()
            self._held = [(of, value), *self._held[: self._size - 1]]
            return value
