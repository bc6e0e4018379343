"""The result: log Z with its error and whether to trust it, and all that stands behind it.

    forward         log Z_A + log mean w, over chains or, where islands were resampled, over islands
    two sides       log Z_A + BAR of forward and reverse work

ESS is the number of independent chains of equal weight with the same error, N / (1 + N SE^2); for chains
that are independent that is (sum w)^2 / sum w^2.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.core.cost import Cost
from annealz.core.names import FITTED
from annealz.core.numerics import finite_or_none
from annealz.core.text import as_text
from annealz.diagnostics.along import Along, log_z_along
from annealz.diagnostics.convergence import Convergence, log_z_by_chains
from annealz.diagnostics.diagnostics import Judgement, tail_in_words
from annealz.diagnostics.findings import (
    Finding,
    Findings,
    Kind,
    Note,
    in_options,
    in_python,
    messages_of,
)
from annealz.diagnostics.islands import IslandJudgement
from annealz.diagnostics.stated import stated_interval, stated_std_err
from annealz.diagnostics.status import Judged, Status, against_exact, status_of
from annealz.diagnostics.two_sided import TwoSided
from annealz.engine.run import Run, Runs, Trace
from annealz.methods.annealing.second_opinion import SecondOpinion
from annealz.methods.drawn import Drawn
from annealz.methods.posterior import Mean, Posterior, posterior_of
from annealz.methods.annealing.plan import AnnealingPlan
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain, terrain_of

if TYPE_CHECKING:
    from annealz.methods.problem import Problem
    from annealz.results.entropy import Entropy

__all__ = ["Estimate"]


@dataclasses.dataclass(frozen=True, repr=False)
class Estimate(Judged, Drawn):
    """log Z, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), num_steps=100, num_chains=100)
    >>> estimate.status.value, estimate.messages
    ('ok', ())
    >>> round(estimate.exact_log_z, 4)  # known of so small a model
    8.5026
    >>> abs(estimate.log_z - estimate.exact_log_z) < 4 * estimate.std_err
    True
    >>> low, high = estimate.interval(0.99)
    >>> low < estimate.log_z < high
    True
    >>> estimate.model, estimate.base, estimate.marginal, estimate.schedule.name, estimate.seed
    ('rbm-4x6', 'uniform', 'visible', 'mixing', 0)
    >>> estimate.num_steps, estimate.num_chains, estimate.log_weights.shape, estimate.ess > 90
    (100, 100, (100,), True)
    >>> estimate.second_opinion.confirms, estimate.status_in_words  # of chains from another base
    (True, 'ok')
    >>> estimate.first_log_z == estimate.log_z, estimate.first_std_err == estimate.std_err
    (True, True)
    >>> estimate.run.num_chains, estimate.reverse is None
    (100, True)
    >>> estimate.sweeps["main"], estimate.sweeps["pilot"] > 0, estimate.seconds > 0
    (10000, True, True)
    >>> estimate.evaluations is None  # an RBM's cost is counted in sweeps
    True
    >>> estimate.trace.ess.shape, estimate.trace.means["slope"].shape  # along the path
    ((100,), (100,))
    >>> estimate.along([0, 0.5, 1]).log_z.shape  # at other betas than 1
    (3,)
    >>> estimate.plot().savefig("estimate.png")
    >>> (
    ...     dict(estimate.rows())["schedule"],
    ...     estimate.to_dict()["schedule"],
    ... )  # for people, for programs
    ('mixing, 100 steps', 'mixing')
    >>> estimate.provenance["num_steps"], estimate.with_message("made on a Sunday.").messages
    (100, ('made on a Sunday.',))
    >>> estimate.to_pandas().shape[0], "diagnostics" in estimate.to_xarray().children
    (1, True)
    """

    plan: AnnealingPlan
    """What was asked for, and what pilots decided."""
    runs: Runs
    judgement: Judgement | IslandJudgement
    """Of the forward run."""
    extra_messages: tuple[str, ...] = ()
    two_sided: TwoSided | None = None
    second_opinion: SecondOpinion | None = None
    """From an unlike base, where there was one."""
    extra_findings: Findings = dataclasses.field(default_factory=dict)
    """Of what was asked for: a standard error, a time limit, the method."""

    @property
    def problem(self) -> "Problem | None":
        """What was annealed, where it is known: the way from states to parameters."""
        return self.plan.problem

    @property
    def run(self) -> Run:
        """The forward run."""
        return self.runs.forward

    @property
    def reverse(self) -> Run | None:
        """The reverse run, of a two-sided estimate."""
        return self.runs.reverse

    @property
    def model(self) -> str:
        """What the model is called."""
        return self.plan.model

    @property
    def base(self) -> str:
        """The base, by name."""
        return self.plan.base

    @property
    def marginal(self) -> str | None:
        """The layer that was annealed, of a model that has several."""
        return self.plan.marginal

    @property
    def exact_log_z(self) -> float | None:
        """Where it is known: recorded in the file, or found in no time."""
        return self.plan.exact_log_z

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
        """What the first chains say, whatever the second opinion."""
        first = self.judgement.log_mean if self.two_sided is None else self.two_sided.log_ratio
        return self.run.log_z0 + first

    @property
    def first_std_err(self) -> float:
        """Standard error of `first_log_z`."""
        return stated_std_err(self._judgement.std_err, self.num_unseen)

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`: of the weights, and what they do not show (`stated.py`)."""
        if self._better is not None:
            return stated_std_err(self._better.std_err)
        return self.first_std_err

    @property
    def ess(self) -> float:
        """Of the forward chains."""
        if isinstance(self.judgement, IslandJudgement):
            return self.num_chains / (1 + self.num_chains * self.judgement.std_err**2)
        return self.judgement.ess

    @property
    def status(self) -> Status:
        """Whether the error can be used: not where any evidence contradicts."""
        return status_of(self.findings)

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
    def messages(self) -> tuple[str, ...]:
        """What to know, and what to do about it; empty if there is nothing to report."""
        return messages_of(self.notes, in_python)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The same as data: findings, text such as that a disk is full, and advice."""
        from annealz.methods.annealing.advice import advice_of

        runs = [message for run in self.runs if run is not None for message in run.messages]
        advice = advice_of(self)
        extra = (*self.extra_messages, *([advice] if advice.remedies else []))
        return (*self.findings.values(), *dict.fromkeys(runs), *extra)

    @functools.cached_property
    def posterior(self) -> Posterior | None:
        """Weighted draws of a density's parameters, by name: where the forward chains ended.

        None of other models, and of an estimate that was read from a folder without its model:
        `resume(out, model=model)` has them. Reverse chains of a two-sided estimate do not add to them.
        """
        if self.problem is None:
            return None
        verdicts = {self.status, self.judgement.status}  # BAR lifts nothing of the forward weights
        status = Status.UNRELIABLE if Status.UNRELIABLE in verdicts else Status.OK
        return posterior_of(self.problem, self.run, status)

    def expectation(self, what: str | Callable[[Mapping[str, np.ndarray]], Any]) -> Mean:
        """The posterior mean of a parameter, or of a function of all of them, with its error."""
        if self.posterior is None:
            raise ValueError(
                f"the estimate of {self.model} has no posterior: expectations are of densities; a run that "
                "was read from a folder has one with resume(out, model=model)."
            )
        return self.posterior.expectation(what)

    def entropy(self) -> "Entropy":
        """The entropy of the model, log Z - E[log p*], with its error, from the forward run.

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
        """As it was frozen before the run."""
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
    def seed(self) -> int:
        """Of all random bits."""
        return self.run.seed

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """Of pilots, of the runs that gave log Z with their draws, and of the second opinion."""
        plan, each = self.plan, self.plan.evaluations_a_sweep
        main = self.run.cost(each)
        if self.reverse is not None:
            main += self.reverse.cost(each) + self._draw_cost(each or 0)
        costs = {"pilot": plan.cost, "main": main}
        second, probe = self.runs.second, self.runs.probe
        if second is not None:
            own = None if plan.second is None else plan.second.evaluations_a_sweep
            costs["second"] = second.cost(each if own is None else own)
            if probe is not None:
                starts = 0 if own is None else probe.num_chains  # states of another frame
                costs["second"] += probe.cost(each) + Cost(evaluations=starts)
        return costs

    def _draw_cost(self, each: int) -> Cost:
        """Return the cost of the draws that the reverse run starts from, those that fill its last block too.

        Draws that are not approximate are evaluated once more where they become states.
        """
        assert self.reverse is not None
        count = self.num_chains + self.reverse.num_filling
        if self.plan.draws == "approximate":
            sweeps = self.plan.sweeps_per_draw(self.num_chains)
            return Cost(sweeps * self.num_chains, each * sweeps * count)
        return (self.plan.draw_cost or Cost()) + Cost(evaluations=self.reverse.num_chains)

    @property
    def sweeps(self) -> dict[str, int]:
        """Kernel applications: of pilots, of the runs that gave log Z, and of the second opinion."""
        return {name: cost.sweeps for name, cost in self.costs.items()}

    @property
    def evaluations(self) -> dict[str, int] | None:
        """Evaluations of the density, with or without its gradient; None where they are not counted."""
        if self.plan.evaluations_a_sweep is None:
            return None
        return {name: cost.evaluations for name, cost in self.costs.items()}

    @property
    def seconds(self) -> float:
        """Wall clock of pilots and runs."""
        return sum(cost.seconds for cost in self.costs.values())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of log Z."""
        if self._better is not None:
            return stated_interval(self.log_z, self._better.interval(level), level)
        low, high = self._judgement.interval(level)
        own = self.run.log_z0 + low, self.run.log_z0 + high
        return stated_interval(self.log_z, own, level, self.num_unseen)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; what is unknown (the error of a single chain) is None."""
        return {
            "model": self.model,
            "log_z": self.log_z,
            "std_err": finite_or_none(self.std_err),
            "interval": [finite_or_none(bound) for bound in self.interval()],
            "ess": self.ess,
            "num_steps": self.num_steps,
            "num_chains": self.num_chains,
            "schedule": self.schedule.name,
            "base": self.base,
            "seed": self.seed,
            "status": self.status.value,
            "messages": list(messages_of(self.notes, in_options)),
            "exact_log_z": self.exact_log_z,
            "sweeps": self.sweeps,
            "seconds": self.seconds,
            **self._extras(),
        }

    def along(self, betas=None) -> Along:
        """log Z of p*_beta with its error at any betas, from the forward run."""
        return log_z_along(self.run, betas)

    def convergence(self) -> Convergence:
        """log Z from the first chains, up to all."""
        return log_z_by_chains(self.run, self.reverse)

    @property
    def terrain(self) -> Terrain:
        """What the schedule's pilot saw of the path; where there was none, what the run itself saw."""
        return terrain_of(self.run) if self.schedule.terrain is None else self.schedule.terrain

    @property
    def tail(self) -> str:
        """The tail of the weights, in words."""
        if isinstance(self.judgement, IslandJudgement):
            return "resampled, without k̂"
        return tail_in_words(self.judgement.pareto_k, self.num_chains)

    @property
    def provenance(self) -> dict[str, Any]:
        """What is needed to make this number again."""
        return {
            **self.plan.to_dict(),
            "purpose": self.run.purpose,
            "num_steps": self.num_steps,
            "schedule": self.schedule.name,
            "schedule_digest": self.schedule.digest,
            "schedule_provenance": self.schedule.provenance,
        }

    def rows(self) -> list[tuple[str, str]]:
        """The result as label and value, for people."""
        low, high = self.interval()
        is_known = np.isfinite([self.std_err, low, high]).all()
        rows = [
            ("model", self.model),
            ("log Z", f"{self.log_z:.4f} ± " + (f"{self.std_err:.4f}" if is_known else "unknown")),
            ("95 % interval", f"{low:.4f} … {high:.4f}" if is_known else "unknown"),
        ]
        if self.exact_log_z is not None:
            gap = self.log_z - self.exact_log_z
            known = 0 < self.std_err < np.inf
            errors = f", {abs(gap) / self.std_err:.1f} standard errors" if known else ""
            rows.append(("exact log Z", f"{self.exact_log_z:.4f} (off by {gap:+.4f}{errors})"))
        if self.two_sided is not None:
            sides = {name: _in_words(value) for name, value in self._sides().items()}
            rows += [
                ("forward estimate", f"{sides['forward_log_z']} ± {sides['forward_std_err']}"),
                (
                    "bounds",
                    f"{sides['lower']} ± {sides['lower_std_err']} … {sides['upper']} ± "
                    f"{sides['upper_std_err']} ({sides['draws']} draws{self._how_many})",
                ),
            ]
        if self.second_opinion is not None:
            rows.append(("second opinion", self._opinion_in_words(self.second_opinion)))
        if self.plan.request.along:
            here = self.along(self.plan.request.along)
            for beta, log_z, error in zip(here.betas, here.log_z, here.std_err, strict=True):
                rows.append(
                    (f"log Z at {beta:g}", f"{log_z:.4f} ± {_in_words(finite_or_none(error))}")
                )
        rows.append(("ESS", f"{self.ess:.1f} of {self.num_chains} chains"))
        if self.run.island_size is not None:
            islands = self.num_chains // self.run.island_size
            rows.append(("resampled", f"{self.run.num_resamplings} times in {islands} islands"))
        density = ""
        if self.evaluations is not None:
            density = f"{sum(self.evaluations.values()):,} evaluations, "
        rows += [
            ("schedule", f"{self.schedule.name}, {self.num_steps:,} steps"),
            ("base", f"{self.base}, {self.marginal} marginal" if self.marginal else self.base),
            ("seed", str(self.seed)),
            ("cost", f"{sum(self.sweeps.values()):,} sweeps, {density}{self.seconds:.1f} s"),
            ("status", self.status_in_words),
        ]
        return rows

    @property
    def status_in_words(self) -> str:
        """The status, and whether there was a second opinion, or the exact value served as one."""
        if self.second_opinion is not None:
            return self.status.value
        is_known = self.plan.request.second_opinion and self.exact_log_z is not None
        instead = "checked against the exact value" if is_known else "without a second opinion"
        return f"{self.status.value}, {instead}"

    def _opinion_in_words(self, opinion: SecondOpinion) -> str:
        error = _in_words(finite_or_none(opinion.std_err))
        words = f"{opinion.log_z:.4f} ± {error} from {opinion.base}"
        if not opinion.confirms:
            return f"{words}: contradicts"
        if opinion.judgement.status is Status.UNRELIABLE:
            return f"{words}, probably too low: no contradiction"
        return f"{words}: agrees"

    def __repr__(self) -> str:
        return as_text("Estimate", self.rows(), self.messages)

    def _repr_html_(self) -> str:
        from annealz.views.show.html import estimate_html

        return estimate_html(self)

    def to_pandas(self):
        """The result as a pandas table of one row; `pd.concat` sets several below each other."""
        from annealz.views.tables import estimate_table

        return estimate_table(self)

    def to_xarray(self):
        """An xarray DataTree, which ArviZ reads: posterior, weights, trace, diagnostics."""
        from annealz.views.tables import estimate_tree

        return estimate_tree(self)

    def with_message(self, message: str) -> "Estimate":
        """The same with one thing more to say."""
        return dataclasses.replace(self, extra_messages=(*self.extra_messages, message))

    @property
    def _better(self) -> SecondOpinion | None:
        """The second opinion, where it is the better bound."""
        opinion = self.second_opinion
        return opinion if opinion is not None and opinion.is_higher else None

    @property
    def _judgement(self) -> Judgement | IslandJudgement | TwoSided:
        return self.judgement if self.two_sided is None else self.two_sided

    def _extras(self) -> dict[str, Any]:
        """What only some runs have."""
        extras: dict[str, Any] = {}
        if self.evaluations is not None:
            extras["evaluations"] = self.evaluations
        if self.second_opinion is not None:
            extras["second_opinion"] = self.second_opinion.to_dict()
        if self.plan.base_reason:
            extras["base_reason"] = self.plan.base_reason
        if self.two_sided is not None:
            extras["two_sided"] = self._sides()
        if self.plan.request.along:
            here = self.along(self.plan.request.along)
            extras["along"] = {
                "betas": here.betas.tolist(),
                "log_z": here.log_z.tolist(),
                "std_err": [finite_or_none(error) for error in here.std_err.tolist()],
            }
        if self.run.island_size is not None:
            extras["islands"] = {
                "size": self.run.island_size,
                "count": self.num_chains // self.run.island_size,
                "num_resamplings": self.run.num_resamplings,
            }
        return extras

    @property
    def _how_many(self) -> str:
        """Of given draws, where that is known."""
        count = self.plan.independent_draws
        return "" if count is None else f", {count:,} independent"

    def _sides(self) -> dict[str, Any]:
        assert self.two_sided is not None
        bounds, log_z0 = self.two_sided.sandwich, self.run.log_z0
        count = self.plan.independent_draws
        return {
            "forward_log_z": log_z0 + self.judgement.log_mean,
            "forward_std_err": finite_or_none(self.judgement.std_err),
            "forward_status": self.judgement.status.value,
            "lower": log_z0 + bounds.lower,
            "lower_std_err": finite_or_none(bounds.lower_std_err),
            "upper": log_z0 + bounds.upper,
            "upper_std_err": finite_or_none(bounds.upper_std_err),
            "gap": bounds.gap,
            "gap_std_err": finite_or_none(bounds.gap_std_err),
            "overlap": self.two_sided.overlap,
            "draws": self.plan.draws,
        } | ({} if count is None else {"independent_draws": count})


def _in_words(value: Any) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else f"{value:.4f}"
