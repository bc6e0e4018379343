"""The front door: log Z of a model, with its error and whether to trust it.

    model -> path -> schedule -> anneal -> Run -> Estimate

The forward run may come in parts, each with its own chains: if its time is limited, so that it can stop
between them (`length.py`); if it misses a wanted error, so that more chains can be added (`runner.py`).
With `client=` all runs go to the workers of a cluster.
"""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.failures import plainly
from annealz.core.names import DEFAULT_SCHEDULE
from annealz.core.random import derive_seed
from annealz.diagnostics.findings import Finding, Kind
from annealz.engine.anneal import Progress
from annealz.engine.blocks import check_memory
from annealz.engine.cluster.current import clustered
from annealz.engine.progress import begin, in_stage
from annealz.engine.resampling import Resampling, island_size
from annealz.engine.reverse import check_start
from annealz.io.storage.lock import alone, holding
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.annealing.length import TIME_RESERVE, Length, choose_length, part_width
from annealz.methods.annealing.options import DEFAULT_NUM_CHAINS, Options
from annealz.methods.annealing.runner import Observe, Runner, observers_of, read_estimate
from annealz.methods.folder import RunFolder
from annealz.methods.placed import placed, well_placed
from annealz.methods.problem import Problem, choose_problem
from annealz.methods.problem_arrays import check_model
from annealz.methods.settings import (
    AnnealAsked,
    AnnealSettings,
    ExchangedDraws,
    ExchangeSettings,
    Given,
)
from annealz.methods.shown import shown
from annealz.models.abstract import AbstractModel
from annealz.models.formats.load import load_model
from annealz.paths.abstract import AbstractPath
from annealz.pilots.plan import check_schedule
from annealz.pilots.sizing import Forecast, time_steps
from annealz.pilots.trace_draws import (
    base_of_rows,
    is_trace,
    rows_of_trace,
    spread_over,
)
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DEFAULT_NUM_CHAINS", "estimate_log_z", "resume"]

_SEARCH_TIME = 0.5  # of a time limit: after it no further base is tried
_DRAW_SHARE, _LEAST_DRAW_SWEEPS = 0.1, 100  # sweeps at beta = 1, of the steps of the run

OnProgress = Callable[[Progress], None] | None


