"""What every estimate of log Z has, by any method."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import ndtri

from annealz.core.cost import Cost
from annealz.core.numerics import finite_or_none
from annealz.core.text import interval_text, with_error
from annealz.diagnostics.findings import Findings, Note
from annealz.diagnostics.sheet import Code, Result, Row, Section, Sheet, Table
from annealz.diagnostics.status import Judged, Status, check_level, status_of
from annealz.methods.annealing.advice import advice_of, next_command
from annealz.methods.request import Request

if TYPE_CHECKING:
    from annealz.methods.plan import Plan
    from annealz.methods.posterior import Mean, Posterior
    from annealz.methods.problem import Problem

__all__ = ["AbstractEstimate", "reproduction_sections"]

_MEANINGS = {
    Status.OK: "The error bar can be used: nothing that was checked contradicts it.",
    Status.UNRELIABLE: "Do not use this number as it is: its error bar cannot be relied on, and log Z may "
    "be off on either side.",
}


@dataclasses.dataclass(frozen=True, repr=False)
class AbstractEstimate(Judged, Result):
    """log Z of a model, and all that stands behind it.

    A subclass adds its runs, and has `log_z`, `std_err` and `findings`.
    """

    moves: ClassVar[str] = "sweeps"
    """What the applications of its kernel are called."""
    base_name: ClassVar[str] = "base"
    """What its base is called."""

    plan: "Plan"
    """What was asked for, and what pilots decided."""
    extra_messages: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)

    @property
    def log_z(self) -> float:
        """Natural logarithm."""
        raise NotImplementedError

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`."""
        raise NotImplementedError

    @property
    def findings(self) -> Findings:
        """What speaks for or against the estimate."""
        return {}

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """Of pilots, and of the runs."""
        return {"pilot": self.plan.cost}

    @property
    def is_low(self) -> bool:
        """Whether log Z is biased low."""
        return False

    @property
    def problem(self) -> "Problem | None":
        """What was sampled, where it is known: the way from states to parameters."""
        return self.plan.problem

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
        """The layer whose states are moved, of a model that has several."""
        return self.plan.marginal

    @property
    def seed(self) -> int:
        """Of all random bits."""
        return self.plan.request.seed

    @property
    def exact_log_z(self) -> float | None:
        """Where it is known: recorded in the file, or found in no time."""
        return self.plan.exact_log_z

    @property
    def status(self) -> Status:
        """Whether the error can be used: not where any evidence contradicts."""
        return status_of(self.findings)

    @property
    def status_in_words(self) -> str:
        """The status, and what it does not rest on."""
        return self.status.value

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know, as data: findings, text such as that a disk is full, and advice."""
        advice = advice_of(self)
        extra = dict.fromkeys((*self._run_messages(), *self.extra_messages))
        return (*self.findings.values(), *extra, *([advice] if advice.remedies else []))

    @functools.cached_property
    def posterior(self) -> "Posterior | None":
        """Weighted draws of a density's parameters, by name; None where there are none."""
        return None

    def expectation(self, what: str | Callable[[Mapping[str, np.ndarray]], Any]) -> "Mean":
        """Return the posterior mean of a parameter, or of a function of all of them, with its error."""
        if self.posterior is None:
            raise ValueError(
                f"the estimate of {self.model} has no posterior: expectations are of densities; a run that "
                "was read from a folder has one with resume(out, model=model)."
            )
        return self.posterior.expectation(what)

    @property
    def sweeps(self) -> dict[str, int]:
        """Kernel applications, by stage."""
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
        """Return the confidence interval of log Z."""
        check_level(level)
        half = float(ndtri((1 + level) / 2)) * self.std_err
        return self.log_z - half, self.log_z + half

    @property
    def provenance(self) -> dict[str, Any]:
        """What is needed to make this number again."""
        return self.plan.to_dict()

    def with_message(self, message: str) -> Self:
        """Return the estimate with one thing more to say."""
        return dataclasses.replace(self, extra_messages=(*self.extra_messages, message))

    def sheet(self) -> Sheet:
        """Return what it shows; a subclass adds a table and curves."""
        headline = ("log Z", with_error(self.log_z, self.std_err))
        exact = self.exact_log_z
        rows = [("model", self.model), headline, ("95 % interval", interval_text(self.interval()))]
        if exact is not None:
            gap = self.log_z - exact
            known = 0 < self.std_err < np.inf
            errors = f", {abs(gap) / self.std_err:.1f} standard errors" if known else ""
            rows.append(("exact log Z", f"{exact:.4f} (off by {gap:+.4f}{errors})"))
        counts = {self.moves: self.sweeps, "evaluations": self.evaluations or {}}
        spent = [f"{sum(one.values()):,} {name}" for name, one in counts.items() if one]
        rows += [
            *self._own_rows(),
            (
                self.base_name,
                f"{self.base}, {self.marginal} marginal" if self.marginal else self.base,
            ),
            ("seed", str(self.seed)),
            ("cost", ", ".join([*spent, f"{self.seconds:.1f} s"])),
            ("status", self.status_in_words),
        ]
        return Sheet(
            name=type(self).__name__,
            title=f"log Z of {self.model}",
            headline=headline,
            rows=rows,
            status=self.status,
            meaning=self._meanings()[self.status],
            notes=self.notes,
            next_command=next_command(self),
            record=self._record(),
        )

    def sections(self) -> tuple[Section, ...]:
        """Return what its page shows below the result."""
        plan, name = self.plan, self.base_name
        rows = [
            ("model", plan.source or self.model),
            ("model digest", plan.model_digest),
            (name, self.base),
            (f"{name} digest", plan.base_digest or "none"),
            *self._own_provenance(),
            ("seed", str(self.seed)),
        ]
        return (
            *self._own_sections(),
            Section("Cost", [self._cost_table()]),
            *reproduction_sections(plan.request, plan.versions, dict(rows)),
        )

    def _cost_table(self) -> Table:
        costs = self._stage_costs()
        costs["all"] = sum(costs.values(), Cost())
        is_counted = self.evaluations is not None
        headings = ["part", self.moves, *(["evaluations"] if is_counted else []), "seconds"]
        rows = [
            [
                name,
                f"{cost.sweeps:,}",
                *([f"{cost.evaluations:,}"] if is_counted else []),
                f"{cost.seconds:.1f}",
            ]
            for name, cost in costs.items()
        ]
        return Table(rows, headings)

    def _record(self) -> dict[str, Any]:
        """Return the estimate as JSON values."""
        evaluations = {} if self.evaluations is None else {"evaluations": self.evaluations}
        return {
            "model": self.model,
            "method": self.plan.request.method,
            "log_z": finite_or_none(self.log_z),
            "std_err": finite_or_none(self.std_err),
            "interval": [finite_or_none(bound) for bound in self.interval()],
            **self._own_record(),
            "base": self.base,
            "seed": self.seed,
            "exact_log_z": self.exact_log_z,
            "sweeps": self.sweeps,
            **evaluations,
            "seconds": self.seconds,
        }

    # what a subclass may add

    def _meanings(self) -> Mapping[Status, str]:
        """Return what each status says of this number."""
        return _MEANINGS

    def _run_messages(self) -> Sequence[str]:
        """Return what runs had to say, such as that a disk is full."""
        return ()

    def _own_rows(self) -> Sequence[Row]:
        """Return rows between the interval and the base."""
        return ()

    def _own_record(self) -> dict[str, Any]:
        """Return JSON values beside those of every estimate."""
        return {}

    def _own_sections(self) -> Sequence[Section]:
        """Return sections between the result and its cost."""
        return ()

    def _own_provenance(self) -> Sequence[Row]:
        """Return rows of the provenance."""
        return ()

    def _stage_costs(self) -> dict[str, Cost]:
        """Return the cost of every stage, for the page."""
        return dict(self.costs)


def reproduction_sections(
    request: Request, versions: Mapping[str, str], rows: Mapping[str, str]
) -> tuple[Section, Section]:
    """Return what a page says of how its result is made again; `rows` are of its provenance."""
    again = request.reproduction(digest=rows["model digest"])
    given = "the same bits" if again.is_exact else "another run like it"
    promise = f"With the versions below, on a processor of the same kind, this gives {given}:"
    model = {"model": request.model} if isinstance(request.model, str) else {}
    software = [f"{name} {one}" for name, one in versions.items() if name != "device"]
    known = {"device": versions.get("device", "unknown"), "software": ", ".join(software)}
    provenance = list({**rows, **model, **known}.items())
    return (
        Section("Reproduce", [promise, Code(again.text), again.notes]),
        Section("Provenance", [Table(provenance)]),
    )
