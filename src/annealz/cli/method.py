"""`annealz estimate --method`: which options fit which method."""

from __future__ import annotations

import typer

from annealz.core.names import METHODS

__all__ = ["check_method"]

_JOINED = "neighbouring temperatures are joined from both sides already"
_ALONE = "it runs in this process, and keeps no checkpoints"
_UNFIT = {
    "exchange": {
        "schedule": "a ladder of its own takes the place of a schedule",
        "chains": "it has --rungs times --ensembles of them",
        "target_std_err": "take more --steps or --ensembles for a smaller error",
        "max_seconds": "--steps and --ensembles decide how long it takes",
        "two_sided": _JOINED,
        "draws": _JOINED,
        "second_opinion": "round trips and its ensembles are its own evidence",
        "resample": "replicas exchange their temperatures instead",
        "along": "log Z is known at its own temperatures",
    },
    "nested": {
        "schedule": "it has no temperatures",
        "steps": "it ends by itself; --inner-steps is the length of its walks",
        "chains": "it has --live points",
        "target_std_err": "take more --live points for a smaller error",
        "max_seconds": "--max-evaluations limits its cost",
        "two_sided": "it goes one way only",
        "draws": "it goes one way only",
        "second_opinion": "its runs are compared with each other",
        "resample": "it has no chains that are weighted",
        "along": "it has no temperatures",
        "exact": "densities cannot be enumerated",
        "data": "they serve bases of binary layers",
        "marginal": "densities have no layers",
        "kernel": "it has walks of its own",
        "out": _ALONE,
        "force": _ALONE,
        "checkpoint_seconds": _ALONE,
        "cluster": _ALONE,
    },
}
"""Options that a method does not take, and why."""
_OWN = {
    "exchange": ("rungs", "ensembles"),
    "nested": ("live", "runs", "inner_steps", "max_evaluations"),
}


def check_method(context: typer.Context, method: str) -> str:
    """The method, if it is known; options that do not fit it are refused."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}.")
    for name, why in _UNFIT.get(method, {}).items():
        if _is_given(context, name):
            raise ValueError(
                f"{_option(name)} does not fit --method {method} ({why}): leave it out."
            )
    for owner, names in _OWN.items():
        for name in names if owner != method else ():
            if _is_given(context, name):
                raise ValueError(
                    f"{_option(name)} belongs to --method {owner}: add that, or leave it out."
                )
    return method


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")
