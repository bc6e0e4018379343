"""What is annealed, as named arrays and a JSON record: model, base and kernel where they can be stored."""

import dataclasses
from typing import Any

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.arrays import on_device
from annealz.io.storage.families import restore, store
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.problem import Problem
from annealz.methods.settings import ProblemSettings
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath

__all__ = ["check_model", "problem_from_arrays", "problem_to_arrays"]

_KINDS = {
    "model": AbstractModel,
    "base": AbstractBase,
    "second": AbstractBase,
    "kernel": AbstractKernel,
    "second-kernel": AbstractKernel,
}


def problem_to_arrays(problem: Problem) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of what can be stored of it."""
    arrays: dict[str, np.ndarray] = {}
    records: dict[str, Any] = {}
    things = {"model": problem.model, "base": problem.path.base, "kernel": problem.kernel}
    if problem.second_path is not None:
        things["second"] = problem.second_path.base
    if problem.second_kernel is not None:
        things["second-kernel"] = problem.second_kernel
    for name, thing in things.items():
        stored = store(thing)
        if stored is not None:
            arrays |= {f"{name}:{key}": array for key, array in stored[0].items()}
            records[name] = stored[1]
    return arrays, records


def problem_from_arrays(
    arrays: dict[str, np.ndarray],
    records: dict[str, Any],
    settings: ProblemSettings,
    *,
    where: str,
    model: AbstractModel | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
) -> Problem:
    """The problem as it was given; what could not be stored must be given again.

    `where` the run is, for messages.
    """

    def stored(name: str) -> Any:
        if name not in records:
            return None
        start = f"{name}:"
        own = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
        found = restore(own, records[name])
        if not isinstance(found, _KINDS[name]):
            raise ValueError(
                f"the run {where} is damaged: it holds a {type(found).__name__} as its {name}."
            )
        return found

    given, model = model, stored("model") or model
    source = settings.source
    if model is None and source:
        raise ValueError(
            f"the run {where} is of a model imported from {source}, and nothing is imported on the word "
            f"of a file: if the module is yours, give it again with --model {source} (model=model)."
        )
    if model is not None:
        model.check()
    if model is None:
        raise ValueError(
            f"the run {where} is of {settings.model}, a model that cannot be stored: give it again, "
            "model=model."
        )
    for one in (model, given):
        check_model(one, settings, where)
    for name, one in (("path", path), ("kernel", kernel)):
        if one is None and getattr(settings.given, name) and name not in records:
            raise ValueError(
                f"the run {where} was given a {name} that cannot be stored: give it again, "
                f"{name}={name}."
            )
    if path is None:
        base = stored("base")
        if base is None and settings.given.base:
            raise ValueError(
                f"the run {where} was given a base that cannot be stored: give the path that starts from "
                "it, path=path."
            )
        if base is None:
            try:
                base = model.choose_base(settings.base)
            except ValueError:  # a name that the base gave itself
                base = model.choose_base("auto")
            base = _with_offset(base, settings)
        path = model.path(base, settings.marginal or model.marginals[0])
    move: AbstractKernel = stored("kernel") or kernel or model.kernel()
    second = stored("second")
    if second is None and getattr(getattr(settings, "second", None), "base", None) == "prior":
        second = _with_offset(model.choose_base("prior"), settings)
    layer = settings.marginal or model.marginals[0]
    return Problem(
        model,
        settings.model,
        path,
        move,
        settings.marginal,
        is_own_path=not settings.given.path,
        second_path=None if second is None else model.path(second, layer),
        second_kernel=stored("second-kernel"),
    )


def _with_offset(base: Any, settings: ProblemSettings) -> Any:
    """A base that could not be stored, with the offset that it had."""
    offset = getattr(settings, "offset", None)
    if offset is None or not hasattr(base, "offset"):
        return base
    return dataclasses.replace(base, offset=on_device(np.float32(offset)))


def check_model(model: AbstractModel | None, settings: ProblemSettings, where: str) -> None:
    """Refuse a model that is not the one of the run."""
    if model is not None and model.digest != settings.model_digest:
        raise ValueError(
            f"the run {where} is of another model than the one given: give {settings.model} as it was."
        )
