"""The front door: log Z of a model, with its error and whether to trust it.

    model -> path -> schedule -> anneal -> Run -> Estimate

The forward run may come in parts, each of chains of its own: where its time is limited, so that it can stop
between them; and where it missed a wanted error, so that it can go on (`sizing.py`). In a team of processes
(`distributed.py`) the first one does all this, and the others help with the runs (`runner.py`).
"""

import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealz.along import check_betas
from annealz.anneal import Progress
from annealz.bases.abstract import AbstractBase
from annealz.blocks import check_memory
from annealz.estimate import Estimate
from annealz.folder import RunFolder
from annealz.kernels.abstract import AbstractKernel
from annealz.lock import alone, holding
from annealz.models.abstract import AbstractModel
from annealz.names import DEFAULT_SCHEDULE, PILOTED
from annealz.paths.abstract import AbstractPath
from annealz.plan import check_schedule, plan_schedule
from annealz.problem import choose_problem
from annealz.random import check_seed, derive_seed
from annealz.replicas.exchange import exchange
from annealz.replicas.ladder import LEAST_SWEEPS
from annealz.replicas.log_z import resume_exchange
from annealz.resampling import Resampling, island_size
from annealz.reverse import check_start
from annealz.runner import Observe, Runner, observers_of, read_estimate
from annealz.schedules.choose import DEFAULT_NUM_STEPS
from annealz.schedules.mixing import mixing
from annealz.schedules.schedule import Schedule
from annealz.show.live import shown
from annealz.sizing import Forecast, Timing, forecast, time_steps
from annealz.stages import begin, in_stage
from annealz.stated import ROUNDING
from annealz.together import together
from annealz.versions import versions

__all__ = ["DEFAULT_NUM_CHAINS", "estimate_log_z", "resume"]

DEFAULT_NUM_CHAINS = 1000
_LEAST_CHAINS = 250  # that a time limit leaves, before it shortens the chains
_NUM_PARTS = 4  # of a run whose time is limited
_LEAST_PART = 25  # chains: fewer cannot be judged
_TIME_RESERVE = 0.8
_SECOND_TIME = 0.25  # of a time limit, for the second opinion
_DRAW_SHARE, _LEAST_DRAW_SWEEPS = 0.1, 100  # sweeps at beta = 1, of the steps of the run


