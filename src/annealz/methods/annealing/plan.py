"""The plan of an annealed run: bases, schedules and sizes, decided by the request and by pilots."""

import dataclasses
import time
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from annealz.core.cost import Cost
from annealz.core.errors import InputError
from annealz.core.random import derive_seed
from annealz.diagnostics.findings import Finding, Kind
from annealz.engine.blocks import check_memory, check_start, memory_needed
from annealz.engine.context import Context
from annealz.engine.resampling import Resampling, island_size
from annealz.engine.run import Run
from annealz.io.records import (
    TypedRecord,
    finite,
    flag,
    line,
    list_of,
    one_of,
    optional,
    text,
    whole,
)
from annealz.methods.annealing.advice import whole_seconds
from annealz.methods.annealing.request import AnnealingRequest
from annealz.methods.annealing.size import RUN_SHARE, TIME_RESERVE, RunSize, choose_size, part_width
from annealz.methods.plan import Plan, read_cost
from annealz.methods.problem import Problem, Second, choose_problem, read_target
from annealz.models.abstract import AbstractModel
from annealz.models.log_density import NUM_TIMED, AbstractDensity, LogDensity
from annealz.pilots.densities.search import least_evaluations
from annealz.pilots.draws import base_of_rows, is_trace, rows_of_trace, spread_over
from annealz.pilots.plan import check_schedule
from annealz.pilots.sizing import time_steps
from annealz.schedules.schedule import Schedule

_SEARCH_TIME = 0.5  # of a time limit: after it no further base is tried
_LEAST_PILOT_SWEEPS = 10_000  # where no base is searched for: tuning, survey and timing
_PILOT_RESERVE = 1.5  # times the evaluations of the pilots, for the run
_SLOW_PILOTS = 5.0  # seconds, from which on they are announced and refused
_MUCH_MEMORY = 1.0  # GiB, from which on it is announced
_DRAW_SHARE, _MIN_DRAW_SWEEPS = 0.1, 100  # sweeps at beta = 1, of the steps of the run