@plainly
@clustered
@well_placed
@shown
@alone
def estimate_log_z(
    model: AbstractModel | str | Path,
    *,
    schedule: str | Path | Schedule | np.ndarray = DEFAULT_SCHEDULE,
    num_steps: int | None = None,
    num_chains: int | None = None,
    base: str | AbstractBase = "auto",
    data: Any = None,
    marginal: str | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | str | None = None,
    target_std_err: float | None = None,
    max_seconds: float | None = None,
    resample: float | None = None,
    two_sided: bool = False,
    second_opinion: bool = True,
    draws: Any = None,
    along: Any = None,
    seed: int = 0,
    observe: Observe | None = None,
    record_every: int | None = None,
    chunk_steps: int | None = None,
    out: str | Path | None = None,
    force: bool = False,
    checkpoint_seconds: float = 15.0,
    exact_log_z: float | None = None,
    client: "Client | None" = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_forecast: Callable[[Forecast], None] | None = None,
) -> Estimate:
    """log Z of a model by annealed importance sampling.

    Parameters
    ----------
    model : a model, the name of a packaged one, a file, or module:name of a Python object
    schedule : a name (mixing, linear, sm08, gms13, varopt, varopt-0.009, varopt-fixed-point), a file,
        an array of betas, or a Schedule. The pilot that some names need is charged, and uses random
        streams of its own.
    num_steps : K; 10,000 by default; with `target_std_err`, and of a density, what the survey predicts.
        Where neither steps nor chains are given, nor a base, a schedule or another wish, a model that
        anneals at most 10 binary units takes a simpler way: its exact log Z instead of a search for bases
        and a second opinion, and 1,000 steps, or more where the survey predicts that they are needed.
    num_chains : N; 1,000 by default, of a density 256
    base : where the path starts: a base, or a name that the model knows; of an RBM base-rate, uniform,
        visible-bias, fitted, auto. auto is the base rate where the data's means are known; elsewhere, of
        models with several bases, pilots look for the mass and choose, as they do with fitted.
    data : training data (rows, visible) or their means (visible,), for the base rate
    marginal : the layer that is annealed, visible or hidden, of a model that has both; the other is summed
        out. By default the model's first, of an RBM the visible one.
    path : a path that ends in the model, instead of the model's own; its base is its own
    kernel : the transition, instead of the model's own, or its name: clusters or gibbs of Ising and Potts
        models, gradient or gibbs of a DiscreteDensity
    target_std_err : the standard error wanted, instead of `num_chains`. Survey and sizing runs
        predict the steps and chains that it takes; they are charged as pilot and enter no weight. A
        run that misses it is extended once. What a million chains cannot reach is refused.
    max_seconds : a limit to pilot and run together. The run is cut to fit, and where time runs out
        earlier it ends with the chains that are done.
    resample : resample islands of chains whose ESS falls below this share of them (annealed SMC)
    two_sided : anneal in reverse as well, from draws of the target: exact ones where a layer can be
        enumerated, else the last states of the forward run, resampled and swept on (approximate).
        log Z is then BAR's, between bounds from both sides.
    second_opinion : anneal a tenth as many chains from a second, unlike base as well, where the model has
        one. An estimate that they contradict is never ok.
    draws : draws of the target to start the reverse run from, (num_chains, variables); of a density also a
        trace of its parameters as it is (ArviZ, NumPyro, PyMC, or {name: (chains, draws, ...)}), half of
        which then fits the base, unless one is given; or "exchange", which takes them from replica
        exchange of as many sweeps as the run has steps, charged
    along : betas at which log Z of p*_beta is wanted too, from the same run
    seed : all randomness is a function of it
    observe : functions of the annealed variables (chains, ...), or observers, by name; their weighted
        means and variances along the path are in `trace`
    record_every : steps between records of the trace; about 1000 records by default
    chunk_steps : steps between returns to the host; changes no bit of the result
    out : folder for checkpoints and results; `resume(out)` continues after an interruption
    force : overwrite a run that `out` already holds
    checkpoint_seconds : seconds between checkpoints
    exact_log_z : the exact value to show beside the estimate. By default what the model file
        records, or what can be enumerated in no time.
    client : a `dask.distributed.Client`, whose workers then compute all runs (docs/scale.md). Neither
        their number nor the loss of some changes a bit of the result.
    progress : show a live bar with the time left and the ESS, in a notebook or a terminal
    on_progress : called with a Progress after every chunk, and where a stage begins
    on_forecast : called before the run with what a wanted standard error should take

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> estimate = annealz.estimate_log_z(model, num_steps=100, num_chains=100)
    >>> abs(estimate.log_z - annealz.exact_log_z(model)) < 4 * estimate.std_err
    True
    >>> both = annealz.estimate_log_z(
    ...     model, schedule="linear", num_steps=100, num_chains=100, two_sided=True
    ... )
    >>> both.two_sided.lower < both.two_sided.upper
    True
    >>> means = annealz.estimate_log_z(
    ...     model, schedule="linear", num_steps=100, num_chains=100, observe={"means": lambda v: v}
    ... )
    >>> means.trace.means["means"].shape  # of the units, at the recorded steps
    (100, 6)
    """
    began = time.monotonic()
    options = Options(
        num_steps=num_steps,
        num_chains=num_chains,
        target_std_err=target_std_err,
        max_seconds=max_seconds,
        resample=resample,
        two_sided=two_sided,
        second_opinion=second_opinion,
        draws=draws,
        along=along,
        seed=seed,
        record_every=record_every,
        checkpoint_seconds=checkpoint_seconds,
    )
    independent = None
    if is_trace(draws):
        options, base, independent = _traced(model, options, base, path)
    observers = observers_of(observe)
    asked = AnnealAsked(
        model=str(model) if isinstance(model, str | Path) else None,
        map=getattr(model, "map", None) if isinstance(model, str) else None,
        schedule=str(schedule) if isinstance(schedule, str | Path) else None,
        num_steps=options.num_steps,
        num_chains=options.num_chains,
        base=base if isinstance(base, str) else None,
        data=data is not None,
        marginal=marginal,
        kernel=kernel if isinstance(kernel, str) else None,
        observe=sorted(map(str, observe or ())),
    )
    is_object = kernel is not None and not isinstance(kernel, str)
    given = Given(path=path is not None, kernel=is_object, base=not isinstance(base, str))
    begin(on_progress, "base")
    problem = choose_problem(
        model, base=base, data=data, marginal=marginal, path=path, kernel=kernel
    )
    options = dataclasses.replace(options, usual_chains=problem.model.usual_chains)
    if options.is_default and asked.is_default and not given.names:
        problem = problem.simple()
    folder = None if out is None else RunFolder(out)
    if folder is not None:
        folder.check(force)
    steps = check_schedule(schedule, options.num_steps)
    problem = _prepared(problem, steps, options, on_progress, began)
    spent = max(problem.pilot_seconds, time.monotonic() - began)
    length = choose_length(problem, schedule, options, spent, on_progress, on_forecast)
    problem = problem.charged(length.sweeps, length.seconds, length.starts)
    if max_seconds is not None:  # all that was done counts, reading and compiling too
        unseen = time.monotonic() - began - problem.pilot_seconds
        problem = problem.charged(0, max(unseen, 0.0))
    start, of_draws = _draws(problem, length, options, given, on_progress)
    of_draws["independent_draws"] = independent
    second = problem.second_schedule(length.schedule)
    problem = problem.with_exact(exact_log_z)
    known, findings = problem.exact_log_z, problem.findings
    if problem.is_unconfirmed and second_opinion and known is None:
        findings = (*findings, Finding.of(Kind.UNCONFIRMED, limit=max_seconds))
    settings = AnnealSettings(
        **problem.described(given),
        **of_draws,
        asked=asked,
        num_chains=length.num_chains,
        wanted_chains=length.num_chains if target_std_err is not None else options.chains,
        target_std_err=target_std_err,
        max_seconds=max_seconds,
        part_chains=length.part_chains,
        resample=resample,
        two_sided=two_sided,
        second_opinion=second_opinion,
        second=problem.second_base,
        base_reason=problem.base_reason,
        rounding=problem.rounding,
        whole_seconds=None if max_seconds is None else length.whole_seconds,
        wanted_steps=length.wanted_steps,
        offset=problem.offset,
        pilot_findings=[finding.to_record() for finding in findings] or None,
        can_enumerate=problem.model.has_exact_draws,
        takes_data=problem.model.takes_data,
        along=options.along,
        seed=options.seed,
        record_every=options.record_every,
        checkpoint_seconds=checkpoint_seconds,
        exact_log_z=known,
        pilot_sweeps=problem.pilot_sweeps,
        pilot_seconds=problem.pilot_seconds,
    )
    if folder is not None:
        folder.create(settings, problem, length.schedule, start, second)
    runner = Runner(
        settings,
        problem,
        length.schedule,
        observers,
        chunk_steps,
        folder,
        on_progress,
        second,
    )
    return runner.estimate(start)


