"""log Z of a model by replica exchange: the result with the plan that led to it."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from annealz.core.cost import Cost
from annealz.core.numerics import with_error
from annealz.diagnostics.findings import Findings
from annealz.diagnostics.sheet import Figure, Section, Sheet, Table, View, record_of
from annealz.diagnostics.status import against_exact, stated_interval, stated_std_err
from annealz.methods.estimate import AbstractEstimate
from annealz.methods.exchange.result import Exchange

if TYPE_CHECKING:
    from annealz.methods.exchange.method import ExchangePlan

_RELIABLE = (
    "The error bar can be used: replicas went from the base to the target and back in all that was "
    "averaged, and log Z did not move on the way. No diagnosis can see a mode that no replica has reached."
)


@dataclasses.dataclass(frozen=True, repr=False)
class ExchangeEstimate(AbstractEstimate):
    """log Z by replica exchange, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> options = {"num_rungs": 6, "num_ensembles": 16, "num_steps": 400, "seed": 1}
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), method="exchange", **options)
    >>> abs(estimate.log_z - estimate.exact_log_z) < 5 * estimate.std_err
    True
    """

    plan: "ExchangePlan"
    exchange: Exchange

    @property
    def log_z(self) -> float:
        """Natural logarithm, of the last round."""
        return self.exchange.log_z

    @property
    def std_err(self) -> float:
        """Standard error of `log_z`: over ensembles, and of the arithmetic (`status.py`)."""
        return stated_std_err(self.exchange.std_err)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return Student's confidence interval of log Z, over ensembles."""
        return stated_interval(self.log_z, self.exchange.interval(level), level)

    @property
    def findings(self) -> Findings:
        """All that speaks against the estimate, a known log Z among it."""
        exact = against_exact(self.log_z, self.std_err, self.exact_log_z)
        return {**self.exchange.findings, **exact}

    @functools.cached_property
    def costs(self) -> dict[str, Cost]:
        """The costs of pilots and of all rounds."""
        each = self.plan.evaluations_a_sweep
        return {"pilot": self.plan.cost, "main": self.exchange.cost(each)}

    @property
    def provenance(self) -> dict[str, Any]:
        """A record of all that is needed to make this number again."""
        return {**self.plan.to_dict(), "purpose": self.exchange.purpose}

    def sheet(self) -> Sheet:
        """Return what it shows."""
        ran = self.exchange
        rows = [
            ("method", f"replica exchange, {ran.num_sweeps:,} sweeps"),
            ("ladder", f"{ran.num_rungs} temperatures, barrier {ran.barrier:.2f}"),
            (
                "round trips",
                f"{ran.round_trips:,} in {ran.num_ensembles} ensembles, in the last round",
            ),
        ]
        lines = [
            (
                str(i),
                f"{one.num_sweeps:,}",
                f"{one.barrier:.2f}",
                with_error(one.log_z, one.std_err),
                f"{one.round_trips.sum():,}",
            )
            for i, one in enumerate(ran.rounds, 1)
        ]
        record = {
            "ess": None,
            "num_steps": ran.num_sweeps,
            "num_chains": ran.num_rungs * ran.num_ensembles,
            "schedule": "ladder",
            **record_of(ran, "num_rungs num_ensembles barrier round_trips betas"),
            "rounds": ran.table(),
        }
        table = Table(lines, ("round", "sweeps", "barrier", "log Z", "round trips"))
        curves = [("β of the temperatures", ran.betas)]
        return self._sheet(rows, record, reliable=_RELIABLE, table=table, curves=curves)

    plot = View("plots.results.plot_exchange")
    """Draw the ladder with its barrier, and log Z round by round; return the matplotlib figure."""

    def sections(self) -> tuple[Section, ...]:
        """Return what its page shows below the result."""
        ran = self.exchange
        density = ran.last.rejections / np.diff(ran.betas)
        steep = ran.betas[int(np.argmax(density))]
        half = float(np.interp(ran.num_rungs / 2, np.arange(ran.num_rungs), ran.betas))
        words = (
            f"{ran.num_ensembles} independent ensembles of {ran.num_rungs} replicas exchanged their "
            "temperatures after every sweep. Between rounds the temperatures moved to where swaps are "
            "refused equally often. Only the last round gives log Z. A barrier and a log Z that no longer "
            "move are a good sign."
        )
        ladder = (
            f"The barrier up to each temperature, {ran.barrier:.2f} in all: an ensemble makes at most one "
            f"round trip in {2 + 2 * ran.barrier:.0f} sweeps. It is steepest near β = {steep:.3g}, and "
            f"half of the temperatures lie above β = {half:.3g}."
        )
        rounds = (
            f"log Z of every round by itself: {ran.rounds[0].log_z:.3f} from the first, {ran.log_z:.3f} "
            "from the last. Rounds that still rise have not settled."
        )
        figures = [
            Figure("ladder", ran.plot_ladder, ladder),
            Figure("rounds", lambda: ran.plot_rounds(exact_log_z=self.exact_log_z), rounds),
        ]
        temperatures = f"{ran.num_rungs} temperatures, {ran.num_ensembles} ensembles"
        own = Section("Replica exchange", [words, *figures])
        return self._sections(own, provenance=[("ladder", temperatures)])
