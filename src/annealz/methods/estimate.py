"""The base class of estimates of log Z, by any method."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from annealz.core.cost import Cost
from annealz.core.numerics import interval_text, with_error
from annealz.diagnostics.findings import Findings, Note
from annealz.diagnostics.sheet import Code, Result, Row, Section, Sheet, Table, record_of
from annealz.diagnostics.status import Judged, Status, normal_interval, status_of
from annealz.methods.annealing.advice import advice_of, next_command
from annealz.methods.request import Request

if TYPE_CHECKING:
    from annealz.methods.plan import Plan
    from annealz.methods.posterior import Mean, Posterior
    from annealz.methods.problem import Problem

_RELIABLE = "The error bar can be used: nothing that was checked contradicts it."
_UNRELIABLE = (
    "Do not use this number as it is: its error bar cannot be relied on, and log Z may be off on either "
    "side."
)


@dataclasses.dataclass(frozen=True, repr=False)
class AbstractEstimate(Judged, Result):
    """log Z of a model, and all that stands behind it.

    A subclass adds its runs, and has `log_z`, `std_err` and `findings`.
    """

    moves: ClassVar[str] = "sweeps"
    """The name of applications of its kernel."""
    base_name: ClassVar[str] = "base"
    """The name of its base in rows."""

    plan: "Plan"
    """The request, and what pilots decided."""
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
        """All that speaks for or against the estimate."""
        return {}

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """The costs of pilots and of the runs."""
        return {"pilot": self.plan.cost}

    @functools.cached_property
    def stages(self) -> dict[str, Cost]:
        """The costs of all stages, by their names for people."""
        return self.costs

    @property
    def is_low(self) -> bool:
        """Whether log Z is biased low."""
        return False

    @property
    def problem(self) -> "Problem | None":
        """The problem that was sampled, where it is known: the way from states to parameters."""
        return self.plan.problem

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.plan.request.method

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.plan.model

    @property
    def base(self) -> str:
        """The name of the base."""
        return self.plan.base

    @property
    def marginal(self) -> str | None:
        """The layer whose states are moved, of a model that has several."""
        return self.plan.marginal

    @property
    def seed(self) -> int:
        """The seed of all random bits."""
        return self.plan.request.seed

    @property
    def exact_log_z(self) -> float | None:
        """The exact value where it is known: recorded in the file, or found in no time."""
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
        """Findings, text such as that a disk is full, and advice, as data."""
        advice, extra = advice_of(self), dict.fromkeys(self.extra_messages)
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
        return normal_interval(self.log_z, self.std_err, level)

    @property
    def provenance(self) -> dict[str, Any]:
        """A record of all that is needed to make this number again."""
        return self.plan.to_dict()

    def with_message(self, message: str) -> Self:
        """Return the estimate with one thing more to say."""
        return dataclasses.replace(self, extra_messages=(*self.extra_messages, message))

    def sheet(self) -> Sheet:
        """Return what it shows."""
        return self._sheet()

    def sections(self) -> tuple[Section, ...]:
        """Return what its page shows below the result."""
        return self._sections()

    def _sheet(
        self,
        rows: Sequence[Row] = (),
        record: Mapping[str, Any] | None = None,
        *,
        reliable: str = _RELIABLE,
        unreliable: str = _UNRELIABLE,
        **more: Any,
    ) -> Sheet:
        """Return a sheet with the rows, the JSON values and the words for either status of a method."""
        headline, exact = ("log Z", with_error(self.log_z, self.std_err)), self.exact_log_z
        first = [("model", self.model), headline, ("95 % interval", interval_text(self.interval()))]
        if exact is not None:
            gap = self.log_z - exact
            known = 0 < self.std_err < np.inf
            errors = f", {abs(gap) / self.std_err:.1f} standard errors" if known else ""
            first.append(("exact log Z", f"{exact:.4f} (off by {gap:+.4f}{errors})"))
        counts = {self.moves: self.sweeps, "evaluations": self.evaluations or {}}
        spent = [f"{sum(one.values()):,} {name}" for name, one in counts.items() if one]
        base = f"{self.base}, {self.marginal} marginal" if self.marginal else self.base
        last = [
            (self.base_name, base),
            ("seed", str(self.seed)),
            ("cost", ", ".join([*spent, f"{self.seconds:.1f} s"])),
            ("status", self.status_in_words),
        ]
        names = "base seed exact_log_z sweeps seconds"
        names += "" if self.evaluations is None else " evaluations"
        known = record_of(self, "model method log_z std_err interval")
        return self.described(
            headline,
            [*first, *rows, *last],
            meaning=reliable if self.status else unreliable,
            next_command=next_command(self),
            record={**known, **(record or {}), **record_of(self, names)},
            **more,
        )

    def _sections(self, *own: Section, provenance: Sequence[Row] = ()) -> tuple[Section, ...]:
        """Return the sections of a method, and what every page shows below them."""
        plan, name = self.plan, self.base_name
        rows = [
            ("model", plan.source or self.model),
            ("model digest", plan.model_digest),
            (name, self.base),
            (f"{name} digest", plan.base_digest or "none"),
            *provenance,
            ("seed", str(self.seed)),
        ]
        reproduction = reproduction_sections(plan.request, plan.versions, dict(rows))
        return (*own, Section("Cost", [self._cost_table()]), *reproduction)

    def _cost_table(self) -> Table:
        stages = {**self.stages, "all": sum(self.stages.values(), Cost())}
        columns = {
            "part": list(stages),
            self.moves: [f"{cost.sweeps:,}" for cost in stages.values()],
            "evaluations": [f"{cost.evaluations:,}" for cost in stages.values()],
            "seconds": [f"{cost.seconds:.1f}" for cost in stages.values()],
        }
        if self.evaluations is None:
            del columns["evaluations"]
        return Table(list(zip(*columns.values(), strict=True)), list(columns))


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
