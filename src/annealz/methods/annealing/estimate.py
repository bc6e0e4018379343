"""The result of annealing: log Z with its error and whether to trust it, and all that stands behind it.

    forward         log Z_A + log mean w, over chains or, where islands were resampled, over islands
    two sides       log Z_A + BAR of forward and reverse work

ESS is the number of independent chains of equal weight with the same error, N / (1 + N SE^2); for chains
that are independent that is (sum w)^2 / sum w^2.
"""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.core.cost import Cost
from annealz.core.names import FITTED
from annealz.core.numerics import finite_or_none, with_error
from annealz.diagnostics.along import Along, Convergence, log_z_along, log_z_by_chains
from annealz.diagnostics.diagnostics import IslandJudgement, Judgement, tail_in_words
from annealz.diagnostics.findings import Finding, Findings, Kind
from annealz.diagnostics.sheet import Row, Section, Sheet, View, data_frame, record_of
from annealz.diagnostics.status import Status, against_exact, stated_interval, stated_std_err
from annealz.diagnostics.two_sided import TwoSided
from annealz.engine.run import Run, Runs, Trace
from annealz.methods.annealing.page import MEANINGS, MEANINGS_TWO_SIDED, sections_of
from annealz.methods.annealing.plan import AnnealingPlan
from annealz.methods.annealing.second_opinion import SecondOpinion
from annealz.methods.estimate import AbstractEstimate
from annealz.methods.posterior import Posterior
from annealz.paths import programs
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain, terrain_of

if TYPE_CHECKING:
    from annealz.results.entropy import Entropy


