"""Errors of a user's functions, on their way through compiled programs.

A function that a program calls on the host can only fail through the program, which reports the text of the
traceback as an error of its own. `plainly` finds the sentence in it, and raises that alone.
"""

import contextlib
import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

__all__ = ["FunctionError", "one_line", "plainly", "user_errors"]

P = ParamSpec("P")
R = TypeVar("R")


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
    """Raise an error of a user's function as one sentence."""
    try:
        yield
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        _, mark, sentence = str(error).rpartition(_MARK)
        if not mark:
            raise
        failure = ValueError(sentence.splitlines()[0])
    else:
        return
    raise failure


def plainly(function: Callable[P, R]) -> Callable[P, R]:
    """The function, of whose errors in a user's function only the sentence is raised."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (ValueError, jax.errors.JaxRuntimeError) as error:
            _, mark, sentence = str(error).rpartition(_MARK)
            if not mark:
                raise
            failure = ValueError(sentence.splitlines()[0])
        raise failure

    return wrapped


class _Quiet(logging.Filter):
    """JAX logs what fails in a callback, with its traceback: the sentence is raised anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], FunctionError))


logging.getLogger("jax._src.callback").addFilter(_Quiet())
