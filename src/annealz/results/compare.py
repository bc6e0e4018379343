"""Schedules compared at equal total cost.

Every schedule gets the same number of sweeps per replicate, K N: what its pilot takes is taken from its
steps. Each replicate has its own seed, its own pilot and so its own schedule. A pilot at knots, which
at the size of the paper costs more than most runs, is shrunk to a tenth of the budget.

Compared by the ESS of a run, averaged over replicates; differences by Welch's t at 95 %.
"""

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.cost import Cost
from annealz.core.devices import versions
from annealz.core.numerics import with_error
from annealz.core.random import derive_seed
from annealz.core.weights import delta_std_err, effective_sample_size, log_mean
from annealz.diagnostics.diagnostics import judge
from annealz.diagnostics.sheet import (
    Figure,
    Result,
    Section,
    Sheet,
    Table,
    View,
    data_frame,
    record_of,
)
from annealz.diagnostics.status import Judged, Status
from annealz.engine.anneal import anneal
from annealz.engine.cluster import current_cluster, map_concurrently
from annealz.engine.context import Context
from annealz.engine.progress import Progress
from annealz.io.schedules import SCHEDULES, described
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.annealing.request import CompareRequest
from annealz.methods.estimate import reproduction_sections
from annealz.methods.problem import Problem, choose_problem
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.plan import named_rule, pilot_scale_within, pilot_sweeps, plan_schedule

if TYPE_CHECKING:
    from distributed import Client