@together
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
    kernel: AbstractKernel | None = None,
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
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_forecast: Callable[[Forecast], None] | None = None,
) -> Estimate:
    """log Z of a model by annealed importance sampling.

    Parameters
    ----------
    model : a model, the name of a packaged one, a file, or module:name of a Python object
    schedule : a name (mixing, linear, sm08, gms13, varopt, varopt-0.009, varopt-fixed-point), a file,
        an array of betas, or a Schedule; `annealz.plan` describes the names. The pilot that some names
        need is charged, and uses random streams of its own.
    num_steps : K; 10,000 by default, and with `target_std_err` what the survey foretells
    num_chains : N; 1,000 by default
    base : where the path starts: a base, or a name that the model knows; of an RBM base-rate, uniform,
        visible-bias, fitted, auto. auto is the base rate where the data's means are known; elsewhere, of
        models with several bases, pilots look for the mass and choose, as they do with fitted.
    data : training data (rows, visible) or their means (visible,), for the base rate
    marginal : the layer that is annealed, visible or hidden, of a model that has both; the other is summed
        out. By default the model's first, of an RBM the visible one. auto surveys both and takes the other
        one where its path is clearly shorter.
    path : a path that ends in the model, in the place of the model's own; its base is its own
    kernel : the transition, in the place of the model's own
    target_std_err : the standard error wanted, in the place of `num_chains`. Survey and sizing runs
        foretell the steps and chains that it takes; they are charged as pilot and enter no weight. A
        run that misses it goes on once. What a million chains cannot reach is refused.
    max_seconds : a limit to pilot and run together. The run is cut to fit, and where time runs out
        earlier it ends with the chains that are done.
    resample : resample islands of chains whose ESS falls below this share of them (annealed SMC)
    two_sided : anneal in reverse as well, from draws of the target: exact ones where a layer can be
        enumerated, else the last states of the forward run, resampled and swept on (approximate).
        log Z is then BAR's, between bounds from both sides.
    second_opinion : anneal a tenth as many chains from a second, unlike base as well, where the model has
        one. An estimate that they contradict is never ok.
    draws : draws of the target to start the reverse run from, (num_chains, variables); or "exchange", which
        takes them from replica exchange of as many sweeps as the run has steps, charged
    along : betas at which log Z of p*_beta is wanted too, from the same run
    seed : all randomness is a function of it
    observe : functions of the annealed variables (chains, ...), or observers, by name; their weighted
        means and variances along the path are in `trace`
    record_every : steps between records of the trace; about 1000 records by default
    chunk_steps : steps between returns to the host; changes no bit of the result
    out : folder for checkpoints and results; `resume(out)` goes on after an interruption
    force : overwrite a run that `out` already holds
    checkpoint_seconds : seconds between checkpoints
    exact_log_z : the exact value to show beside the estimate. By default what the model file
        records, or what can be enumerated in no time.
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
    record_every = None if record_every is None else operator.index(record_every)
    given_chains = None if num_chains is None else operator.index(num_chains)
    num_chains = DEFAULT_NUM_CHAINS if given_chains is None else given_chains
    for name, count in (("num_chains", num_chains), ("record_every", record_every)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")
    for name, value in (("target_std_err", target_std_err), ("max_seconds", max_seconds)):
        if value is not None and not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value}.")
    if target_std_err is not None and target_std_err <= ROUNDING:
        raise ValueError(
            f"target_std_err must be above {ROUNDING:g}, the error of float32, got {target_std_err:g}."
        )
    _check_together(given_chains, target_std_err, max_seconds, resample, two_sided, draws)
    betas = None if along is None else check_betas(along).tolist()
    seed = check_seed(seed)
    observers = observers_of(observe)
    asked = {
        "model": str(model) if isinstance(model, str | Path) else None,
        "schedule": str(schedule) if isinstance(schedule, str | Path) else None,
        "num_steps": None if num_steps is None else operator.index(num_steps),
        "num_chains": given_chains,
        "base": base if isinstance(base, str) else None,
        "data": data is not None,
        "marginal": marginal,
        "observe": sorted(map(str, observe or ())),
    }
    given = {
        "path": path is not None,
        "kernel": kernel is not None,
        "base": not isinstance(base, str),
    }
    began = time.monotonic()
    begin(on_progress, "base")
    problem = choose_problem(
        model, base=base, data=data, marginal=marginal, path=path, kernel=kernel
    )
    is_fitted = getattr(problem.path.base, "evaluations", 0) > 0
    fit_seconds = time.monotonic() - began if is_fitted else 0.0
    folder = None if out is None else RunFolder(out)
    if folder is not None:
        folder.check(force)
    steps = check_schedule(schedule, asked["num_steps"])
    check_memory(problem.states, num_chains)  # before a pilot, not after
    if resample is not None:
        Resampling(resample, island_size(num_chains))  # refuses what it cannot do
    is_exchanged = isinstance(draws, str)
    if draws is not None and not is_exchanged and marginal != "auto":
        check_start(problem.path, draws, num_chains, "draws")
    begin(on_progress, "base" if problem.is_open or second_opinion else "tuning")
    paced = Timing(0.0, 0, 0.0)
    if max_seconds is not None and problem.is_searched(second_opinion):  # pilots keep the limit too
        paced = time_steps(problem.states, problem.kernel, num_chains, seed)
        share = _TIME_RESERVE * max_seconds / (paced.pace * steps * num_chains)
        steps = max(int(min(share, 1.0) * steps), 1)
    problem = problem.prepared(
        seed, steps, num_chains, second_opinion=second_opinion, on_progress=on_progress
    )
    path, kernel = problem.states, problem.kernel
    pilot_sweeps = problem.pilot_sweeps + paced.sweeps
    pilot_seconds = problem.pilot_seconds + fit_seconds + paced.spent
    left = None if max_seconds is None else max(max_seconds - pilot_seconds, 1e-3)
    if left is not None and problem.second_path is not None:
        left *= 1 - _SECOND_TIME
    start = None
    if draws is not None and not is_exchanged:
        start = check_start(problem.path, draws, num_chains, "draws")
    wanted_chains = num_chains
    part_chains = None
    if target_std_err is not None:
        ahead = forecast(
            path,
            kernel,
            schedule,
            target_std_err,
            num_steps=num_steps,
            max_seconds=left,
            seed=seed,
            on_progress=on_progress,
        )
        schedule, num_chains = ahead.schedule, ahead.num_chains
        check_memory(path, num_chains)
        pilot_sweeps += ahead.pilot_sweeps
        pilot_seconds += ahead.pilot_seconds
        if on_forecast is not None:
            on_forecast(ahead)
        if max_seconds is not None:
            spare = max(max_seconds - pilot_seconds, 0.0)
            part_chains = _part_chains(num_chains, spare / max(ahead.seconds, 1e-9))
    else:
        if left is not None:
            num_steps, num_chains, timing = _fit(
                path, kernel, schedule, num_steps, num_chains, left, seed
            )
            pilot_sweeps += timing.sweeps
            pilot_seconds += timing.spent
            part_chains = _part_chains(num_chains, 1.0)
        is_planned = isinstance(schedule, str) and not Path(schedule).is_file()
        schedule = plan_schedule(
            schedule,
            path,
            kernel,
            num_steps=num_steps,
            num_chains=num_chains,
            seed=seed,
            on_progress=on_progress,
        )
        if is_planned:  # its pilot is charged
            pilot_sweeps += schedule.provenance.get("pilot_sweeps", 0)
            pilot_seconds += schedule.provenance.get("pilot_seconds", 0.0)
    known = problem.exact_log_z if exact_log_z is None else exact_log_z
    if known is None:
        known = problem.model.exact_log_z_if_cheap()
    settings = {
        "model": problem.name,
        "model_digest": problem.model.digest,
        "source": problem.source,
        "base": problem.base_name,
        "base_digest": getattr(path.base, "digest", None),
        "marginal": problem.marginal,
        "given": given,
        "asked": asked,
        "num_chains": num_chains,
        "wanted_chains": num_chains if target_std_err is not None else wanted_chains,
        "target_std_err": target_std_err,
        "max_seconds": max_seconds,
        "part_chains": part_chains,
        "resample": resample,
        "two_sided": two_sided,
        "second_opinion": second_opinion,
        "second": None,
        "base_reason": problem.base_reason,
        "can_enumerate": problem.model.has_exact_draws,
        "takes_data": problem.model.takes_data,
        "along": betas,
        "seed": seed,
        "record_every": record_every,
        "checkpoint_seconds": checkpoint_seconds,
        "exact_log_z": known,
        "pilot_sweeps": pilot_sweeps,
        "evaluations_a_sweep": kernel.evaluations,
        "base_evaluations": getattr(path.base, "evaluations", 0),
        "pilot_seconds": pilot_seconds,
        "versions": versions(),
    }
    if two_sided and is_exchanged:
        begin(on_progress, "draws")
        drawn = exchange(
            path,
            kernel,
            num_sweeps=max(schedule.num_steps, LEAST_SWEEPS),
            num_draws=num_chains,
            seed=derive_seed(seed, "exchange draws"),
            on_progress=in_stage(on_progress, "draws"),
        )
        start = check_start(problem.path, drawn.draws, num_chains, "draws")
        settings |= {"draws": "exchange", "draw_sweeps": drawn.sweeps}
        settings["exchange"] = {"status": drawn.status.value, "messages": list(drawn.messages)}
    elif two_sided:
        is_own = not given["path"]  # the layer of a given path is not known
        settings |= _draw_settings(problem.model, is_own, start, num_chains, schedule.num_steps)
    second_schedule = None
    if problem.second_path is not None:
        second_schedule = schedule
        if problem.second_terrain is not None and schedule.name in PILOTED:
            second_schedule = mixing(problem.second_terrain, schedule.num_steps)
        settings["second"] = {"base": getattr(problem.second_path.base, "name", "second")}
    if folder is not None:
        folder.create(settings, problem, schedule, start, second_schedule)
    runner = Runner(
        settings, problem, schedule, observers, chunk_steps, folder, on_progress, second_schedule
    )
    return runner.estimate(start)


@together
@shown
def resume(
    out: str | Path,
    *,
    model: AbstractModel | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
    observe: Observe | None = None,
    chunk_steps: int | None = None,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Estimate:
    """Go on with the run in a folder, to the same bits as if it had never stopped.

    `observe` must be what the run was started with, and so must a model, path or kernel that the folder
    cannot hold, because it is not one of annealz's own. A finished run is only read. `progress` shows a
    live bar in a notebook or a terminal.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(
    ...     random_rbm(4, 6), schedule="linear", num_steps=100, num_chains=100, out="run"
    ... )
    >>> annealz.resume("run").log_z == estimate.log_z  # done already; after Ctrl-C it goes on
    True
    """
    folder = RunFolder(out)
    settings, schedule, start = folder.inputs()
    if settings.get("method") == "exchange":  # another kind of run, and of result
        given = {"model": model, "path": path, "kernel": kernel, "chunk_sweeps": chunk_steps}
        return resume_exchange(out, **given, on_progress=on_progress)  # pyright: ignore
    if folder.is_done():
        return read_estimate(folder)
    with holding(folder.path):
        settings, schedule, start = folder.inputs()  # as they are now that no other process writes
        if folder.is_done():
            return read_estimate(folder)
        problem = folder.problem(settings, model=model, path=path, kernel=kernel)
        observers = observers_of(observe)
        second = folder.second_schedule()
        runner = Runner(
            settings, problem, schedule, observers, chunk_steps, folder, on_progress, second
        )
        return runner.estimate(start)


def _part_chains(num_chains: int, affordable: float) -> int:
    """Chains a part of a run that should take `affordable` times less than its time."""
    chains = int(np.ceil(num_chains * min(1.0, affordable) / _NUM_PARTS))
    return min(max(chains, _LEAST_PART), num_chains)


def _fit(
    path, kernel, schedule, num_steps, num_chains, max_seconds, seed
) -> tuple[int | None, int, Timing]:
    """Steps and chains that fit into the time: fewer chains first, then shorter ones."""
    is_fixed = num_steps is not None or not isinstance(schedule, str) or Path(schedule).is_file()
    if isinstance(schedule, str) and not Path(schedule).is_file():
        steps = DEFAULT_NUM_STEPS if num_steps is None else num_steps
    else:
        steps = plan_schedule(schedule, path, kernel, num_steps=num_steps).num_steps
    timing = time_steps(path, kernel, _part_chains(num_chains, 1.0), seed)
    sweeps = _TIME_RESERVE * max(max_seconds - timing.spent, 0) / timing.pace
    if steps * num_chains <= sweeps:
        return num_steps, num_chains, timing
    chains = max(int(sweeps / steps), min(num_chains, _LEAST_CHAINS))
    if is_fixed or steps * chains <= sweeps:
        return num_steps, chains, timing
    return max(1, int(sweeps / chains)), chains, timing


def _check_together(given_chains, target_std_err, max_seconds, resample, two_sided, draws) -> None:
    """Refuse options that contradict each other."""
    if target_std_err is not None and given_chains is not None:
        raise ValueError(
            "num_chains and target_std_err cannot both be given: the wanted error tells the number of "
            "chains; leave one out."
        )
    for name, value in (("target_std_err", target_std_err), ("max_seconds", max_seconds)):
        if value is None:
            continue
        for other, is_given in (("resample", resample is not None), ("two_sided", two_sided)):
            if is_given:
                raise ValueError(f"{name} and {other} cannot both be given: leave one out.")
    if resample is not None and two_sided:
        raise ValueError(
            "resample and two_sided cannot both be given: resampled chains have no reverse; leave one "
            "out."
        )
    if isinstance(draws, str) and draws != "exchange":
        raise ValueError(f'draws must be states of the model, or "exchange", got {draws!r}.')
    if draws is not None and not two_sided:
        raise ValueError("draws are where a reverse run starts: give two_sided=True with them.")


def _draw_settings(
    model: AbstractModel, is_own_path: bool, start, num_chains: int, num_steps: int
) -> dict[str, Any]:
    """Where the reverse run starts from, and the sweeps that takes."""
    if start is not None:
        return {"draws": "given", "draw_sweeps": 0}
    if is_own_path and model.has_exact_draws:
        return {"draws": "exact", "draw_sweeps": 0}
    sweeps = max(_LEAST_DRAW_SWEEPS, int(_DRAW_SHARE * num_steps))
    return {"draws": "approximate", "draw_sweeps": sweeps * num_chains}
