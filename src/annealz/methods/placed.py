"""Where a model is computed: a density that is too small for a GPU, on the CPU beside it.

A sweep of a density is some fifty small programs of a GPU, about 0.3 ms whatever their size. A core
computes about a million numbers in that time. So a density whose chains take less than a million numbers
per sweep goes to the CPU, also where there is a GPU. Programs of a CPU are compiled sooner, too. A device
that JAX was set to prefer is kept, and so is a cluster.
"""

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from annealz.core.devices import cpu, platform, preferred, preferring
from annealz.engine.cluster.current import current_cluster
from annealz.models.formats.load import load_model

__all__ = ["placed", "well_placed"]

Given = ParamSpec("Given")
Result = TypeVar("Result")

_NUMBERS = 1e6  # of a sweep of all chains, from which on a GPU is the quicker one


def placed(model: Any, num_chains: int | None) -> AbstractContextManager[Any]:
    """A context in which this model is computed where it is computed best."""
    if current_cluster() is not None or preferred() is not None or platform() != "gpu":
        return contextlib.nullcontext()
    size = getattr(model, "evaluation_size", None)
    if size is None or size * (num_chains or model.usual_chains) > _NUMBERS:
        return contextlib.nullcontext()
    beside = cpu()
    return contextlib.nullcontext() if beside is None else preferring(beside)


def well_placed(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """A function of a model, and of `num_chains`, computed where that is best."""

    @functools.wraps(function)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Result:
        model: Any = arguments[0] if arguments else options.get("model")
        with placed(_object(model), options.get("num_chains")):  # pyright: ignore[reportArgumentType]
            return function(*arguments, **options)

    return call


def _object(model: Any) -> Any:
    """The object that `module:name` names; others as they are, what is wrong with them is said later."""
    if (
        not isinstance(model, str)
        or ":" not in model
        or Path(model).exists()
        or platform() != "gpu"
    ):
        return model
    try:
        return load_model(model)
    except (ValueError, OSError):
        return model
