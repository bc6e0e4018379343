"""The front door: log Z of a model by any method.

model, request  ->  plan  ->  runs  ->  estimate
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.names import DEFAULT_SCHEDULE
from annealz.engine.context import Context
from annealz.engine.progress import Progress
from annealz.io.store import Store
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.annealing.method import Observe
from annealz.methods.method import AbstractMethod, find_method
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

if TYPE_CHECKING:
    from distributed import Client

    from annealz.methods.annealing.estimate import Estimate


def estimate_log_z(
    model: AbstractModel | str | Path,
    *,
    method: str | AbstractMethod = "annealing",
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
    observe: Observe | None = None,
    record_every: int | None = None,
    num_rungs: int = 32,
    num_ensembles: int = 32,
    num_draws: int = 0,
    num_live: int | None = None,
    num_runs: int = 4,
    num_delete: int | None = None,
    num_inner_steps: int | None = None,
    tolerance: float = 1e-2,
    max_evaluations: int | None = None,
    exact_log_z: float | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    force: bool = False,
    checkpoint_seconds: float = 15.0,
    chunk_steps: int | None = None,
    client: "Client | None" = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_forecast: Callable[[Any], None] | None = None,
) -> "Estimate":
    """Estimate log Z of a model, with its error and whether to trust it.

    Parameters
    ----------
    model : a model, the name of a packaged one, a file, or module:name of a Python object
    method : annealing; exchange, replica exchange between values of beta, for modes that annealing cannot
        join (returns an ExchangeEstimate); nested, nested sampling of a density with a prior (returns a
        NestedEstimate); or a method of another package. An argument that a method does not take is refused.
    schedule : a name (mixing, linear, sm08, gms13, varopt, varopt-0.009, varopt-fixed-point), a file,
        an array of betas, or a Schedule. The pilot that some names need is charged, and uses random
        streams of its own.
    num_steps : K; 10,000 by default; with `target_std_err`, and of a density, what the survey predicts.
        Of exchange the sweeps of every replica, in all rounds together, of which the last has half.
        Where neither steps nor chains are given, nor a base, a schedule or another wish, a model that
        anneals at most 10 binary units takes a simpler way: its exact log Z instead of a search for bases
        and a second opinion, and 1,000 steps, or more where the survey predicts that they are needed.
    num_chains : N; 1,000 by default, of a density 256
    base : where the path starts: a base, or a name that the model knows; of an RBM base-rate, uniform,
        visible-bias, fitted, auto. auto is the base rate where the data's means are known; elsewhere, of
        models with several bases, pilots look for the mass and choose, as they do with fitted. Of nested
        sampling a normalised prior instead of the model's own.
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
    observe : functions of the annealed variables (chains, ...), or observers, by name; their weighted
        means and variances along the path are in `trace`
    record_every : steps between records of the trace; about 1000 records by default
    num_rungs, num_ensembles : of exchange: betas from 0 to 1, one replica at each, and independent copies
        of the ladder, from which the error comes; at least 5
    num_draws : of exchange: draws of the model to keep in `exchange.draws`
    num_live : of nested: live points, shared evenly by the runs; by default 500, or 4 per variable and run
        if more. The error falls as the square root of it, the cost rises in proportion.
    num_runs : of nested: independent runs, which are compared; their points are merged
    num_delete : of nested: points of a run that die at once; by default a fifth of its live points
    num_inner_steps : of nested: slices to a new point; by default 5 per variable, at least 10
    tolerance : of nested: a run ends where all prior mass that is left, at the highest likelihood found,
        would add less than this share of the evidence
    max_evaluations : of nested: evaluations in all runs; an estimate that needs more is unreliable
    exact_log_z : the exact value to show beside the estimate. By default what the model file
        records, or what can be enumerated in no time.
    seed : all randomness is a function of it
    out : folder for checkpoints and results; `resume(out)` continues after an interruption
    force : overwrite a run that `out` already holds
    checkpoint_seconds : seconds between checkpoints
    chunk_steps : steps between returns to the host; changes no bit of the result
    client : a `dask.distributed.Client`, whose workers then compute all runs (docs/scale.md). Neither
        their number nor the loss of some changes a bit of the result.
    progress : show a live bar with the time left and the ESS, in a notebook or a terminal
    on_progress : called with a Progress after every chunk, and where a stage begins
    on_forecast : called with what lies ahead, to be printed: before the pilots of a slow function, and
        before the run where `target_std_err` is given

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> model = random_rbm(4, 6)
    >>> estimate = annealz.estimate_log_z(model, num_steps=100, num_chains=100)
    >>> abs(estimate.log_z - annealz.exact_log_z(model)) < 4 * estimate.std_err
    True
    """
    arguments = dict(locals())
    with Context.of(arguments) as context:
        chosen = find_method(arguments.pop("method"))
        plan = chosen.plan(chosen.request(arguments), context)
        context.create(plan)
        return context.finish(chosen.diagnose(plan, chosen.run(plan, context)))


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
) -> "Estimate":
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
    arguments = dict(locals())
    method = (
        Store(out).record().get("method")
    )  # refuses what is not a run, before anything is begun
    with Context.of(arguments, is_resumed=True) as context:
        chosen = find_method(method)
        plan = context.restored(chosen.plan_type, **arguments)
        return context.finish(chosen.diagnose(plan, chosen.run(plan, context)))