@plainly
@clustered
@shown
def resume(
    out: str | Path,
    *,
    model: AbstractModel | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
    observe: Observe | None = None,
    chunk_steps: int | None = None,
    client: "Client | None" = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Estimate:
    """Resume the run in a folder, to the same bits as if it had never stopped.

    `observe` must be what the run was started with, and so must a model, path or kernel that the folder
    cannot hold, because it is not one of annealz's own. A finished run is only read; with its model it has
    an entropy, and that of a density its posterior. With `client` the workers of a Dask cluster compute
    it, whether or not they did before. `progress` shows a live bar in a notebook or a terminal.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(
    ...     random_rbm(4, 6), schedule="linear", num_steps=100, num_chains=100, out="run"
    ... )
    >>> annealz.resume("run").log_z == estimate.log_z  # done already; after Ctrl-C it continues
    True
    """
    given: dict[str, Any] = {"model": model, "path": path, "kernel": kernel}
    folder = RunFolder(out)
    asked = folder.inputs()[0]
    check_model(model, asked, f"in {folder.path}")  # of a finished run too, which is only read
    if isinstance(asked, ExchangeSettings):  # another kind of run, and of result
        from annealz.methods.exchange.log_z import resume_exchange

        return resume_exchange(out, **given, chunk_sweeps=chunk_steps, on_progress=on_progress)  # pyright: ignore
    if folder.is_done():
        return read_estimate(folder, **given)
    with holding(folder.path):
        settings, schedule, start = folder.inputs()  # as they are now that no other process writes
        assert isinstance(settings, AnnealSettings)
        if folder.is_done():
            return read_estimate(folder, **given)
        problem = folder.problem(settings, **given)
        with placed(problem.model, settings.asked.num_chains):  # as when it began
            observers = observers_of(observe)
            second = folder.second_schedule()
            runner = Runner(
                settings, problem, schedule, observers, chunk_steps, folder, on_progress, second
            )
            return runner.estimate(start)


def _prepared(
    problem: Problem, steps: int, options: Options, on_progress: OnProgress, began: float
) -> Problem:
    """The problem with base and kernel chosen; what the run cannot do is refused before pilots run."""
    num_chains, draws = options.chains, options.draws
    if not problem.is_simple:
        check_memory(problem.states, num_chains)
    if options.resample is not None:
        Resampling(options.resample, island_size(num_chains))
    if draws is not None and not options.are_exchanged:
        check_start(problem.path, draws, num_chains, "draws")
    is_searching = problem.is_open or options.second_opinion
    begin(on_progress, "base" if is_searching else "tuning")
    limit = options.max_seconds
    is_density = problem.is_open and bool(
        problem.model.searched_bases
    )  # its kernel is not tuned yet
    is_searched = problem.is_searched(options.second_opinion) and not is_density
    if limit is not None and is_searched:  # pilots keep it too
        width = part_width(num_chains)
        paced = time_steps(problem.states, problem.kernel, width, options.seed)
        share = TIME_RESERVE * limit / (paced.pace * steps * num_chains)
        steps = max(int(min(share, 1.0) * steps), 1)
        problem = problem.charged(paced.sweeps, paced.spent, paced.starts)
    return problem.prepared(
        options.seed,
        steps,
        num_chains,
        second_opinion=options.second_opinion,
        on_progress=on_progress,
        deadline=None if limit is None else began + _SEARCH_TIME * limit,
    )


def _traced(
    model: AbstractModel | str | Path,
    options: Options,
    base: str | AbstractBase,
    path: AbstractPath | None,
) -> tuple[Options, str | AbstractBase, int]:
    """The options with states instead of a trace, the base that half of it gives, and how many rows."""
    found = model if isinstance(model, AbstractModel) else load_model(model)
    options = dataclasses.replace(options, usual_chains=found.usual_chains)
    is_fitted = path is None and isinstance(base, str) and base == "auto"
    rows = rows_of_trace(found, options.draws, is_fitted=is_fitted)
    states, independent = spread_over(rows.reverse, options.chains)
    base = base_of_rows(rows.fit) if is_fitted else base
    return dataclasses.replace(options, draws=states), base, independent


def _draws(
    problem: Problem, length: Length, options: Options, given: Given, on_progress: OnProgress
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """Where a reverse run starts, if that is known before the run, and what its settings hold of it."""
    num_chains, num_steps = length.num_chains, length.schedule.num_steps
    if not options.two_sided:
        return None, {}
    if options.are_exchanged:
        from annealz.methods.exchange.exchange import exchange
        from annealz.methods.exchange.ladder import LEAST_SWEEPS

        begin(on_progress, "draws")
        drawn = exchange(
            problem.states,
            problem.kernel,
            num_sweeps=max(num_steps, LEAST_SWEEPS),
            num_draws=num_chains,
            seed=derive_seed(options.seed, "exchange draws"),
            on_progress=in_stage(on_progress, "draws"),
        )
        known = ExchangedDraws(status=drawn.status.value, messages=list(drawn.messages))
        start = check_start(problem.path, drawn.draws, num_chains, "draws")
        spent = drawn.beside(problem.kernel.evaluations) or None
        found = {"draws": "exchange", "draw_sweeps": drawn.sweeps, "draw_evaluations": spent}
        return start, {**found, "exchange": known}
    if options.draws is not None:
        start = check_start(problem.path, options.draws, num_chains, "draws")
        return start, {"draws": "given", "draw_sweeps": 0}
    if not given.path and problem.model.has_exact_draws:  # the layer of a given path is not known
        spent = problem.model.num_enumerated or None
        return None, {"draws": "exact", "draw_sweeps": 0, "draw_evaluations": spent}
    sweeps = max(_LEAST_DRAW_SWEEPS, int(_DRAW_SHARE * num_steps))
    return None, {"draws": "approximate", "draw_sweeps": sweeps * num_chains}
