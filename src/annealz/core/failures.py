"""Errors of a user's functions, on their way through compiled programs.

A function that a program calls on the host can only fail through the program, which reports the text of the
traceback as an error of its own. `user_errors` finds the sentence in it, and raises that alone.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from annealz.core import interrupts


class FunctionError(ValueError):
    """What a user's function did wrong, in one sentence."""


_MARK = f"{FunctionError.__name__}: "


def one_line(error: BaseException) -> str:
    """The kind of an error, and the first line of its message."""
    lines = str(error).strip().splitlines()
    return (
        f"{type(error).__name__}: {lines[0].strip().rstrip('.')}" if lines else type(error).__name__
    )


@contextlib.contextmanager
def user_errors():
    """Raise an error of a user's function as one sentence, and an interrupt of it as KeyboardInterrupt."""
    try:
        yield
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        interrupts.check()
        if (
            str(error).rstrip().endswith("KeyboardInterrupt")
        ):  # raised in JAX around such a function
            raise KeyboardInterrupt from None
        _, mark, sentence = str(error).rpartition(_MARK)
        if not mark:
            raise
        failure = ValueError(sentence.splitlines()[0])
    else:
        return
    raise failure


def call_on_host(
    function: Callable[..., np.ndarray], shape: jax.ShapeDtypeStruct, *arguments: Any
) -> Any:
    """Call a NumPy function from a compiled program, for all points of a batch at once.

    No exception gets through a program: an interrupt of the function is remembered, and NaN its value.
    """
    num_axes = np.ndim(arguments[0])

    def called(x: Any, *more: Any) -> np.ndarray:
        try:
            return function(x, *more)
        except KeyboardInterrupt:
            interrupts.remember()
            batch = np.shape(x)[: np.ndim(x) - num_axes]
            return np.full((*batch, *shape.shape), np.nan, shape.dtype)

    return jax.pure_callback(called, shape, *arguments, vmap_method="broadcast_all")


class _Quiet(logging.Filter):
    """JAX logs what fails in a callback, with its traceback: the sentence is raised anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (
            record.exc_info and isinstance(record.exc_info[1], FunctionError | KeyboardInterrupt)
        )


logging.getLogger("jax._src.callback").addFilter(_Quiet())