@dataclasses.dataclass(frozen=True, repr=False)
class Estimate(AbstractEstimate):
    """log Z by annealing, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), num_steps=100, num_chains=100)
    >>> low, high = estimate.interval(0.99)
    >>> low < estimate.log_z < high
    True
    """

    plan: AnnealingPlan
    runs: Runs
    judgement: Judgement | IslandJudgement
    """The diagnosis of the forward run."""
    two_sided: TwoSided | None = None
    second_opinion: SecondOpinion | None = None
    """Chains from an unlike base, where there were any."""
    extra_findings: Findings = dataclasses.field(default_factory=dict)
    """Findings about what was asked for: a standard error, a time limit, the method."""

    @property
    def run(self) -> Run:
        """The forward run."""
        return self.runs.forward

    @property
    def reverse(self) -> Run | None:
        """The reverse run, of a two-sided estimate."""
        return self.runs.reverse

    @property
    def log_z(self) -> float:
        """Natural logarithm; from forward chains alone biased low.

        Where the second opinion is higher by more than the errors allow it is that one, the better bound.
        """
        return self.first_log_z if self._better is None else self._better.log_z

    @property
    def is_low(self) -> bool:
        """Whether log Z is biased low, as it is from forward chains alone."""
        return self.two_sided is None

    @property
    def first_log_z(self) -> float:
        """log Z of the first chains, whatever the second opinion."""
        first = self.judgement.log_mean if self.two_sided is None else self.two_sided.log_ratio
        return self.run.log_z0 + first

    @property
    def first_std_err(self) -> float:
        """Standard error of `first_log_z`."""
        return stated_std_err(self._judgement.std_err, self.num_unseen)

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`: of the weights, and what they do not show (`status.py`)."""
        if self._better is not None:
            return stated_std_err(self._better.std_err)
        return self.first_std_err

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of log Z."""
        if self._better is not None:
            return stated_interval(self.log_z, self._better.interval(level), level)
        low, high = self._judgement.interval(level)
        own = self.run.log_z0 + low, self.run.log_z0 + high
        return stated_interval(self.log_z, own, level, self.num_unseen)

    @property
    def ess(self) -> float:
        """The effective number of forward chains."""
        if isinstance(self.judgement, IslandJudgement):
            return self.num_chains / (1 + self.num_chains * self.judgement.std_err**2)
        return self.judgement.ess

    @property
    def findings(self) -> Findings:
        """All that was found: of weights, two sides, the second opinion, the exact value, and wishes."""
        findings = dict(self._judgement.findings)
        drawn = self.plan.exchange
        if drawn is not None and drawn.status == Status.UNRELIABLE.value:
            kind, why = Kind.UNTRUSTED_DRAWS, " ".join(drawn.messages).rstrip(".")
            findings[kind] = Finding.of(kind, why=why)
        if self.second_opinion is not None:
            findings |= self.second_opinion.findings
        findings |= against_exact(self.log_z, self.std_err, self.exact_log_z)
        return {**findings, **self.extra_findings}

    @property
    def status_in_words(self) -> str:
        """The status, and whether there was a second opinion, or the exact value served as one."""
        if self.second_opinion is not None:
            return self.status.value
        is_known = self.plan.request.second_opinion and self.exact_log_z is not None
        instead = "checked against the exact value" if is_known else "without a second opinion"
        return f"{self.status.value}, {instead}"

    @functools.cached_property
    def posterior(self) -> Posterior | None:
        """Weighted draws of a density's parameters, by name: where the forward chains ended.

        None of other models, and of an estimate that was read from a folder without its model:
        `resume(out, model=model)` has them. Reverse chains of a two-sided estimate do not add to them.
        """
        parameters = getattr(getattr(self.problem, "model", None), "parameters", None)
        if self.problem is None or parameters is None:  # variables without names
            return None
        rows = np.asarray(programs.position(self.problem.states.unnamed(), self.run.states))
        verdicts = {self.status, self.judgement.status}  # BAR lifts nothing of the forward weights
        status = Status.UNRELIABLE if Status.UNRELIABLE in verdicts else Status.OK
        size = self.run.island_size
        return Posterior.of(parameters, rows, self.log_weights, status=status, island_size=size)

    def entropy(self) -> "Entropy":
        """Return the entropy of the model, log Z - E[log p*], with its error, from the forward run.

        Of RBMs it is that of the visible units, of Ising, Potts and deep models that of all units, of
        densities the differential one.
        """
        from annealz.results.entropy import entropy_of

        return entropy_of(self)

    @property
    def log_weights(self) -> np.ndarray:
        """(chains,): log w of the forward run."""
        return self.run.log_weights

    @property
    def trace(self) -> Trace:
        """On-the-fly statistics of the forward run at its recorded steps."""
        return self.run.trace

    @property
    def schedule(self) -> Schedule:
        """The schedule, frozen before the run."""
        return self.run.schedule

    @property
    def num_steps(self) -> int:
        """K, of one chain."""
        return self.run.num_steps

    @property
    def num_chains(self) -> int:
        """N, of the forward run."""
        return self.run.num_chains

    @property
    def num_unseen(self) -> int | None:
        """N, where the base was fitted to pilots and no exact draws were seen."""
        is_seen = self.plan.draws == "exact"
        return self.num_chains if self.base in FITTED and not is_seen else None

    @property
    def terrain(self) -> Terrain:
        """The path as the schedule's pilot saw it; where there was none, as the run itself saw it."""
        return terrain_of(self.run) if self.schedule.terrain is None else self.schedule.terrain

    @property
    def tail(self) -> str:
        """The tail of the weights, in words."""
        if isinstance(self.judgement, IslandJudgement):
            return "resampled, without k̂"
        return tail_in_words(self.judgement.pareto_k, self.num_chains)

    def along(self, betas=None) -> Along:
        """Return log Z of p*_beta with its error at any betas, from the forward run."""
        return log_z_along(self.run, betas)

    def convergence(self) -> Convergence:
        """Return log Z from the first chains, up to all."""
        return log_z_by_chains(self.run, self.reverse)

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """The costs of pilots, of the runs that gave log Z with their draws, and of the second opinion."""
        stages = dict(self.stages)
        pilot, second = stages.pop("pilot"), stages.pop("second opinion", None)
        costs = {"pilot": pilot, "main": sum(stages.values(), Cost())}
        return costs if second is None else costs | {"second": second}

    @functools.cached_property
    def stages(self) -> dict[str, Cost]:
        """The costs of pilots and of every run."""
        plan, runs, each = self.plan, self.runs, self.plan.evaluations_a_sweep
        costs = {"pilot": plan.cost, "forward run": self.run.cost(each)}
        if runs.reverse is not None:
            drawn = self._draw_cost(runs.reverse, each or 0)
            costs["reverse run and its draws"] = runs.reverse.cost(each) + drawn
        if runs.second is not None:
            own = None if plan.second is None else plan.second.evaluations_a_sweep
            cost = runs.second.cost(each if own is None else own)
            if runs.probe is not None:
                starts = 0 if own is None else runs.probe.num_chains  # states of another frame
                cost += runs.probe.cost(each) + Cost(evaluations=starts)
            costs["second opinion"] = cost
        return costs

    def _draw_cost(self, reverse: Run, each: int) -> Cost:
        """Return the cost of the draws that the reverse run starts from, its filling chains' too.

        Draws that are not approximate are evaluated once more where they become states.
        """
        if self.plan.draws == "approximate":
            sweeps = self.plan.sweeps_per_draw(self.num_chains)
            count = self.num_chains + reverse.num_filling
            return Cost(sweeps * self.num_chains, each * sweeps * count)
        return (self.plan.draw_cost or Cost()) + Cost(evaluations=reverse.num_chains)

    @property
    def provenance(self) -> dict[str, Any]:
        """A record of all that is needed to make this number again."""
        return {
            **self.plan.to_dict(),
            "purpose": self.run.purpose,
            "num_steps": self.num_steps,
            "schedule": self.schedule.name,
            "schedule_digest": self.schedule.digest,
            "schedule_provenance": self.schedule.provenance,
        }

    def sheet(self) -> Sheet:
        """Return what it shows."""
        meanings = MEANINGS if self.two_sided is None else MEANINGS_TWO_SIDED
        ess = np.concatenate([[1.0], self.trace.ess / self.num_chains])
        curves = [("ESS along the path", ess)]
        return self._sheet(self._own_rows(), self._own_record(), **meanings, curves=curves)

    def sections(self) -> tuple[Section, ...]:
        """Return what its page shows below the result."""
        words, digest = f"{self.schedule.name}, {self.num_steps:,} steps", self.schedule.digest
        rows = [("schedule", words), ("schedule digest", digest)]
        return self._sections(*sections_of(self), provenance=rows)

    def _own_rows(self) -> list[Row]:
        rows: list[Row] = []
        plan, run, along = self.plan, self.run, self.plan.request.along
        if self.two_sided is not None:
            log_z0, bounds = run.log_z0, self.two_sided.sandwich
            low = with_error(log_z0 + bounds.lower, bounds.lower_std_err)
            high = with_error(log_z0 + bounds.upper, bounds.upper_std_err)
            count = plan.independent_draws
            independent = "" if count is None else f", {count:,} independent"
            forward = with_error(log_z0 + self.judgement.log_mean, self.judgement.std_err)
            rows.append(("forward estimate", forward))
            rows.append(("bounds", f"{low} … {high} ({plan.draws} draws{independent})"))
        if self.second_opinion is not None:
            rows.append(("second opinion", self.second_opinion.in_words))
        if along:
            here = self.along(along)
            for beta, log_z, error in zip(here.betas, here.log_z, here.std_err, strict=True):
                rows.append((f"log Z at {beta:g}", with_error(log_z, error)))
        rows.append(("ESS", f"{self.ess:.1f} of {self.num_chains} chains"))
        if run.island_size is not None:
            islands = self.num_chains // run.island_size
            rows.append(("resampled", f"{run.num_resamplings} times in {islands} islands"))
        return [*rows, ("schedule", f"{self.schedule.name}, {self.num_steps:,} steps")]

    def _own_record(self) -> dict[str, Any]:
        plan, run, sides = self.plan, self.run, self.two_sided
        own = record_of(self, "ess num_steps num_chains") | {"schedule": self.schedule.name}
        if self.second_opinion is not None:
            own["second_opinion"] = self.second_opinion.to_dict()
        if plan.base_reason:
            own["base_reason"] = plan.base_reason
        if sides is not None:
            log_z0, bounds, count = run.log_z0, sides.sandwich, plan.independent_draws
            own["two_sided"] = {
                "forward_log_z": log_z0 + self.judgement.log_mean,
                "forward_std_err": finite_or_none(self.judgement.std_err),
                "forward_status": self.judgement.status.value,
                **record_of(bounds, "lower_std_err upper_std_err gap gap_std_err"),
                "lower": log_z0 + bounds.lower,
                "upper": log_z0 + bounds.upper,
                "overlap": sides.overlap,
                "draws": plan.draws,
                **({} if count is None else {"independent_draws": count}),
            }
        if plan.request.along:
            own["along"] = record_of(self.along(plan.request.along), "betas log_z std_err")
        if run.island_size is not None:
            own["islands"] = {
                "size": run.island_size,
                "count": self.num_chains // run.island_size,
                "num_resamplings": run.num_resamplings,
            }
        return own

    @property
    def _better(self) -> SecondOpinion | None:
        """The second opinion, where it is the better bound."""
        opinion = self.second_opinion
        return opinion if opinion is not None and opinion.is_higher else None

    @property
    def _judgement(self) -> Judgement | IslandJudgement | TwoSided:
        return self.judgement if self.two_sided is None else self.two_sided

    def to_pandas(self):
        """Return a pandas table of one row; `pd.concat` sets several below each other."""
        low, high = self.interval()
        exact = np.nan if self.exact_log_z is None else self.exact_log_z
        numbers = {name: value for name, value in self.to_dict().items() if np.isscalar(value)}
        sweeps = {f"{name}_sweeps": count for name, count in self.sweeps.items()}
        return data_frame([{**numbers, "low": low, "high": high, "exact_log_z": exact, **sweeps}])

    to_xarray = View("tree.estimate_tree")
    """Return an xarray DataTree, which ArviZ reads: posterior, weights, trace, diagnostics."""
    plot = View("plots.results.plot_estimate")
    """Draw beta(t), on-the-fly ESS and the histogram of log w; return the matplotlib figure."""

    def plot_dwell(self, ax=None):
        """Draw the time spent at each beta, over the terrain; return the matplotlib axes."""
        return self.schedule.plot_dwell(ax, terrain=self.terrain)

    plot_ess = View("plots.results.plot_ess")
    """Draw on-the-fly ESS against the fraction of steps; return the matplotlib axes."""
    plot_weights = View("plots.results.plot_weights")
    """Draw the histogram of log w of the forward chains, with k-hat; return the matplotlib axes."""
    plot_work = View("plots.results.plot_work")
    """Draw forward and reverse work of a two-sided estimate; return the matplotlib axes."""
    plot_convergence = View("plots.results.plot_convergence")
    """Draw log Z and its error from the first chains, up to all; return the matplotlib axes."""
