"""Errors of a user's functions, on their way through compiled programs.

No exception gets through a compiled program: JAX logs its traceback and raises an error of its own, and an
interrupt may be lost. So a function that a program calls on the host keeps what it raises and returns NaN,
and `user_errors` raises it once the program has returned.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from annealz.core import interrupts


class FunctionError(ValueError):
    """What a user's function did wrong, in one sentence."""


def one_line(error: BaseException) -> str:
    """Return the type of an error, and the first line of its message."""
    kind, lines = type(error).__name__, str(error).strip().splitlines()
    return f"{kind}: {lines[0].strip().rstrip('.')}" if lines else kind


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Raise what a function raised on the host, whatever the program made of the NaN that it returned."""
    try:
        yield
    except Exception as error:
        failure = interrupts.failure() or error
    else:
        failure = interrupts.failure()
    if failure is not None:
        raise failure


def call_on_host(
    function: Callable[..., np.ndarray], shape: jax.ShapeDtypeStruct, *arguments: Any
) -> Any:
    """Call a NumPy function from a compiled program, for all points of a batch at once.

    After a failure it is not called again until the failure is raised.
    """
    num_axes = np.ndim(arguments[0])

    def called(x: Any, *more: Any) -> np.ndarray:
        try:
            interrupts.check()
            return function(x, *more)
        except (FunctionError, KeyboardInterrupt) as error:
            interrupts.remember(error)
            batch = np.shape(x)[: np.ndim(x) - num_axes]
            return np.full((*batch, *shape.shape), np.nan, shape.dtype)

    return jax.pure_callback(called, shape, *arguments, vmap_method="broadcast_all")
