"""Schedules compared at equal total cost.

Every schedule gets the same number of sweeps per replicate, K N: what its pilot takes is taken from its
steps. Each replicate has its own seed, its own pilot and so its own schedule. A pilot at knots, which
at the size of the paper costs more than most runs, is shrunk to a tenth of the budget.

Compared by the ESS of a run, averaged over replicates; differences by Welch's t at 95 %.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.errors import InputError
from annealz.core.random import check_seed, derive_seed
from annealz.core.text import as_text
from annealz.core.versions import versions
from annealz.core.weights import delta_std_err, effective_sample_size, log_mean
from annealz.diagnostics.diagnostics import judge
from annealz.diagnostics.status import Judged, Status
from annealz.engine.anneal import anneal
from annealz.engine.progress import Progress
from annealz.engine.cluster.current import current_cluster, side_by_side
from annealz.engine.context import Context
from annealz.io.registry.schedules import SCHEDULES
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.problem import choose_problem
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.pilots.plan import (
    named_rule,
    pilot_scale_within,
    pilot_sweeps,
    plan_schedule,
)
from annealz.schedules.choose import check_num_steps

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Comparison", "Contender", "compare_schedules"]


@dataclasses.dataclass(frozen=True)
class Contender(Judged):
    """The replicates of one schedule."""

    name: str
    num_steps: int
    log_z0: float
    log_weights: np.ndarray
    """(replicates, chains)."""
    sweeps: dict[str, int]
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


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """What came out, in the order the schedules were named."""

    model: str
    base: str
    num_chains: int
    budget: int
    seed: int
    exact_log_z: float | None
    contenders: list[Contender]
    messages: tuple[str, ...]
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What is needed to reproduce this, and the seconds that it took."""

    @property
    def verdict(self) -> str:
        """Which won, and whether by more than the noise."""
        ranked = sorted(self.contenders, key=lambda c: -c.ess.mean())
        winner = ranked[0]
        if winner.ess.mean() == ranked[-1].ess.mean() and len(ranked) > 1:
            return f"all are tied with a mean ESS of {winner.ess.mean():.1f} of {self.num_chains}."
        words = f"{winner.name} won with a mean ESS of {winner.ess.mean():.1f} of {self.num_chains}"
        if len(ranked) < 2:
            return words + "."
        words += f"; {_lead(winner, ranked[1])}"
        linear = next((c for c in ranked[2:] if c.name == "linear"), None)
        return words + (f"; {_lead(winner, linear)}." if linear else ".")

    def __repr__(self) -> str:
        rows = [
            (
                one.name,
                f"{one.log_z:.4f} ± {one.std_err:.4f}, ESS {one.ess.mean():.1f}, {one.status.value}",
            )
            for one in self.contenders
        ]
        return as_text(f"Comparison: {self.verdict}", rows, self.messages)

    def _repr_html_(self) -> str:
        from annealz.views.show.html import comparison_html

        return comparison_html(self)

    def to_pandas(self):
        """A pandas table of a row a schedule."""
        from annealz.views.tables import comparison_table

        return comparison_table(self)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        rows = [
            {
                "schedule": c.name,
                "num_steps": c.num_steps,
                "log_z": c.log_z,
                "std_err": c.std_err,
                "ess": c.ess.tolist(),
                "variance": c.variance.tolist(),
                "variance_interval": list(c.variance_interval()),
                "sweeps": c.sweeps,
                "status": c.status.value,
            }
            for c in self.contenders
        ]
        fields = ("model", "base", "num_chains", "budget", "seed", "exact_log_z")
        head = {name: getattr(self, name) for name in fields}
        return {**head, "schedules": rows, "verdict": self.verdict, "messages": list(self.messages)}

    def plot(self):
        """log Z with its error, and the ESS of every replicate: a matplotlib figure."""
        from annealz.views.plots import plot_comparison

        return plot_comparison(self)

    def plot_log_z(self, ax=None):
        """log Z of every schedule with its error; returns the matplotlib axes."""
        from annealz.views.plots import plot_contender_log_z

        return plot_contender_log_z(self, ax)

    def plot_ess(self, ax=None):
        """ESS of every replicate of every schedule; returns the matplotlib axes."""
        from annealz.views.plots import plot_contender_ess

        return plot_contender_ess(self, ax)

    def plot_schedules(self, ax=None):
        """beta against the fraction of steps, of every schedule; returns the matplotlib axes."""
        from annealz.views.plots import plot_contender_schedules

        return plot_contender_schedules(self, ax)

    def report(self, path: str | Path) -> None:
        """Write all of it as one HTML page that needs nothing else."""
        from annealz.views.report import write_report

        write_report(self, path)


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
    """Every schedule at the cost of `num_steps` steps of `num_chains` chains, pilot included.

    By default the schedules are annealz's own, and those of other packages that ask to be compared.
    With `client`, a `dask.distributed.Client`, schedules and replicates run side by side on its workers, to
    the same bits. `progress` shows a live bar in a notebook or a terminal; `on_progress` is called with the
    name of a run and its Progress.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> comparison = annealz.compare_schedules(
    ...     random_rbm(4, 6), schedules=["linear", "sm08"], num_steps=100, num_chains=100
    ... )
    >>> [contender.name for contender in comparison.contenders]
    ['linear', 'sm08']
    >>> comparison.verdict.startswith("linear won with a mean ESS of")
    True
    """
    if num_replicates < 2:
        raise InputError("num_replicates", "must be at least 2", num_replicates)
    if num_chains < 1:
        raise InputError("num_chains", "must be at least 1", num_chains)
    check_num_steps(num_steps)
    check_seed(seed)
    messages: list[str] = []
    if schedules is None:
        schedules = SCHEDULES.compared()
        messages += SCHEDULES.refusals()
    if not schedules:
        raise ValueError(f"schedules must be some of {', '.join(SCHEDULES.names())}, got none.")
    for name in schedules:
        named_rule(name)
    with Context(
        client=client, progress=progress, on_progress=on_progress, is_named=True
    ) as context:
        on_progress = context.on_progress  # pyright: ignore[reportAssignmentType]
        began = time.monotonic()
        given = {"path": path is not None, "kernel": kernel is not None}
        problem = choose_problem(model, base=base, data=data, path=path, kernel=kernel)
        problem = problem.prepared(seed, num_steps, num_chains)
        path, kernel = problem.states, problem.kernel
        budget = num_steps * num_chains
        entries = []
        for name in schedules:
            scale = pilot_scale_within(name, budget)
            pilot = pilot_sweeps(name, budget, scale)
            steps = (budget - pilot) // num_chains
            if steps < 1:
                messages.append(
                    f"{name} is left out: its pilot of {pilot:,} sweeps is all of the budget."
                )
                continue
            entries.append(_Entry(name, steps, pilot, scale))
        jobs = [(entry, replicate) for entry in entries for replicate in range(num_replicates)]
        if on_progress is not None and current_cluster() is not None:
            on_progress = _Joint(on_progress, len(jobs))

        failed: dict[str, ValueError] = {}

        def run_one(job: tuple[_Entry, int]) -> tuple[np.ndarray, np.ndarray] | ValueError:
            (entry, replicate), here = job, derive_seed(seed, job[0].name, job[1])
            if entry.name in failed:
                return failed[entry.name]
            label = f"{entry.name} {replicate + 1}/{num_replicates}"
            report = None if on_progress is None else _labelled(on_progress, label)
            common: dict[str, Any] = {"num_chains": num_chains, "seed": here, "on_progress": report}
            try:
                schedule = plan_schedule(
                    entry.name,
                    path,
                    kernel,
                    num_steps=entry.num_steps,
                    pilot_scale=entry.pilot_scale,
                    **common,
                )
                run = anneal(path, kernel, schedule, purpose="compare", **common)
            except ValueError as error:
                failed[entry.name] = error
                return error
            return run.log_weights, schedule.betas

        outcomes = side_by_side(run_one, jobs)
        contenders = []
        for i, entry in enumerate(entries):
            own = outcomes[i * num_replicates : (i + 1) * num_replicates]
            error = next((one for one in own if isinstance(one, ValueError)), None)
            if error is not None:
                messages.append(f"{entry.name} is left out: {error}")
                continue
            rows, betas = zip(*own, strict=True)  # pyright: ignore[reportArgumentType]
            sweeps = {"pilot": entry.pilot, "main": entry.num_steps * num_chains}
            contenders.append(
                Contender(
                    entry.name, entry.num_steps, path.log_z0, np.array(rows), sweeps, betas[0]
                )
            )
        if not contenders:
            raise ValueError(f"no schedule could be run: {' '.join(messages)}")
        known = problem.exact_log_z
        if known is None:
            known = problem.model.exact_log_z_if_cheap()
        return Comparison(
            model=problem.name,
            base=problem.base_name,
            num_chains=num_chains,
            budget=budget,
            seed=seed,
            exact_log_z=known,
            contenders=contenders,
            messages=tuple(messages),
            provenance={
                "model": str(model) if isinstance(model, str | Path) else None,
                "map": getattr(model, "map", None) if isinstance(model, str) else None,
                "model_digest": problem.model.digest,
                "given": given | {"base": not isinstance(base, str)},
                "base": base if isinstance(base, str) else None,
                "data": data is not None,
                "schedules": list(schedules),
                "num_steps": num_steps,
                "num_chains": num_chains,
                "num_replicates": num_replicates,
                "seed": seed,
                "tuning_sweeps": problem.cost.sweeps,
                "seconds": time.monotonic() - began,
                "versions": versions(),
            },
        )


class _Entry(NamedTuple):
    """A schedule that takes part: its steps beside its pilot."""

    name: str
    num_steps: int
    pilot: int
    pilot_scale: float


class _Joint:
    """Runs side by side as one progress: the share of the steps of all."""

    def __init__(self, on_progress: Callable[[str, Progress], None], num_runs: int):
        self._report, self._num_runs = on_progress, num_runs
        self._shares: dict[str, float] = {}
        self._lock = threading.Lock()

    def __call__(self, label: str, now: Progress) -> None:
        with self._lock:
            if now.stage == "run":
                self._shares[label] = now.step / now.num_steps
            done = sum(self._shares.values()) / self._num_runs
            nothing = float("nan")
            self._report(
                f"{self._num_runs} runs", Progress(round(1000 * done), 1000, nothing, nothing)
            )


def _labelled(on_progress: Callable[[str, Progress], None], label: str) -> Callable:
    return lambda progress: on_progress(label, progress)


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
