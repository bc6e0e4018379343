"""log Z of a model by replica exchange: model -> path -> rounds -> ExchangeEstimate."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annealz.bases.abstract import AbstractBase
from annealz.core.failures import plainly
from annealz.core.random import check_seed
from annealz.engine.anneal import Progress
from annealz.engine.blocks import check_memory
from annealz.engine.cluster.current import clustered
from annealz.engine.progress import begin
from annealz.io.storage.lock import alone, holding
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.exchange.estimate import ExchangeEstimate
from annealz.methods.exchange.exchange import check_counts, exchange
from annealz.methods.exchange.folder import ExchangeFolder
from annealz.methods.exchange.ladder import check_ladder
from annealz.methods.placed import placed, well_placed
from annealz.methods.problem import Problem, choose_problem
from annealz.methods.settings import Asked, ExchangeSettings, Given
from annealz.methods.shown import shown
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["exchange_log_z", "read_exchange", "resume_exchange"]


@plainly
@clustered
@well_placed
@shown
@alone
def exchange_log_z(
    model: AbstractModel | str | Path,
    *,
    num_rungs: int = 32,
    num_ensembles: int = 32,
    num_sweeps: int = 10_000,
    num_draws: int = 0,
    base: str | AbstractBase = "auto",
    data: Any = None,
    marginal: str | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | str | None = None,
    seed: int = 0,
    chunk_sweeps: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    checkpoint_seconds: float = 15.0,
    exact_log_z: float | None = None,
    client: "Client | None" = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> ExchangeEstimate:
    """log Z of a model by replica exchange.

    Parameters
    ----------
    model : a model, the name of a packaged one, a file, or module:name of a Python object
    num_rungs : betas from 0 to 1, one replica at each
    num_ensembles : independent copies of the ladder, from which the error comes; at least 5
    num_sweeps : of every replica, in all rounds together; the last round has half of them
    num_draws : draws of the model to keep in `exchange.draws`
    base : where the path starts: a base, or a name that the model knows; of an RBM base-rate, uniform,
        visible-bias, auto
    data : training data (rows, visible) or their means (visible,), for the base rate
    marginal : the layer whose states are moved, of a model that has several; the other is summed out
    path : a path that ends in the model, instead of the model's own; its base is its own
    kernel : the transition, instead of the model's own, or its name: clusters or gibbs of Ising and Potts
        models, gradient or gibbs of a DiscreteDensity
    seed : all randomness is a function of it
    chunk_sweeps : sweeps between returns to the host; changes no bit of the result
    out : folder for checkpoints and results; `annealz.resume(out)` resumes after an interruption
    force : overwrite a run that `out` already holds
    checkpoint_seconds : seconds between checkpoints
    exact_log_z : the exact value to compare with. By default what the model file records, or what can
        be enumerated in no time.
    client : a `dask.distributed.Client`, whose workers then compute all runs (docs/scale.md)
    progress : show a live bar with the time left, in a notebook or a terminal
    on_progress : called with a Progress after every chunk, and where a stage begins

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> estimate = annealz.exchange_log_z(
    ...     model, base="uniform", num_rungs=6, num_ensembles=16, num_sweeps=400
    ... )
    >>> abs(estimate.log_z - annealz.exact_log_z(model)) < 5 * estimate.std_err
    True
    """
    num_rungs, num_ensembles, num_sweeps, num_draws = check_counts(
        num_rungs, num_ensembles, num_sweeps, num_draws, chunk_sweeps
    )
    seed = check_seed(seed)
    asked = Asked(
        model=str(model) if isinstance(model, str | Path) else None,
        map=getattr(model, "map", None) if isinstance(model, str) else None,
        base=base if isinstance(base, str) else None,
        data=data is not None,
        marginal=marginal,
        kernel=kernel if isinstance(kernel, str) else None,
    )
    is_object = kernel is not None and not isinstance(kernel, str)
    given = Given(path=path is not None, kernel=is_object, base=not isinstance(base, str))
    began = time.monotonic()
    begin(on_progress, "base")
    problem = choose_problem(
        model, base=base, data=data, marginal=marginal, path=path, kernel=kernel
    )
    is_fitted = getattr(problem.path.base, "evaluations", 0) > 0
    fit_seconds = time.monotonic() - began if is_fitted else 0.0
    rows = num_rungs * num_ensembles
    check_memory(problem.path, rows, "num_ensembles x num_rungs")  # before a pilot, not after
    folder = None if out is None else ExchangeFolder(out)
    if folder is not None:
        folder.check(force)
    begin(on_progress, "tuning")
    problem = problem.prepared(seed, num_sweeps, rows, on_progress=on_progress)
    problem = problem.with_exact(exact_log_z)
    settings = ExchangeSettings(
        **problem.described(given),
        asked=asked,
        num_rungs=num_rungs,
        num_ensembles=num_ensembles,
        num_sweeps=num_sweeps,
        num_draws=num_draws,
        seed=seed,
        target_std_err=None,
        checkpoint_seconds=checkpoint_seconds,
        exact_log_z=problem.exact_log_z,
        pilot_sweeps=problem.pilot_sweeps,
        pilot_seconds=problem.pilot_seconds + fit_seconds,
    )
    if folder is not None:
        folder.create(settings, problem, Schedule(check_ladder(None, num_rungs), "first ladder"))
    return _estimate(settings, problem, folder, chunk_sweeps, on_progress)


@shown
def resume_exchange(
    out: str | Path,
    *,
    model: AbstractModel | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
    chunk_sweeps: int | None = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> ExchangeEstimate:
    """Resume the run in a folder, to the same bits as if it had never stopped."""
    folder = ExchangeFolder(out)
    folder.inputs()  # refuses what is not a run
    if folder.is_done():
        return read_exchange(folder)
    with holding(folder.path):
        settings = folder.own_settings()  # as they are now that no other process writes
        if folder.is_done():
            return read_exchange(folder)
        problem = folder.problem(settings, model=model, path=path, kernel=kernel)
        with placed(problem.model, None):  # as when it began
            return _estimate(settings, problem, folder, chunk_sweeps, on_progress)


def read_exchange(folder: ExchangeFolder) -> ExchangeEstimate:
    """The estimate of a finished run; nothing is run."""
    folder.check_done()
    return ExchangeEstimate(folder.own_settings(), folder.exchange())


def _estimate(
    settings: ExchangeSettings,
    problem: Problem,
    folder: ExchangeFolder | None,
    chunk_sweeps: int | None,
    on_progress: Callable[[Progress], None] | None,
) -> ExchangeEstimate:
    names = ("num_rungs", "num_ensembles", "num_sweeps", "num_draws", "seed", "checkpoint_seconds")
    begin(on_progress, "exchange")
    result = exchange(
        problem.states,
        problem.kernel,
        **{name: getattr(settings, name) for name in names},
        chunk_sweeps=chunk_sweeps,
        checkpoint=None if folder is None else folder.checkpoint_of("part-1"),
        on_progress=on_progress,
    )
    estimate = ExchangeEstimate(settings, result)
    if folder is None:
        return estimate
    try:
        folder.finish_exchange(result, estimate.to_dict())
    except OSError as error:
        return estimate.with_message(
            f"could not save the result to {folder.path}: {error.strerror or error}."
        )
    return estimate
