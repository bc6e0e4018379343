"""The log-likelihood of data under a model whose log Z is estimated.

    log p(v) = log p*(v) - log Z^,     mean over the examples, in nats per example

Two errors, kept apart because they answer different questions and are independent of each other:

    of log Z      shared by all examples; the only error of the mean over these very examples
    of the data   std of log p*(v) / sqrt(examples); with it, the mean over all that the data come from

Both together in quadrature, s^2 = s_Z^2 + s_D^2. Intervals likewise, each side on its own, because that of
log Z may be lopsided (Zou & Donner 2008):

    low  = mean - sqrt((z s_D)^2 + (high_Z - log Z^)^2)
    high = mean + sqrt((z s_D)^2 + (log Z^ - low_Z)^2)

Bias: log Z^ is biased low, so that the log-likelihood is biased high. Where the weights cannot be
trusted it is likely an upper bound, and a model looks better than it is. `conservative.py` computes a
lower bound.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from annealz.api import estimate_log_z
from annealz.core.errors import InputError
from annealz.core.numerics import error_text, interval_text, with_error
from annealz.diagnostics.findings import Finding, Kind, Note, Remedy
from annealz.diagnostics.sheet import Result, Sheet, data_frame, record_of
from annealz.diagnostics.status import Judged, Status
from annealz.engine.context import Context
from annealz.engine.progress import Progress
from annealz.methods.annealing.estimate import Estimate
from annealz.models.abstract import AbstractModel
from annealz.models.density import log_densities
from annealz.models.formats.load import load_model
from annealz.models.rbm import RBM
from annealz.results.conservative import (
    NUM_CHAINS,
    NUM_EXAMPLES,
    Conservative,
    conservative_log_z,
)
from annealz.results.examples import check_examples, read_examples

_MOST_ERRORS = 2.0  # by which a bound may lie on the wrong side by chance
_ROWS_OF_LOG_Z = {"log Z", "exact log Z", "ESS", "schedule", "base", "seed", "cost", "status"}
_ROWS_OF_LOG_Z |= {"method", "ladder", "round trips"}  # of replica exchange
_RECORDED = (
    "model data num_examples log_likelihood std_err std_err_log_z std_err_data interval interval_log_z "
    "exact_log_likelihood"
)


@dataclasses.dataclass(frozen=True, repr=False)
class Likelihood(Result, Judged):
    """The mean log-likelihood of data, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> rows, _ = annealz.exact_samples(random_rbm(4, 6), 50)
    >>> options = {"schedule": "linear", "num_steps": 100, "num_chains": 100}
    >>> likelihood = annealz.log_likelihood(random_rbm(4, 6), rows, **options)
    >>> low, high = likelihood.interval_log_z()  # of these examples, and of all they come from
    >>> likelihood.interval()[0] < low < likelihood.log_likelihood < high < likelihood.interval()[1]
    True
    """

    data: str
    log_densities: np.ndarray
    """(examples,): log p*(v)."""
    estimate: Estimate
    conservative: Conservative | None = None

    @property
    def model(self) -> str:
        """What the model is called."""
        return self.estimate.model

    @property
    def num_examples(self) -> int:
        """How many there are."""
        return self.log_densities.size

    @property
    def log_likelihoods(self) -> np.ndarray:
        """(examples,): log p(v); the error of log Z is common to all."""
        return self.log_densities - self.estimate.log_z

    @property
    def log_likelihood(self) -> float:
        """Mean log p(v), in nats per example: biased high."""
        return self._given(self.estimate.log_z)

    @property
    def std_err_log_z(self) -> float:
        """What the error of log Z contributes."""
        return self.estimate.std_err

    @property
    def std_err_data(self) -> float:
        """What the choice of examples contributes; infinite for a single one."""
        if self.num_examples < 2:
            return np.inf
        return float(self.log_densities.std(ddof=1) / np.sqrt(self.num_examples))

    @property
    def std_err(self) -> float:
        """Both, in quadrature."""
        return float(np.hypot(self.std_err_log_z, self.std_err_data))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval with both errors: the mean over all that the data come from."""
        mean, half = self.log_likelihood, ndtri((1 + level) / 2) * self.std_err_data
        below, above = np.hypot(half, np.subtract(self.interval_log_z(level), mean))
        return mean - float(below), mean + float(above)

    def interval_log_z(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval with the error of log Z only: the mean over these very examples."""
        low, high = self.estimate.interval(level)
        return self._given(high), self._given(low)

    @property
    def exact_log_likelihood(self) -> float | None:
        """The mean over these examples where log Z is known exactly."""
        exact = self.estimate.exact_log_z
        return None if exact is None else self._given(exact)

    @property
    def conservative_log_likelihood(self) -> float | None:
        """The lower bound of the mean, if it was asked for."""
        return None if self.conservative is None else self._given(self.conservative.log_z)

    @property
    def status(self) -> Status:
        """That of log Z."""
        return self.estimate.status

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know: of log Z, and what that means for the log-likelihood."""
        found: list[Finding] = []
        if self._is_upper_bound:
            words = "which also computes a lower bound, or more steps"
            other = Remedy(conservative=True, words=words) if self.conservative is None else None
            found.append(Finding.of(Kind.LIKELIHOOD_IS_HIGH, other))
        elif self.status is not Status.OK:
            found.append(Finding.of(Kind.LIKELIHOOD_IS_OFF))
        return (*found, *self.estimate.notes, *self._against_conservative())

    def _against_conservative(self) -> list[Finding]:
        """Find out whether the lower bound lies above the exact log-likelihood, or above the other."""
        if self.conservative is None:
            return []
        known, error = self.estimate.exact_log_z, 0.0
        if known is None:
            known, error = self.estimate.log_z, self.std_err_log_z
        errors = np.hypot(self.conservative.std_err, error)
        is_above = known - self.conservative.log_z > _MOST_ERRORS * errors
        return [Finding.of(Kind.BOUNDS_NOTHING)] if is_above else []

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        bound = ", likely an upper bound" if self._is_upper_bound else ""
        of_these = interval_text(self.interval_log_z())
        number = with_error(self.log_likelihood, self.std_err)
        headline = "log-likelihood", f"{number} nats per example{bound}"
        of_log_z = f"{error_text(self.std_err_log_z)}; of these very examples {of_these}"
        rows = [
            ("model", self.model),
            ("data", f"{self.data}, {self.num_examples:,} examples"),
            headline,
            ("95 % interval", interval_text(self.interval())),
            ("error of the data", error_text(self.std_err_data)),
            ("error of log Z", of_log_z),
        ]
        exact, bounds, record = self.exact_log_likelihood, self.conservative, None
        if exact is not None:
            gap = self.log_likelihood - exact
            rows.append(("exact", f"{exact:.4f} of these very examples (off by {gap:+.4f})"))
        if bounds is not None:
            low = self._given(bounds.log_z)
            gap = self.log_likelihood - low
            size = f"{abs(gap):.4f} {'below' if gap > 0 else 'above'}"
            chains = f"{bounds.num_examples} examples, {bounds.num_chains} chains each"
            cost = f"{bounds.run.sweeps:,} sweeps, {bounds.run.seconds:.1f} s"
            rows.append(("conservative", f"{with_error(low, bounds.std_err)} ({size})"))
            rows.append(("… with", f"{chains}, {cost}"))
            record = {"log_likelihood": low, **bounds.record()}
        rows += [row for row in self.estimate.rows() if row[0] in _ROWS_OF_LOG_Z]
        more = {"conservative": record, "estimate": self.estimate.to_dict()}
        return self.described(headline, rows, record=record_of(self, _RECORDED) | more)

    def to_pandas(self):
        """Return log p*(v) and log p(v) as a pandas table, one row per example."""
        columns = {"log_density": self.log_densities, "log_likelihood": self.log_likelihoods}
        return data_frame(columns, "example")

    @property
    def _is_upper_bound(self) -> bool:
        """Whether log Z is likely too low: it comes from forward weights that cannot be trusted."""
        return self.status is not Status.OK and self.estimate.is_low

    def _given(self, log_z: float) -> float:
        """Return the mean log p(v) with this log Z."""
        return float(self.log_densities.mean() - log_z)


def log_likelihood(
    model: AbstractModel | str | Path,
    data: str | Path | np.ndarray,
    *,
    alphabet: str | None = None,
    estimate: Estimate | None = None,
    conservative: bool = False,
    conservative_examples: int = NUM_EXAMPLES,
    conservative_chains: int = NUM_CHAINS,
    data_name: str = "data",
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Likelihood:
    """Return the mean log-likelihood of data under a model.

    Parameters
    ----------
    model : a model whose log p* of the visible units is known, the name of a packaged one, or a file
    data : examples (rows, visible): zeros and ones, states from 0 on, or real numbers, as the visible units
        are. Or a name, mnist or mnist-test, or a file: of rows, or aligned sequences in FASTA. Of binary
        units values between 0 and 1 are probabilities, and drawn once.
    alphabet : of sequences in FASTA: protein, rna, dna, or the letters in the order of their states; by
        default that of 21 or 5 states
    estimate : log Z of this very model; without it one is made
    conservative : also compute a lower bound, by reverse annealing from a few of the examples
    conservative_examples, conservative_chains : how many of them, and chains for each
    data_name : what to call examples that are given as an array
    progress : show a live bar in a notebook or a terminal
    on_progress : called with a Progress after every chunk
    options : what `estimate_log_z` takes

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> rows, _ = annealz.exact_samples(random_rbm(4, 6), 50)
    >>> options = {"num_steps": 100, "num_chains": 100}
    >>> likelihood = annealz.log_likelihood(random_rbm(4, 6), rows, **options)
    >>> abs(likelihood.log_likelihood - likelihood.exact_log_likelihood) < 0.5
    True
    """
    target = model if isinstance(model, AbstractModel) else load_model(model)
    if isinstance(data, str | Path):
        data_name, rows, _ = read_examples(data, target, alphabet=alphabet)
    elif alphabet is not None:
        raise InputError(
            "alphabet", "is for sequences in FASTA, and {data} is an array: leave one out"
        )
    else:
        rows = check_examples(data, target, data_name)
    rbm = check_conservative(target) if conservative else None
    with Context(progress=progress, on_progress=on_progress) as context:
        if estimate is None:
            estimate = estimate_log_z(model, on_progress=context.on_progress, **options)
        elif options:
            raise ValueError(
                f"an estimate is given, and so is {', '.join(options)} to make one: leave one out."
            )
        elif estimate.plan.model_digest != target.digest:
            raise ValueError(
                f"the estimate is that of another model, {estimate.model}: give its own, or none."
            )
        below = None
        if rbm is not None:
            if not isinstance(estimate, Estimate):
                raise InputError(
                    "conservative",
                    "follows the schedule of an estimate by annealing, and this one is by another "
                    "{method}: leave out one of them",
                )
            below = conservative_log_z(
                rbm,
                rows,
                estimate.schedule,
                num_examples=conservative_examples,
                num_chains=conservative_chains,
                seed=estimate.seed,
                on_progress=context.on_progress,
            )
    return Likelihood(data_name, log_densities(target, rows), estimate, below)


def check_conservative(model: AbstractModel) -> RBM:
    """Refuse a model that reverse annealing from examples does not know."""
    if isinstance(model, RBM):
        return model
    raise InputError(
        "conservative", f"is for RBMs of binary units, got a {type(model).__name__}: leave it out"
    )