@dataclasses.dataclass(frozen=True)
class Contender(Judged):
    """The replicates of one schedule."""

    name: str
    num_steps: int
    log_z0: float
    log_weights: np.ndarray
    """(replicates, chains)."""
    sweeps: dict[str, int]
    """Of the pilot and of the run of one replicate."""
    betas: np.ndarray
    """(num_steps + 1,), of the first replicate."""

    @property
    def log_z(self) -> float:
        """From all chains of all replicates."""
        return self.log_z0 + log_mean(self.log_weights.ravel())

    @property
    def std_err(self) -> float:
        return delta_std_err(self.log_weights.ravel())

    @property
    def ess(self) -> np.ndarray:
        """(replicates,)."""
        return np.array([effective_sample_size(row) for row in self.log_weights])

    @property
    def variance(self) -> np.ndarray:
        """Var[log w] of each replicate."""
        return self.log_weights.var(-1)

    @property
    def status(self) -> Status:
        """Whether the weights can be trusted, all replicates taken together."""
        return judge(self.log_weights.ravel()).status

    def variance_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student interval of Var[log w] over replicates, that of its logarithm: above zero."""
        from scipy import stats

        mean = self.variance.mean()
        if mean == 0:
            return 0.0, 0.0
        half = stats.t.ppf((1 + level) / 2, len(self.variance) - 1) * stats.sem(self.variance)
        return float(mean * np.exp(-half / mean)), float(mean * np.exp(half / mean))

    def record(self) -> dict[str, Any]:
        """Return JSON values."""
        names = "num_steps log_z std_err ess variance variance_interval sweeps status"
        return {"schedule": self.name, **record_of(self, names)}

    def columns(self) -> dict[str, Any]:
        """Return the columns of a pandas table."""
        low, high = self.variance_interval()
        return {
            "schedule": self.name,
            "log_z": self.log_z,
            "std_err": self.std_err,
            "status": self.status.value,
            "mean_ess": self.ess.mean(),
            "least_ess": self.ess.min(),
            "largest_ess": self.ess.max(),
            "variance": self.variance.mean(),
            "variance_low": low,
            "variance_high": high,
            "num_steps": self.num_steps,
            "pilot_sweeps": self.sweeps["pilot"],
            "main_sweeps": self.sweeps["main"],
        }

    def row(self, exact_log_z: float | None) -> dict[str, str]:
        """Return the cells of a row, for people, by their headings."""
        gap = "–"
        if exact_log_z is not None:
            off = self.log_z - exact_log_z
            gap = f"{off:+.4f}" + (f" ({off / self.std_err:+.1f})" if self.std_err > 0 else "")
        low, high = self.variance_interval()
        ess = f"{np.median(self.ess):.0f} ({self.ess.min():.0f}–{self.ess.max():.0f})"
        return {
            "schedule": self.name,
            "steps": f"{self.num_steps:,}",
            "pilot": f"{self.sweeps['pilot']:,}",
            "log Z": with_error(self.log_z, self.std_err),
            "off by (s.e.)": gap,
            "ESS: median (range)": ess,
            "Var log w": f"{self.variance.mean():.3f} ({low:.3f} … {high:.3f})",
            "status": self.status.value,
        }


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Result):
    """What came out, in the order the schedules were named."""

    request: CompareRequest
    model: str
    base: str
    exact_log_z: float | None
    contenders: list[Contender]
    extra_messages: tuple[str, ...] = ()
    """Which schedules were left out, and why."""
    model_digest: str = ""
    cost: Cost = Cost()
    """Of all pilots and runs; seconds are those of the clock."""
    versions: dict[str, str] = dataclasses.field(default_factory=versions)

    @property
    def num_chains(self) -> int:
        """N, of every replicate."""
        return self.request.num_chains

    @property
    def budget(self) -> int:
        """Sweeps of every replicate, its pilot included."""
        return self.request.num_steps * self.request.num_chains

    @property
    def verdict(self) -> str:
        """Which won, and whether by more than the noise."""
        winner, *others = sorted(self.contenders, key=lambda one: -one.ess.mean())
        size = f"a mean ESS of {winner.ess.mean():.1f} of {self.num_chains}"
        if others and winner.ess.mean() == others[-1].ess.mean():
            return f"all are tied with {size}."
        named = others[:1] + [one for one in others[1:] if one.name == "linear"]
        leads = "".join(f"; {_lead(winner, one)}" for one in named)
        return f"{winner.name} won with {size}{leads}."

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        headline, exact = ("verdict", self.verdict), self.exact_log_z
        count = self.request.num_replicates
        each = f"{count} replicates of {self.budget:,} sweeps, pilots included"
        rows = [("model", self.model), ("base", self.base), ("each", each), headline]
        if exact is not None:
            rows.insert(2, ("exact log Z", f"{exact:.4f}"))
        lines = [one.row(exact) for one in self.contenders]
        return self.described(
            headline,
            rows,
            title=f"Schedules compared on {self.model}",
            table=Table([[*line.values()] for line in lines], [*lines[0]]),
            record={
                **record_of(self, "model base num_chains budget"),
                **record_of(self.request, "seed"),
                "exact_log_z": exact,
                "schedules": [one.record() for one in self.contenders],
                "verdict": self.verdict,
            },
        )

    def sections(self) -> tuple[Section, ...]:
        """Return what its page shows below the result."""
        names = [one.name for one in self.contenders]
        ess = "Effective chains of every replicate: more is better."
        log_z = "log Z from all replicates together. Intervals that miss the others mean trouble."
        betas = f"β(t) of the first replicates: {', '.join(names)}."
        figures = [
            Figure("ess", self.plot_ess, ess),
            Figure("log-z", self.plot_log_z, log_z),
            Figure("schedules", self.plot_schedules, betas),
        ]
        known = {"model": self.model, "model digest": self.model_digest, "base": self.base}
        known["seed"] = str(self.request.seed)
        return (
            Section("Schedules", [Table(rows=[(name, described(name)) for name in names])]),
            Section("Pictures", figures),
            Section("Cost", [f"{self.cost.sweeps:,} sweeps, {self.cost.seconds:.1f} s."]),
            *reproduction_sections(self.request, self.versions, known),
        )

    def to_pandas(self):
        """Return a pandas table of a row per schedule."""
        return data_frame([one.columns() for one in self.contenders])

    plot = View("plots.results.plot_comparison")
    """log Z with its error, and the ESS of every replicate: a matplotlib figure."""
    plot_log_z = View("plots.results.plot_contender_log_z")
    """log Z of every schedule with its error; returns the matplotlib axes."""
    plot_ess = View("plots.results.plot_contender_ess")
    """ESS of every replicate of every schedule; returns the matplotlib axes."""
    plot_schedules = View("plots.results.plot_contender_schedules")
    """beta against the fraction of steps, of every schedule; returns the matplotlib axes."""


def compare_schedules(
    model: AbstractModel | str | Path,
    *,
    schedules: Sequence[str] | None = None,
    num_steps: int = 10_000,
    num_chains: int = 1000,
    num_replicates: int = 4,
    base: str | AbstractBase = "auto",
    data: Any = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
    seed: int = 0,
    client: "Client | None" = None,
    progress: bool = False,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> Comparison:
    """Compare schedules at the cost of `num_steps` steps of `num_chains` chains each, pilots included.

    By default the schedules are annealz's own, and those of other packages that ask to be compared.
    With `client`, a `dask.distributed.Client`, schedules and replicates run side by side on its workers, to
    the same bits. `progress` shows a live bar in a notebook or a terminal; `on_progress` is called with the
    name of a run and its Progress.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> options = {"schedules": ["linear", "sm08"], "num_steps": 100, "num_chains": 100}
    >>> annealz.compare_schedules(random_rbm(4, 6), **options).verdict[:10]
    'linear won'
    """
    arguments = dict(locals())
    with Context.of(arguments) as context:
        return _compare(CompareRequest(**arguments), context)


class _Entry(NamedTuple):
    """A schedule that takes part: its steps beside its pilot."""

    name: str
    num_steps: int
    pilot: int
    pilot_scale: float


def _compare(request: CompareRequest, context: Context) -> Comparison:
    """Return the comparison that was asked for."""
    began, names, messages = time.monotonic(), request.schedules, []
    if names is None:
        names, messages = SCHEDULES.compared(), [*SCHEDULES.refusals()]
    if not names:
        raise ValueError(f"schedules must be some of {', '.join(SCHEDULES.names())}, got none.")
    for name in names:
        named_rule(name)
    given = {name: getattr(request, name) for name in ("base", "data", "path", "kernel")}
    problem = choose_problem(request.model, **given)
    problem = problem.prepared(request.seed, request.num_steps, request.num_chains).with_exact()
    budget = request.num_steps * request.num_chains
    entries = []
    for name in names:
        scale = pilot_scale_within(name, budget)
        pilot = pilot_sweeps(name, budget, scale)
        steps = (budget - pilot) // request.num_chains
        if steps > 0:
            entries.append(_Entry(name, steps, pilot, scale))
        else:
            reason = f"its pilot of {pilot:,} sweeps is all of the budget."
            messages.append(f"{name} is left out: {reason}")
    count, contenders = request.num_replicates, []
    jobs = [(entry, replicate) for entry in entries for replicate in range(count)]
    outcomes = map_concurrently(_runner(request, problem, context, len(jobs)), jobs)
    for i, entry in enumerate(entries):
        own = outcomes[i * count : (i + 1) * count]
        error = next((one for one in own if isinstance(one, ValueError)), None)
        if error is not None:
            messages.append(f"{entry.name} is left out: {error}")
            continue
        rows, betas = zip(*own, strict=True)  # pyright: ignore[reportArgumentType]
        sweeps = {"pilot": entry.pilot, "main": entry.num_steps * request.num_chains}
        log_z0, steps = problem.states.log_z0, entry.num_steps
        contenders.append(Contender(entry.name, steps, log_z0, np.array(rows), sweeps, betas[0]))
    if not contenders:
        raise ValueError(f"no schedule could be run: {' '.join(messages)}")
    sweeps = count * sum(sum(one.sweeps.values()) for one in contenders)
    return Comparison(
        request=dataclasses.replace(request, schedules=list(names)),
        model=problem.name,
        base=problem.base_name,
        exact_log_z=problem.exact_log_z,
        contenders=contenders,
        extra_messages=tuple(messages),
        model_digest=problem.model.digest,
        cost=Cost(problem.cost.sweeps + sweeps, seconds=time.monotonic() - began),
    )


Job = tuple[_Entry, int]
Outcome = tuple[np.ndarray, np.ndarray] | ValueError
"""Log weights and betas, or why there are none."""


def _runner(
    request: CompareRequest, problem: Problem, context: Context, num_jobs: int
) -> Callable[[Job], Outcome]:
    """Return the function that runs a replicate of a schedule."""
    on_progress: Callable[..., None] | None = context.on_progress
    failed: dict[str, ValueError] = {}
    if on_progress is not None and current_cluster() is not None:
        on_progress = _joined(on_progress, num_jobs)

    def run_one(job: Job) -> Outcome:
        entry, replicate = job
        if entry.name in failed:
            return failed[entry.name]
        label = f"{entry.name} {replicate + 1}/{request.num_replicates}"
        common: dict[str, Any] = {
            "num_chains": request.num_chains,
            "seed": derive_seed(request.seed, entry.name, replicate),
            "on_progress": on_progress and functools.partial(on_progress, label),
        }
        where = problem.states, problem.kernel
        sizes = {"num_steps": entry.num_steps, "pilot_scale": entry.pilot_scale}
        try:
            schedule = plan_schedule(entry.name, *where, **sizes, **common)
            run = anneal(*where, schedule, purpose="compare", **common)
        except ValueError as error:
            failed[entry.name] = error
            return error
        return run.log_weights, schedule.betas

    return run_one


def _joined(
    on_progress: Callable[[str, Progress], None], num_runs: int
) -> Callable[[str, Progress], None]:
    """Return one progress of runs side by side: the share of the steps of all."""
    shares: dict[str, float] = {}
    lock = threading.Lock()

    def report(label: str, now: Progress) -> None:
        with lock:
            if now.stage == "run":
                shares[label] = now.step / now.num_steps
            done = round(1000 * sum(shares.values()) / num_runs)
            on_progress(f"{num_runs} runs", Progress(done, 1000, np.nan, np.nan))

    return report


def _lead(winner: Contender, other: Contender) -> str:
    lead = winner.ess.mean() - other.ess.mean()
    if winner.ess.std() == other.ess.std() == 0:
        return f"its lead of {lead:.1f} over {other.name} is exact"
    from scipy import stats

    low, high = stats.ttest_ind(winner.ess, other.ess, equal_var=False).confidence_interval(0.95)
    verdict = "larger than" if low > 0 else "within"
    return (
        f"its lead of {lead:.1f} over {other.name} (95 % interval {low:.1f} … {high:.1f}) is {verdict} "
        "the noise"
    )
