"""log Z of a density by nested sampling: prior and likelihood -> runs -> NestedEstimate."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.numerics import whole_number
from annealz.core.random import check_seed
from annealz.core.versions import versions
from annealz.diagnostics.nested_runs import judge_nested
from annealz.engine.anneal import Progress
from annealz.engine.progress import begin, in_stage
from annealz.methods.hints import hint
from annealz.methods.nested.estimate import NestedEstimate
from annealz.methods.nested.nested import nested
from annealz.methods.nested.result import NestedRun
from annealz.methods.nested.settings import NestedSettings
from annealz.methods.nested.target import Target
from annealz.methods.placed import well_placed
from annealz.methods.shown import shown
from annealz.models.abstract import AbstractModel
from annealz.models.formats.load import read_model
from annealz.models.log_density import LogDensity

__all__ = ["nested_log_z"]

_USUAL_LIVE = 500
_LIVE_PER_VARIABLE = 4  # in each run, by default
_LEAST_LIVE = 20  # in each run
_STEPS_PER_VARIABLE, _LEAST_STEPS = 5, 10
_SHARE_DELETED = 5


@well_placed
@shown
def nested_log_z(
    model: AbstractModel | str | Path,
    *,
    num_live: int | None = None,
    num_runs: int = 4,
    num_delete: int | None = None,
    num_inner_steps: int | None = None,
    tolerance: float = 1e-2,
    max_evaluations: int | None = None,
    base: str | AbstractBase = "auto",
    seed: int = 0,
    exact_log_z: float | None = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> NestedEstimate:
    """log Z of a density by nested sampling, which needs a prior and no gradients.

    Parameters
    ----------
    model : a density with a prior, such as `from_prior` and `from_numpyro` make, or module:name of one
    num_live : live points, shared evenly by the runs; by default 500, or 4 per variable and run if more.
        The error falls as the square root of it, the cost rises in proportion.
    num_runs : independent runs, which are compared; their points are merged
    num_delete : points of a run that die at once; by default a fifth of its live points. More of them use
        the machine better; the error hardly changes.
    num_inner_steps : slices from a live point to a new one; by default 5 per variable, at least 10
    tolerance : a run ends where all prior mass that is left, at the highest likelihood found, would add
        less than this share of the evidence
    max_evaluations : of the density, in all runs; an estimate that needs more is unreliable
    base : a normalised prior, instead of the model's own: for a density that has none, a `GaussianBase`
        that is wider than it, or a name that the model knows
    seed : all randomness is a function of it
    exact_log_z : the exact value to compare with
    progress : show a live bar, in a notebook or a terminal
    on_progress : called with a Progress as the runs go

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -50 * jnp.sum((x - 0.5) ** 2), dim=2, name="bump")
    >>> prior = annealz.GaussianBase.standard(2)
    >>> estimate = annealz.nested_log_z(model, base=prior, num_live=100, num_inner_steps=5)
    >>> abs(estimate.log_z - -2.7673) < 5 * estimate.std_err  # log of 2 pi / 100
    True
    """
    began, seed = time.monotonic(), check_seed(seed)
    found, name = _density(model)
    prior = _prior(found, base)
    runs = _count("num_runs", num_runs, 1)
    live = _live(num_live, runs, found.dim)
    delete = max(1, live // _SHARE_DELETED) if num_delete is None else num_delete
    delete = _count("num_delete", delete, 1)
    if delete > live // 2:
        raise ValueError(
            f"num_delete must be at most half of the {live} live points of a run, got {delete}."
        )
    usual = max(_LEAST_STEPS, _STEPS_PER_VARIABLE * found.dim)
    steps = _count("num_inner_steps", usual if num_inner_steps is None else num_inner_steps, 1)
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must lie between 0 and 1, got {tolerance}.")
    limit = None
    if max_evaluations is not None:
        limit = _count("max_evaluations", max_evaluations, live * runs)
    settings = NestedSettings(
        model=name,
        model_digest=found.digest,
        asked=str(model) if isinstance(model, str | Path) else None,
        base=getattr(prior, "name", "prior"),
        base_digest=prior.digest,
        is_given=not isinstance(base, str),
        asked_base=base if isinstance(base, str) and base != "auto" else None,
        num_live=live * runs,
        num_runs=runs,
        num_delete=delete,
        num_inner_steps=steps,
        tolerance=float(tolerance),
        max_evaluations=limit,
        seed=seed,
        exact_log_z=None if exact_log_z is None else float(exact_log_z),
        versions=versions(),
        num_checked=found.num_checked,
    )
    made = _runs(Target(found, prior.unnamed()), settings, live, on_progress)
    judgement = judge_nested(made, seed=seed, num_inner_steps=steps, limit=limit)
    return NestedEstimate(
        settings, made, judgement, found.parameters, seconds=time.monotonic() - began
    )


def _runs(
    target: Target,
    settings: NestedSettings,
    live: int,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[NestedRun, ...]:
    """Each with a stream of its own; what one leaves of the evaluations goes to the others."""
    made: list[NestedRun] = []
    for i in range(settings.num_runs):
        left = None
        if settings.max_evaluations is not None:
            spent = sum(one.evaluations for one in made)
            left = (settings.max_evaluations - spent) // (settings.num_runs - i)
        begin(on_progress, "nested", i + 1, settings.num_runs)
        made.append(
            nested(
                target,
                num_live=live,
                num_delete=settings.num_delete,
                num_inner_steps=settings.num_inner_steps,
                tolerance=settings.tolerance,
                seed=settings.seed,
                purpose=f"nested {i + 1}",
                max_evaluations=left,
                on_progress=in_stage(on_progress, "nested", i + 1, settings.num_runs),
            )
        )
    return tuple(made)


def _density(model: Any) -> tuple[LogDensity, str]:
    """The model, if it is a density over real variables, and what results call it."""
    found, record = read_model(model) if isinstance(model, str | Path) else (model, {})
    if not isinstance(found, AbstractModel):
        raise ValueError(f"model must be an annealz model, a name or a file, got {hint(found)}.")
    if not isinstance(found, LogDensity):
        raise ValueError(
            f"nested sampling takes a density over real variables (LogDensity), got {found.name}: take "
            "annealing or replica exchange for it."
        )
    found.check()
    return found, record.get("name", found.name)


def _prior(model: LogDensity, base: str | AbstractBase) -> AbstractBase:
    """The base that is given, or the model's prior."""
    if isinstance(base, AbstractBase):
        return model.choose_base(base)
    if not isinstance(base, str):
        raise ValueError(f"base must be a base or the name of one, got {type(base).__name__}.")
    if base != "auto":
        return model.choose_base(base)
    if model.prior is None:
        raise ValueError(
            f"nested sampling needs a normalised prior, and {model.name} has none: make the model by "
            "annealz.from_prior or annealz.from_numpyro, or give base=, a GaussianBase that is wider than "
            "the density."
        )
    return model.prior


def _live(num_live: int | None, num_runs: int, dim: int) -> int:
    """Live points of each run."""
    if num_live is None:
        return max(_USUAL_LIVE // num_runs, _LIVE_PER_VARIABLE * dim, _LEAST_LIVE)
    least = max(_LEAST_LIVE, 2 * dim)
    return _count("num_live", num_live, least * num_runs) // num_runs


def _count(name: str, value: Any, least: int) -> int:
    """A whole number, at least so large."""
    number = whole_number(name, value)
    if isinstance(value, bool | np.bool_) or number < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}.")
    return number
