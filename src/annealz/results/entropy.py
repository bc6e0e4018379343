"""The entropy of a model, from the run that estimated its log Z.

    S = log Z - E[log p*(x)],     in nats;  formula and error in `diagnostics/entropy.py`

x are the variables of the model:

    visible units     of RBMs: p*(v) has the hidden units summed out. Where the hidden layer is annealed, v
                      is drawn given every last h, exactly, and p*(v) taken of it.
    all units         of Ising, Potts and deep models. Where the path sums a layer l out, the states s give
                      E[log p*(s, l) | s] = log p*(s) - H(l | s), in closed form: the mean over draws of l.
    positions         of densities, whose entropy is differential: that of the variables that the density
                      takes, which depends on their units.

Forward chains give it, of a two-sided estimate too. A region of mass 1 / N that chains of a fitted base
have not seen (`diagnostics/status.py`) adds about (1 + log N) / N.
"""

import dataclasses
from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np

from annealz.core.arrays import indices, on_device
from annealz.core.numerics import interval_text, with_error
from annealz.core.random import Stream, derive_seed
from annealz.diagnostics.entropy import EntropyJudgement, judge_entropy
from annealz.diagnostics.findings import Findings, Note
from annealz.diagnostics.sheet import Result, Sheet, record_of
from annealz.diagnostics.status import Judged, Status, stated_interval, stated_std_err, status_of
from annealz.engine.run import Run
from annealz.models.abstract import visible_of
from annealz.models.density import end_of_path, log_densities
from annealz.paths.mixture import MixtureLayerPath

if TYPE_CHECKING:
    from annealz.methods.annealing.estimate import Estimate
    from annealz.methods.problem import Problem

_ROWS = 4096  # at a time
_RECORDED = (
    "std_err interval bits variables is_differential mean_log_density std_err_mean ess estimate"
)
_ROWS_OF_LOG_Z = {"log Z", "exact log Z", "ESS", "resampled", "schedule", "base", "seed", "cost"}


@dataclasses.dataclass(frozen=True, repr=False)
class Entropy(Result, Judged):
    """The entropy of a model, and all that stands behind it.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), num_steps=100, num_chains=100)
    >>> entropy = estimate.entropy()
    >>> abs(entropy.value - 3.344) < 5 * entropy.std_err  # by enumeration
    True
    """

    estimate: "Estimate"
    judgement: EntropyJudgement
    """Of the forward chains."""
    variables: str
    """Of which it is the entropy."""
    is_differential: bool
    """Whether they are real numbers, so that it depends on their units and may be negative."""

    @property
    def model(self) -> str:
        """What the model is called."""
        return self.estimate.model

    @property
    def value(self) -> float:
        """S, in nats."""
        return self.estimate.run.log_z0 + self.judgement.value

    @property
    def bits(self) -> float:
        """S, in bits."""
        return self.value / float(np.log(2))

    @property
    def std_err(self) -> float:
        """Standard error of `value`, in nats."""
        return stated_std_err(self.judgement.std_err, self._num_unseen)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of `value`."""
        log_z0 = self.estimate.run.log_z0
        low, high = self.judgement.interval(level)
        return stated_interval(self.value, (log_z0 + low, log_z0 + high), level, self._num_unseen)

    @property
    def mean_log_density(self) -> float:
        """E[log p*], which `value` is subtracted by."""
        return self.judgement.mean

    @property
    def std_err_mean(self) -> float:
        """Standard error of `mean_log_density`."""
        return self.judgement.mean_std_err

    @property
    def ess(self) -> float:
        """Independent draws of the model whose mean of log p* has the same error."""
        return self.judgement.mean_ess

    @property
    def findings(self) -> Findings:
        """What speaks against it: all that speaks against log Z, and against the mean of log p*."""
        forward = self.estimate.judgement.findings  # two sides lift nothing of the forward weights
        return {**self.estimate.findings, **forward, **self.judgement.findings}

    @property
    def status(self) -> Status:
        """Never ok where log Z is not."""
        return status_of(self.findings)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know: of log Z, and of the mean of log p*."""
        of_log_z = self.estimate.notes
        return (*(one for one in self.findings.values() if one not in of_log_z), *of_log_z)

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        interval, error = self.interval(), self.std_err
        is_known = bool(np.isfinite([error, *interval]).all())
        number = with_error(self.value, error if is_known else None)
        headline = "entropy", number + " nats" * is_known
        in_bits = with_error(self.bits, error / np.log(2)) if is_known else f"{self.bits:.4f}"
        mean = with_error(self.mean_log_density, self.std_err_mean)
        mean += f", ESS {self.ess:.1f}" if np.isfinite(self.std_err_mean) else ""
        has_none = self.estimate.second_opinion is None
        rows = (
            ("model", self.model),
            headline,
            ("95 % interval", interval_text(interval if is_known else (np.nan, np.nan))),
            ("in bits", in_bits),
            ("of", self.variables + (", differential" if self.is_differential else "")),
            ("mean of log p*", mean),
            *(row for row in self.estimate.rows() if row[0] in _ROWS_OF_LOG_Z),
            ("status", self.status.value + ", without a second opinion" * has_none),
        )
        record = {"model": self.model, "entropy": self.value, **record_of(self, _RECORDED)}
        return self.described(headline, rows, record=record)

    @property
    def _num_unseen(self) -> float | None:
        """Chains of a fitted base, less what the surprise at one of them adds to S."""
        number = self.estimate.num_unseen
        return None if number is None else number / (1 + float(np.log(number)))


def entropy_of(estimate: "Estimate") -> Entropy:
    """Return the entropy that the forward run of an estimate gives."""
    problem = estimate.problem
    if problem is None:
        raise ValueError(
            f"the estimate of {estimate.model} does not hold its model, of whose density the entropy is a "
            "mean: read the run with resume(out, model=model)."
        )
    values = _log_densities(problem, estimate.run, estimate.seed)
    judgement = judge_entropy(estimate.log_weights, values, estimate.run.island_size)
    return Entropy(estimate, judgement, _variables(problem), visible_of(problem.model).is_real)


def _log_densities(problem: "Problem", run: Run, seed: int) -> np.ndarray:
    """Return log p* of the last states (chains,), float64, or its mean given them."""
    model, path = problem.model, problem.states
    flat = path.flat if isinstance(path, MixtureLayerPath) else path
    values, bits = [], Stream(derive_seed(seed, "entropy"), "draws")
    for start in range(0, run.num_chains, _ROWS):
        x = on_device(run.states[start : start + _ROWS])
        if model.sums_out_own:
            found = _of_all(path, x)
        elif problem.marginal == "hidden":
            chains = indices(len(x)) + np.int32(start)
            found = log_densities(model, np.asarray(_drawn(flat, bits.at(0, chains), x)))
        else:
            found = end_of_path(path, x)
        values.append(np.asarray(found, np.float64))
    return np.concatenate(values) + (problem.offset or 0.0)


@eqx.filter_jit
def _of_all(path, x):
    return path.log_target(x) - path.latent_entropy(x)


@eqx.filter_jit
def _drawn(path, bits, x):
    return path.draw_latent(bits, x, 1.0)


def _variables(problem: "Problem") -> str:
    model = problem.model
    if model.sums_out_own or len(model.marginals) == 1:
        return "all variables" if visible_of(model).is_real else "all units"
    return "visible units" if problem.is_own_path else "the states of the path"
