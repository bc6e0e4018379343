"""log Z of a density by nested sampling: the result with the plan that led to it."""

import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np

from annealz.core.cost import Cost
from annealz.core.numerics import with_error
from annealz.core.weights import effective_sample_size
from annealz.diagnostics.findings import Findings
from annealz.diagnostics.nested import NestedJudgement
from annealz.diagnostics.sheet import Figure, Section, Sheet, Table, View, record_of
from annealz.diagnostics.status import against_exact, stated_std_err
from annealz.methods.estimate import AbstractEstimate
from annealz.methods.nested.result import NestedRun
from annealz.methods.posterior import Posterior
from annealz.models.layout import Parameters

if TYPE_CHECKING:
    from annealz.methods.nested.method import NestedPlan

_RELIABLE = (
    "The error bar can be used: independent runs agree. No comparison of runs can see a mode that none of "
    "them has found."
)
_NEGLIGIBLE = 30.0  # nats below the largest weight
_NUM_BINS = 80


@dataclasses.dataclass(frozen=True, repr=False)
class NestedEstimate(AbstractEstimate):
    """log Z by nested sampling, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -50 * jnp.sum((x - 0.5) ** 2), dim=2, name="bump")
    >>> prior = annealz.GaussianBase.standard(2)
    >>> options = {"num_live": 100, "num_inner_steps": 5, "seed": 1}
    >>> estimate = annealz.estimate_log_z(model, method="nested", base=prior, **options)
    >>> abs(estimate.log_z - -2.7673) < 5 * estimate.std_err  # log of 2 pi / 100
    True
    """

    moves = "slices"
    base_name = "prior"

    plan: "NestedPlan"
    runs: tuple[NestedRun, ...]
    judgement: NestedJudgement
    volume_seconds: float = 0.0
    """Wall clock of the simulated volumes."""

    @property
    def log_z(self) -> float:
        """Natural logarithm, of the runs together: the mean over simulated volumes."""
        return self.judgement.merged.log_z

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`: of simulated volumes, or of the spread of the runs if larger."""
        return stated_std_err(self.judgement.std_err)

    @property
    def findings(self) -> Findings:
        """All that speaks against the estimate, a known log Z among it."""
        exact = against_exact(self.log_z, self.std_err, self.exact_log_z)
        return {**self.judgement.findings, **exact}

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """The costs of the checks of the density and of all runs; sweeps are slices."""
        runs = (Cost(one.num_slices, one.evaluations, one.seconds) for one in self.runs)
        return {"pilot": self.plan.cost, "main": sum(runs, Cost(seconds=self.volume_seconds))}

    @property
    def evaluations(self) -> dict[str, int]:
        """Evaluations of the density, as they were made."""
        return {name: cost.evaluations for name, cost in self.costs.items()}

    @property
    def num_live(self) -> int:
        """Live points, in all runs together."""
        return self.plan.num_live

    @property
    def information(self) -> float:
        """H, the mean of log L / Z over the posterior, in nats: log of how much the prior must shrink."""
        return self.judgement.merged.information

    @property
    def draws(self) -> np.ndarray:
        """(points, dim) every point that was live, of unequal weight; unconstrained."""
        return np.concatenate([one.x for one in self.runs])

    @property
    def log_weights(self) -> np.ndarray:
        """(points,) of the draws under the posterior; their exponentials have the sum 1."""
        return self.judgement.merged.log_weights

    @property
    def ess(self) -> float:
        """Effective number of the weighted draws."""
        return effective_sample_size(self.log_weights)

    @functools.cached_property
    def posterior(self) -> Posterior | None:
        """The draws by name, in the parameters' own space; those of no weight are left out.

        None of an estimate that was read from a folder without its model.
        """
        if self.problem is None:
            return None
        parameters: Parameters = self.problem.model.parameters  # pyright: ignore
        is_held = self.log_weights > self.log_weights.max() - _NEGLIGIBLE
        draws, log_weights = self.draws[is_held], self.log_weights[is_held]
        return Posterior.of(parameters, draws, log_weights, status=self.status)

    def sheet(self) -> Sheet:
        """Return what it shows."""
        plan, merged = self.plan, self.judgement.merged
        pairs = list(zip(self.runs, self.judgement.each, strict=True))
        rows = [
            ("method", f"nested sampling, {plan.num_runs} runs"),
            (
                "live points",
                f"{plan.num_live:,} in all runs, {plan.num_inner_steps} slices per new point",
            ),
            ("information", f"{self.information:.2f} nats"),
        ]
        lines = [
            (
                str(i),
                f"{run.num_live:,}",
                f"{run.evaluations:,}",
                with_error(one.log_z, one.std_err),
            )
            for i, (run, one) in enumerate(pairs, 1)
        ]
        names = "num_live num_runs num_delete num_inner_steps tolerance"
        record = {
            "ess": self.ess,
            "num_steps": plan.num_inner_steps,
            "num_chains": plan.num_live,
            "schedule": "nested",
            **record_of(plan, names),
            "information": self.information,
            "runs": [
                record_of(one, "log_z std_err")
                | {"ending": run.ending.value, "evaluations": run.evaluations}
                for run, one in pairs
            ],
        }
        mass, _ = np.histogram(-merged.log_volumes, _NUM_BINS, weights=np.exp(merged.log_weights))
        table = Table(lines, ("run", "live points", "evaluations", "log Z"))
        curves = [("evidence as the prior shrinks", mass / mass.max())]
        return self._sheet(rows, record, reliable=_RELIABLE, table=table, curves=curves)

    plot = View("plots.results.plot_nested")
    """Draw the evidence as the prior shrinks, and log Z of every run; return the matplotlib figure."""
    plot_evidence = View("plots.results.plot_evidence")
    """Draw log L of all points and their share of the evidence; return the matplotlib axes."""
    plot_runs = View("plots.results.plot_runs")
    """Draw log Z of every run with its error; return the matplotlib axes."""

    def sections(self) -> tuple[Section, ...]:
        """Return what its page shows below the result."""
        plan = self.plan
        words = (
            f"{plan.num_runs} independent runs of {plan.num_live // plan.num_runs} live points. The "
            f"{plan.num_delete} lowest points of a run die at once; each new one is "
            f"{plan.num_inner_steps} slices away from another live point, above all that died. The points "
            "of all runs together give log Z."
        )
        evidence = (
            "Where the evidence lies as the prior shrinks: most of it "
            f"{self.information:.1f} nats below the whole prior. Two humps are two kinds of states, which "
            "annealing cannot join."
        )
        runs = "log Z of every run by itself: runs that differ beyond their errors have missed something."
        figures = [
            Figure("evidence", self.plot_evidence, evidence),
            Figure("runs", self.plot_runs, runs),
        ]
        return self._sections(Section("Nested sampling", [words, *figures]))
