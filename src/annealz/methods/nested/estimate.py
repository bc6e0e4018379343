"""log Z of a density by nested sampling: the result with the settings that led to it."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from annealz.core.numerics import finite_or_none
from annealz.core.text import as_text
from annealz.core.weights import effective_sample_size
from annealz.diagnostics.findings import Findings, Note, Remedy, in_options, in_python, messages_of
from annealz.diagnostics.nested_runs import NestedJudgement
from annealz.diagnostics.stated import stated_interval, stated_std_err
from annealz.diagnostics.status import Judged, Status, against_exact, check_level, status_of
from annealz.methods.nested.result import NestedRun
from annealz.methods.posterior import Mean, Posterior
from annealz.models.parameters import Parameters

if TYPE_CHECKING:
    from annealz.methods.nested.method import NestedPlan

__all__ = ["NestedEstimate"]


@dataclasses.dataclass(frozen=True, repr=False)
class NestedEstimate(Judged):
    """log Z by nested sampling, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -50 * jnp.sum((x - 0.5) ** 2), dim=2, name="bump")
    >>> estimate = annealz.estimate_log_z(
    ...     model, method="nested", base=annealz.GaussianBase.standard(2), num_live=100, num_inner_steps=5, seed=1
    ... )
    >>> estimate.status.value, estimate.messages, estimate.findings, estimate.notes
    ('ok', (), {}, ())
    >>> abs(estimate.log_z - -2.7673) < 5 * estimate.std_err  # log of 2 pi / 100
    True
    >>> low, high = estimate.interval(0.99)
    >>> low < estimate.log_z < high
    True
    >>> estimate.model, estimate.base, estimate.seed, estimate.num_live, estimate.exact_log_z
    ('bump', 'standard', 1, 100, None)
    >>> estimate.evaluations["main"] > estimate.sweeps["main"] > 1000, estimate.seconds > 0
    (True, True)
    >>> 1 < estimate.information < 5
    True
    >>> draws, log_weights = estimate.draws, estimate.log_weights
    >>> draws.shape[1], bool(abs(draws.T @ jnp.exp(log_weights) - 0.5).max() < 0.1)
    (2, True)
    >>> mean, std_err = estimate.expectation("x")
    >>> estimate.posterior.names, mean.shape, estimate.ess > 50
    (('x',), (2,), True)
    >>> dict(estimate.rows())["method"].startswith("nested sampling"), estimate.to_dict()["method"]
    (True, 'nested')
    >>> estimate.headings(), len(estimate.table())
    (('run', 'live points', 'evaluations', 'log Z'), 4)
    >>> estimate.provenance["num_runs"], estimate.next_try
    (4, None)
    >>> estimate.plot().savefig("nested.png")
    >>> estimate.report("page.html")
    """

    plan: "NestedPlan"
    """What was asked for, and what was decided."""
    runs: tuple[NestedRun, ...]
    judgement: NestedJudgement
    seconds: float
    """Wall clock of all runs and of their volumes."""

    @property
    def is_low(self) -> bool:
        """Whether log Z is biased low: no."""
        return False

    @property
    def model(self) -> str:
        """What the model is called."""
        return self.plan.model

    @property
    def base(self) -> str:
        """The prior, by name."""
        return self.plan.base

    @property
    def seed(self) -> int:
        """Of all random numbers."""
        return self.plan.request.seed

    @property
    def num_live(self) -> int:
        """Live points, in all runs together."""
        return self.plan.num_live

    @property
    def exact_log_z(self) -> float | None:
        """If it is known."""
        return self.plan.exact_log_z

    @property
    def log_z(self) -> float:
        """Natural logarithm, of the runs together: the mean over simulated volumes."""
        return self.judgement.merged.log_z

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`: of simulated volumes, or of the spread of the runs if larger."""
        return stated_std_err(self.judgement.std_err)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of log Z."""
        check_level(level)
        half = float(ndtri((1 + level) / 2)) * self.judgement.std_err
        return stated_interval(self.log_z, (self.log_z - half, self.log_z + half), level)

    @property
    def information(self) -> float:
        """H, the mean of log L / Z over the posterior, in nats: log of how much the prior must shrink."""
        return self.judgement.merged.information

    @property
    def findings(self) -> Findings:
        """What speaks against the estimate; a known log Z among it."""
        exact = against_exact(self.log_z, self.std_err, self.exact_log_z)
        return {**self.judgement.findings, **exact}

    @property
    def status(self) -> Status:
        """Whether the error can be used."""
        return status_of(self.findings)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know, as data."""
        return tuple(self.findings.values())

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know, and what to do about it; empty if there is nothing to report."""
        return messages_of(self.notes, in_python)

    @property
    def next_try(self) -> Remedy | None:
        """Settings that may do better; None if there are none, or if all is well."""
        remedies = (one.remedy for one in self.findings.values() if one.kind.is_fatal)
        return next((one for one in remedies if one is not None and one.is_ready), None)

    @property
    def evaluations(self) -> dict[str, int]:
        """Of the density, as they were made."""
        made = sum(one.evaluations for one in self.runs)
        return {"pilot": self.plan.cost.evaluations, "main": made}

    @property
    def sweeps(self) -> dict[str, int]:
        """Slices, of all walks."""
        return {"pilot": 0, "main": sum(one.num_slices for one in self.runs)}

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
    def posterior(self) -> Posterior:
        """The draws by name, in the parameters' own space; those of no weight are left out."""
        is_held = self.log_weights > self.log_weights.max() - _NEGLIGIBLE
        rows = self._parameters.constrain(self.draws[is_held])
        values = {name: np.asarray(value) for name, value in rows.items()}
        return Posterior(self._parameters.names, values, self.log_weights[is_held], self.status)

    def expectation(self, what: str | Callable[[Mapping[str, np.ndarray]], Any]) -> Mean:
        """The posterior mean of a parameter, or of a function of all of them, with its error."""
        return self.posterior.expectation(what)

    @property
    def _parameters(self) -> Parameters:
        assert self.plan.problem is not None
        return self.plan.problem.model.parameters  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def provenance(self) -> dict[str, Any]:
        """What is needed to reproduce this number."""
        return self.plan.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; what is unknown is None."""
        plan = self.plan
        return {
            "model": self.model,
            "log_z": finite_or_none(self.log_z),
            "std_err": finite_or_none(self.std_err),
            "interval": [finite_or_none(bound) for bound in self.interval()],
            "ess": self.ess,
            "num_steps": plan.num_inner_steps,
            "num_chains": plan.num_live,
            "schedule": "nested",
            "base": self.base,
            "seed": self.seed,
            "status": self.status.value,
            "messages": list(messages_of(self.notes, in_options)),
            "exact_log_z": self.exact_log_z,
            "sweeps": self.sweeps,
            "seconds": self.seconds,
            "method": "nested",
            "num_live": plan.num_live,
            "num_runs": plan.num_runs,
            "num_delete": plan.num_delete,
            "num_inner_steps": plan.num_inner_steps,
            "tolerance": plan.tolerance,
            "information": self.information,
            "runs": [
                {
                    "log_z": one.log_z,
                    "std_err": one.std_err,
                    "ending": run.ending.value,
                    "evaluations": run.evaluations,
                }
                for run, one in zip(self.runs, self.judgement.each, strict=True)
            ],
            "evaluations": self.evaluations,
        }

    def rows(self) -> list[tuple[str, str]]:
        """The result as label and value, for people."""
        low, high = self.interval()
        rows = [
            ("model", self.model),
            ("log Z", f"{self.log_z:.4f} ± {self.std_err:.4f}"),
            ("95 % interval", f"{low:.4f} … {high:.4f}"),
        ]
        if self.exact_log_z is not None:
            gap = self.log_z - self.exact_log_z
            errors = f"{abs(gap) / self.std_err:.1f} standard errors"
            rows.append(("exact log Z", f"{self.exact_log_z:.4f} (off by {gap:+.4f}, {errors})"))
        plan = self.plan
        return [
            *rows,
            ("method", f"nested sampling, {plan.num_runs} runs"),
            (
                "live points",
                f"{plan.num_live:,} in all runs, {plan.num_inner_steps} slices per new point",
            ),
            ("information", f"{self.information:.2f} nats"),
            ("prior", self.base),
            ("seed", str(self.seed)),
            ("cost", f"{self.evaluations['main']:,} evaluations, {self.seconds:.1f} s"),
            ("status", self.status.value),
        ]

    def headings(self) -> tuple[str, ...]:
        """Of the columns of `table`."""
        return "run", "live points", "evaluations", "log Z"

    def table(self) -> list[tuple[str, ...]]:
        """The runs, for people: a row each."""
        return [
            (
                str(i),
                f"{run.num_live:,}",
                f"{run.evaluations:,}",
                f"{one.log_z:.4f} ± {one.std_err:.4f}",
            )
            for i, (run, one) in enumerate(zip(self.runs, self.judgement.each, strict=True), 1)
        ]

    def plot(self):
        """Where the evidence lies as the prior shrinks, and log Z of every run: a matplotlib figure."""
        from annealz.views.plots import plot_nested

        return plot_nested(self)

    def report(self, path: str | Path) -> None:
        """Write all of it as one HTML page that needs nothing else."""
        from annealz.views.report import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        return as_text("NestedEstimate", self.rows(), self.messages)

    def _repr_html_(self) -> str:
        from annealz.views.show.html import nested_estimate_html

        return nested_estimate_html(self)


_NEGLIGIBLE = 30.0  # nats below the largest weight
