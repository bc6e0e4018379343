"""log Z of a model by replica exchange: the result with the settings that led to it."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.core.cost import Cost
from annealz.core.numerics import finite_or_none
from annealz.core.text import as_text
from annealz.diagnostics.findings import Findings, Note, in_options, in_python, messages_of
from annealz.diagnostics.stated import stated_interval, stated_std_err
from annealz.diagnostics.status import Judged, Status, against_exact, status_of
from annealz.methods.exchange.result import Exchange

if TYPE_CHECKING:
    from annealz.methods.exchange.method import ExchangePlan

__all__ = ["ExchangeEstimate"]


@dataclasses.dataclass(frozen=True, repr=False)
class ExchangeEstimate(Judged):
    """log Z by replica exchange, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(
    ...     random_rbm(4, 6),
    ...     method="exchange",
    ...     base="visible-bias",
    ...     num_rungs=6,
    ...     num_ensembles=16,
    ...     num_steps=400,
    ...     seed=1,
    ... )
    >>> estimate.status.value, estimate.messages, estimate.findings, estimate.notes
    ('ok', (), {}, ())
    >>> abs(estimate.log_z - estimate.exact_log_z) < 5 * estimate.std_err
    True
    >>> low, high = estimate.interval(0.99)
    >>> low < estimate.log_z < high
    True
    >>> estimate.model, estimate.base, estimate.marginal, estimate.seed
    ('rbm-4x6', 'visible-bias', 'visible', 1)
    >>> estimate.sweeps, estimate.seconds > 0, estimate.evaluations is None
    ({'pilot': 0, 'main': 38400}, True, True)
    >>> dict(estimate.rows())["ladder"].startswith("6 temperatures"), estimate.to_dict()["method"]
    (True, 'exchange')
    >>> estimate.headings(), len(estimate.table())
    (('round', 'sweeps', 'barrier', 'log Z', 'round trips'), 3)
    >>> estimate.provenance["num_rungs"], estimate.with_message("made on a Sunday.").messages
    (6, ('made on a Sunday.',))
    >>> estimate.plot().savefig("exchange.png")
    >>> estimate.report("page.html")
    """

    plan: "ExchangePlan"
    """What was asked for, and what pilots decided."""
    exchange: Exchange
    extra_messages: tuple[str, ...] = ()

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
        """The base, by name."""
        return self.plan.base

    @property
    def marginal(self) -> str | None:
        """The layer whose states are moved, of a model that has several."""
        return self.plan.marginal

    @property
    def exact_log_z(self) -> float | None:
        """If it is known: recorded in the file, or quick to compute."""
        return self.plan.exact_log_z

    @property
    def log_z(self) -> float:
        """Natural logarithm, of the last round."""
        return self.exchange.log_z

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`: over ensembles, and of the arithmetic (`stated.py`)."""
        return stated_std_err(self.exchange.std_err)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student's confidence interval of log Z, over ensembles."""
        return stated_interval(self.log_z, self.exchange.interval(level), level)

    @property
    def seed(self) -> int:
        """Of all random bits."""
        return self.exchange.seed

    @property
    def findings(self) -> Findings:
        """What speaks against the estimate; a known log Z among it."""
        exact = against_exact(self.log_z, self.std_err, self.exact_log_z)
        return {**self.exchange.findings, **exact}

    @property
    def status(self) -> Status:
        """Whether the error can be used."""
        return status_of(self.findings)

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know, and what to do about it; empty if there is nothing to report."""
        return messages_of(self.notes, in_python)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The same as data: findings, and text such as that a disk is full."""
        return (*self.findings.values(), *self.exchange.extra_messages, *self.extra_messages)

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """Of pilots, and of all rounds."""
        each = self.plan.evaluations_a_sweep
        return {"pilot": self.plan.cost, "main": self.exchange.cost(each)}

    @property
    def sweeps(self) -> dict[str, int]:
        """Kernel applications: those of pilots, and those of all rounds."""
        return {name: cost.sweeps for name, cost in self.costs.items()}

    @property
    def evaluations(self) -> dict[str, int] | None:
        """Evaluations of the density, with or without its gradient; None where they are not counted."""
        if self.plan.evaluations_a_sweep is None:
            return None
        return {name: cost.evaluations for name, cost in self.costs.items()}

    @property
    def seconds(self) -> float:
        """Wall clock of pilots and rounds."""
        return sum(cost.seconds for cost in self.costs.values())

    @property
    def provenance(self) -> dict[str, Any]:
        """What is needed to reproduce this number."""
        return {**self.plan.to_dict(), "purpose": self.exchange.purpose}

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; what is unknown is None."""
        ran = self.exchange
        extras = {} if self.evaluations is None else {"evaluations": self.evaluations}
        return {
            "model": self.model,
            "log_z": finite_or_none(self.log_z),
            "std_err": finite_or_none(self.std_err),
            "interval": [finite_or_none(bound) for bound in self.interval()],
            "ess": None,
            "num_steps": ran.num_sweeps,
            "num_chains": ran.num_rungs * ran.num_ensembles,
            "schedule": "ladder",
            "base": self.base,
            "seed": self.seed,
            "status": self.status.value,
            "messages": list(messages_of(self.notes, in_options)),
            "exact_log_z": self.exact_log_z,
            "sweeps": self.sweeps,
            "seconds": self.seconds,
            "method": "exchange",
            "num_rungs": ran.num_rungs,
            "num_ensembles": ran.num_ensembles,
            "barrier": ran.barrier,
            "round_trips": ran.round_trips,
            "betas": ran.betas.tolist(),
            "rounds": [{**row, "std_err": finite_or_none(row["std_err"])} for row in ran.table()],
            **extras,
        }

    def rows(self) -> list[tuple[str, str]]:
        """The result as label and value, for people."""
        ran, (low, high) = self.exchange, self.interval()
        is_known = np.isfinite(self.std_err)
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
        spent = ""
        if self.evaluations is not None:
            spent = f"{sum(self.evaluations.values()):,} evaluations, "
        trips = ran.round_trips
        return [
            *rows,
            ("method", f"replica exchange, {ran.num_sweeps:,} sweeps"),
            ("ladder", f"{ran.num_rungs} temperatures, barrier {ran.barrier:.2f}"),
            ("round trips", f"{trips:,} in {ran.num_ensembles} ensembles, in the last round"),
            ("base", f"{self.base}, {self.marginal} marginal" if self.marginal else self.base),
            ("seed", str(self.seed)),
            ("cost", f"{sum(self.sweeps.values()):,} sweeps, {spent}{self.seconds:.1f} s"),
            ("status", self.status.value),
        ]

    def headings(self) -> tuple[str, ...]:
        """Of the columns of `table`."""
        return "round", "sweeps", "barrier", "log Z", "round trips"

    def table(self) -> list[tuple[str, ...]]:
        """The rounds, for people: a row each."""
        return [
            (
                str(i),
                f"{row['sweeps']:,}",
                f"{row['barrier']:.2f}",
                f"{row['log_z']:.4f} ± "
                + (f"{row['std_err']:.4f}" if np.isfinite(row["std_err"]) else "unknown"),
                f"{row['round_trips']:,}",
            )
            for i, row in enumerate(self.exchange.table(), 1)
        ]

    def with_message(self, message: str) -> "ExchangeEstimate":
        """The same with one thing more to say."""
        return dataclasses.replace(self, extra_messages=(*self.extra_messages, message))

    def plot(self):
        """The ladder with its barrier, and log Z round by round: a matplotlib figure."""
        from annealz.views.plots import plot_exchange

        return plot_exchange(self)

    def report(self, path: str | Path) -> None:
        """Write all of it as one HTML page that needs nothing else."""
        from annealz.views.report import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        return as_text("ExchangeEstimate", self.rows(), self.messages)

    def _repr_html_(self) -> str:
        from annealz.views.show.html import exchange_estimate_html

        return exchange_estimate_html(self)