@dataclasses.dataclass(frozen=True, kw_only=True)
class SecondBase(TypedRecord):
    """Where the chains of the second opinion start."""

    what: ClassVar[str] = "the second opinion"
    base: Annotated[str, line]
    evaluations_a_sweep: Annotated[int | None, optional(whole)] = None
    """Of the density, where they have a kernel of their own, and with it states of their own."""

    @classmethod
    def of(cls, second: Second) -> Self:
        """Return what a plan holds of it."""
        each = None if second.kernel is None else second.kernel.evaluations
        return cls(base=getattr(second.path.base, "name", "second"), evaluations_a_sweep=each)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExchangedDraws(TypedRecord):
    """What is known of reverse draws from replica exchange."""

    what: ClassVar[str] = "the draws from replica exchange"
    status: Annotated[str, one_of("ok", "unreliable")]
    messages: Annotated[list[str], list_of(text)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealingPlan(Plan):
    """The plan of an annealed run."""

    what: ClassVar[str] = "the plan of an annealed run"
    request_type = AnnealingRequest

    num_chains: Annotated[int, whole]
    """Planned; a limited time may allow fewer, a missed error take more."""
    wanted_chains: Annotated[int, whole]
    """Before a time limit cut them."""
    part_chains: Annotated[int | None, optional(whole)] = None
    """Chains per part of a run that comes in parts."""
    second: Annotated[SecondBase | None, optional(SecondBase.within)] = None
    """The second opinion that the run has."""
    base_reason: Annotated[str | None, optional(text)] = None
    """Why the base was chosen, if it was searched for."""
    can_enumerate: Annotated[bool, flag] = False
    takes_data: Annotated[bool, flag] = False
    draws: Annotated[str | None, optional(one_of("exact", "approximate", "given", "exchange"))] = (
        None
    )
    """Where the reverse run starts from; None without one."""
    draw_cost: Annotated[Cost | None, optional(read_cost)] = None
    """Of those draws, all chains together."""
    exchange: Annotated[ExchangedDraws | None, optional(ExchangedDraws.within)] = None
    independent_draws: Annotated[int | None, optional(whole)] = None
    """Rows of a given trace that reverse chains start from: chain j from row j modulo this."""
    rounding: Annotated[float | None, optional(finite)] = None
    """Of one value of a density in float32."""
    whole_seconds: Annotated[float | None, optional(finite)] = None
    """What all that is asked for should take without a time limit."""
    wanted_steps: Annotated[int | None, optional(whole)] = None
    """Without a time limit, where a pilot chose them."""
    schedule: Schedule = dataclasses.field(default=None, compare=False)  # pyright: ignore
    second_schedule: Schedule | None = dataclasses.field(default=None, compare=False)

    @property
    def schedules(self) -> dict[str, Schedule]:
        """The schedules of the first and the second run."""
        second = self.second_schedule
        return {"schedule": self.schedule} | ({} if second is None else {"second_schedule": second})

    @property
    def allowed_seconds(self) -> float:
        """Seconds until all runs should be done: some are left, however long pilots took."""
        limit = self.request.max_seconds
        return np.inf if limit is None else max(limit, self.cost.seconds + RUN_SHARE * limit)

    def has_time_after(self, *runs: Run) -> bool:
        """Check whether a limit leaves time for one more run, after the first for one like the last."""
        spent = self.cost.seconds + sum(run.seconds for run in runs)
        return spent + (runs[-1].seconds if len(runs) > 1 else 0.0) < self.allowed_seconds

    def sweeps_per_draw(self, num_chains: int) -> int:
        """Return the sweeps at beta = 1 of each of so many approximate draws."""
        if self.draws != "approximate" or self.draw_cost is None:
            return 0
        return self.draw_cost.sweeps // num_chains


def make_plan(request: AnnealingRequest, context: Context) -> AnnealingPlan:
    """Run all pilots of an annealed run."""
    began = time.monotonic()
    context.begin("base")
    target = read_target(request.model)
    context.place(target[0], request.num_chains)
    num_chains = request.num_chains or target[0].usual_chains
    draws, base, independent = _traced(target[0], request, num_chains)
    names = ("data", "marginal", "path", "kernel")
    given = {name: getattr(request, name) for name in names}
    problem = choose_problem(target, base=base, **given)
    if request.is_default:
        problem = problem.enumerated()
    context.check_folder()
    steps = check_schedule(request.schedule, request.num_steps)
    problem = _forecast_pilots(problem, request, context)
    problem = _prepared(problem, request, steps, num_chains, draws, context, began)
    spent = max(problem.cost.seconds, time.monotonic() - began)
    size = choose_size(problem, request, num_chains, spent, context)
    problem = problem.charged(size.cost)
    if request.max_seconds is not None:  # all that was done counts, reading and compiling too
        rest = time.monotonic() - began - problem.cost.seconds
        problem = problem.charged(Cost(seconds=max(rest, 0.0)))
    decided = _draws(problem, request, size, draws, context)
    problem = problem.with_exact(request.exact_log_z)
    if problem.is_unconfirmed and request.second_opinion and problem.exact_log_z is None:
        unconfirmed = Finding.of(Kind.UNCONFIRMED, limit=request.max_seconds)
        problem = dataclasses.replace(problem, findings=(*problem.findings, unconfirmed))
    is_limited, second = request.max_seconds is not None, problem.second
    return AnnealingPlan.of(
        request,
        problem,
        num_chains=size.num_chains,
        wanted_chains=size.num_chains if request.target_std_err is not None else num_chains,
        part_chains=size.part_chains,
        second=None if second is None else SecondBase.of(second),
        base_reason=problem.base_reason,
        can_enumerate=problem.model.has_exact_draws,
        takes_data=problem.model.takes_data,
        independent_draws=independent,
        rounding=problem.rounding,
        whole_seconds=size.whole_seconds if is_limited else None,
        wanted_steps=size.wanted_steps,
        schedule=size.schedule,
        second_schedule=None if second is None else second.schedule(size.schedule),
        **decided,
    )


def _forecast_pilots(problem: Problem, request: AnnealingRequest, context: Context) -> Problem:
    """Announce the pilots of a slow function; refuse a time limit that they alone would exceed."""
    model, limit = problem.model, request.max_seconds
    if not isinstance(model, AbstractDensity):
        return problem
    if limit is None and (model.fn.is_differentiable or context.on_forecast is None):
        return problem
    is_searched = problem.wanted_base is not None and bool(model.searched_bases)
    evaluations = _LEAST_PILOT_SWEEPS * (problem.kernel.evaluations or 0)
    if is_searched and isinstance(model, LogDensity):
        evaluations = least_evaluations(model.dim)
    pace = model.seconds_per_evaluation()
    seconds = pace * evaluations
    ahead = f"pilots of {model.name} take about {evaluations:,} evaluations of {1000 * pace:.3g} ms"
    if limit is not None and seconds > max(limit, _SLOW_PILOTS):
        choice = ", or give a {base} that is not searched for" if is_searched else ""
        least = whole_seconds(_PILOT_RESERVE * seconds)
        raise InputError("max_seconds", f"must be at least {least}", limit, f"{ahead}{choice}")
    if context.on_forecast is not None and seconds > _SLOW_PILOTS:
        context.on_forecast(f"{ahead}, {whole_seconds(seconds)} s")
    return problem.charged(Cost(evaluations=NUM_TIMED))


def _prepared(
    problem: Problem,
    request: AnnealingRequest,
    steps: int,
    num_chains: int,
    draws: Any,
    context: Context,
    began: float,
) -> Problem:
    """Return the problem with base and kernel chosen; what the run cannot do is refused before pilots."""
    if not problem.is_enumerated:
        check_memory(problem.states, num_chains, "num_chains")
        memory = memory_needed(problem.states, num_chains) / 2**30
        if context.on_forecast is not None and memory > _MUCH_MEMORY:
            words = f"{num_chains:,} chains of {problem.name} take about {memory:.1f} GiB of memory"
            context.on_forecast(words)
    if request.resample is not None:
        Resampling(request.resample, island_size(num_chains))
    if draws is not None and not isinstance(draws, str):
        check_start(problem.path, draws, num_chains, "draws")
    is_searching = problem.wanted_base is not None
    context.begin("base" if is_searching or request.second_opinion else "tuning")
    limit = request.max_seconds
    is_density = is_searching and bool(problem.model.searched_bases)  # its kernel is not tuned yet
    if limit is not None and problem.is_searched(request.second_opinion) and not is_density:
        width = part_width(num_chains)
        timing = time_steps(problem.states, problem.kernel, width, request.seed)
        share = TIME_RESERVE * limit / (timing.pace * steps * num_chains)
        steps = max(int(min(share, 1.0) * steps), 1)  # pilots keep the limit too
        problem = problem.charged(timing.cost)
    return problem.prepared(
        request.seed,
        steps,
        num_chains,
        second_opinion=request.second_opinion,
        on_progress=context.on_progress,
        deadline=None if limit is None else began + _SEARCH_TIME * limit,
    )


def _traced(
    model: AbstractModel, request: AnnealingRequest, num_chains: int
) -> tuple[Any, Any, int | None]:
    """Return draws, base and the number of independent draws; of a trace its states and its fit."""
    if not is_trace(request.draws):
        return request.draws, request.base, None
    is_fitted = request.path is None and isinstance(request.base, str) and request.base == "auto"
    rows = rows_of_trace(model, request.draws, is_fitted=is_fitted)
    states, independent = spread_over(rows.reverse, num_chains)
    return states, base_of_rows(rows.fit) if is_fitted else request.base, independent


def _draws(
    problem: Problem, request: AnnealingRequest, size: RunSize, draws: Any, context: Context
) -> dict[str, Any]:
    """Return what a plan holds of the states that a reverse run starts from."""
    num_chains, num_steps = size.num_chains, size.schedule.num_steps
    if not request.two_sided:
        return {}
    if request.are_exchanged:
        from annealz.methods.exchange.exchange import exchange
        from annealz.methods.exchange.rounds import LEAST_SWEEPS

        drawn = exchange(
            problem.states,
            problem.kernel,
            num_sweeps=max(num_steps, LEAST_SWEEPS),
            num_draws=num_chains,
            seed=derive_seed(request.seed, "exchange draws"),
            on_progress=context.begin("draws"),
        )
        start = check_start(problem.path, drawn.draws, num_chains, "draws")
        known = ExchangedDraws(status=drawn.status.value, messages=list(drawn.messages))
        cost = dataclasses.replace(drawn.cost(problem.kernel.evaluations), seconds=0.0)
        return {"draws": "exchange", "draw_cost": cost, "exchange": known, "start": start}
    if draws is not None:
        start: np.ndarray = check_start(problem.path, draws, num_chains, "draws")
        return {"draws": "given", "start": start}
    if (
        problem.is_own_path and problem.model.has_exact_draws
    ):  # the layer of a given path is not known
        return {"draws": "exact", "draw_cost": Cost(evaluations=problem.model.num_enumerated)}
    sweeps = max(_MIN_DRAW_SWEEPS, int(_DRAW_SHARE * num_steps))
    return {"draws": "approximate", "draw_cost": Cost(sweeps=sweeps * num_chains)}
