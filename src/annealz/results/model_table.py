"""Models compared by their evidence: differences to the best, and probabilities given the data.

    P_m = v_m Z_m / sum_j v_j Z_j                     v_m the weight of model m before the data
    dP_m = P_m (dL_m - sum_j P_j dL_j)                L = log Z; the delta method

so that the error of P_m is that of a linear combination of log Zs with the coefficients P_m (1 - P_m) of
its own and -P_m P_j of the others (`evidence.py`), and at most 1/2. It is rough where log Z is known to no
better than one nat.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from annealz.core.numerics import finite_or_none
from annealz.core.text import as_text
from annealz.diagnostics.status import Judged, Status
from annealz.results.bayes_factor import BayesFactor
from annealz.results.evidence import Evidence, combined_error, evidence_of, messages_about

__all__ = ["ModelTable", "compare_models"]


@dataclasses.dataclass(frozen=True, repr=False)
class ModelTable(Judged):
    """Models with their log evidence, in the order of it.

    Examples
    --------
    >>> import annealz
    >>> table = annealz.compare_models({"line": (-12.0, 0.03), "parabola": (-10.0, 0.04)})
    >>> table.names, table.best, table.status.value, table.messages
    (('parabola', 'line'), 'parabola', 'ok', ())
    >>> table.log_z.tolist(), table.std_err.tolist(), table.differences.tolist()
    ([-10.0, -12.0], [0.04, 0.03], [0.0, -2.0])
    >>> table.difference_std_errs.round(4).tolist(), table.probabilities.round(4).tolist()
    ([0.0, 0.05], [0.8808, 0.1192])
    >>> table.probability_std_errs.round(4).tolist(), [status.value for status in table.statuses]
    ([0.0052, 0.0052], ['ok', 'ok'])
    >>> table.bayes_factor("parabola", "line").value
    2.0
    >>> dict(table.rows())["best model"], table.headings()[0], len(table.table())
    ('parabola', 'model', 2)
    >>> table.to_dict()["models"][0]["model"], table.to_pandas().shape[0]
    ('parabola', 2)
    """

    evidences: tuple[Evidence, ...]
    """In the order of log Z, the largest first."""
    prior_weights: np.ndarray
    """(models,), with the sum 1, in the same order."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models."""
        return tuple(one.name for one in self.evidences)

    @property
    def best(self) -> str:
        """The model of the largest evidence."""
        return self.names[0]

    @property
    def log_z(self) -> np.ndarray:
        """(models,)."""
        return np.array([one.log_z for one in self.evidences])

    @property
    def std_err(self) -> np.ndarray:
        """(models,), of log Z."""
        return np.array([one.std_err for one in self.evidences])

    @property
    def differences(self) -> np.ndarray:
        """(models,): log Z less that of the best."""
        return self.log_z - self.log_z[0]

    @property
    def difference_std_errs(self) -> np.ndarray:
        """(models,), of the differences; 0 of the best."""
        rows = np.eye(len(self.evidences))
        return self._errors(rows - rows[0])

    @property
    def probabilities(self) -> np.ndarray:
        """(models,), given the data."""
        with np.errstate(divide="ignore"):
            return softmax(self.log_z + np.log(self.prior_weights))

    @property
    def probability_std_errs(self) -> np.ndarray:
        """(models,), of the probabilities."""
        shares = self.probabilities
        rows = np.diag(shares) - np.outer(shares, shares)
        return np.minimum(self._errors(rows), 0.5)

    @property
    def statuses(self) -> tuple[Status, ...]:
        """Of every estimate."""
        return tuple(one.status for one in self.evidences)

    @property
    def status(self) -> Status:
        """Unreliable if any estimate is: one that is too low may belong further up."""
        return Status.UNRELIABLE if Status.UNRELIABLE in self.statuses else Status.OK

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know of it; empty if there is nothing to report."""
        return messages_about(self.evidences)

    def bayes_factor(self, a: str, b: str) -> BayesFactor:
        """Of model a against model b, by name."""
        found = {one.name: one for one in self.evidences}
        for name in (a, b):
            if name not in found:
                raise ValueError(
                    f"{name!r} is not in the table: choose from {', '.join(self.names)}."
                )
        return BayesFactor(found[a], found[b])

    def rows(self) -> list[tuple[str, str]]:
        """The verdict as label and value, for people."""
        rows = [
            ("best model", self.best),
            ("its probability", self._probability(0)),
        ]
        if len(self.evidences) > 1:
            rows.append(("in words", self.bayes_factor(*self.names[:2]).in_words))
        is_even = np.ptp(self.prior_weights) < 1e-12
        prior = "equal" if is_even else ", ".join(f"{v:.3g}" for v in self.prior_weights)
        return [*rows, ("before the data", prior), ("status", self.status.value)]

    def headings(self) -> tuple[str, ...]:
        """Of the columns of `table`."""
        return "model", "log Z", "difference", "probability", "status"

    def table(self) -> list[tuple[str, ...]]:
        """A row per model, for people."""
        errors = self.difference_std_errs
        return [
            (
                one.name,
                _number(one.log_z, one.std_err),
                "–" if i == 0 else _number(self.differences[i], errors[i]),
                self._probability(i),
                one.status.value,
            )
            for i, one in enumerate(self.evidences)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; what is unknown is None."""
        columns = {
            "log_z": self.log_z,
            "std_err": self.std_err,
            "difference": self.differences,
            "difference_std_err": self.difference_std_errs,
            "probability": self.probabilities,
            "probability_std_err": self.probability_std_errs,
            "prior_weight": self.prior_weights,
        }
        models = [
            {
                "model": one.name,
                **{name: finite_or_none(float(column[i])) for name, column in columns.items()},
                "status": one.status.value,
            }
            for i, one in enumerate(self.evidences)
        ]
        factors = [self.bayes_factor(self.best, name).to_dict() for name in self.names[1:]]
        return {
            "best": self.best,
            "models": models,
            "log_bayes_factors": factors,
            "status": self.status.value,
            "messages": list(self.messages),
        }

    def to_pandas(self):
        """A pandas table of a row per model."""
        from annealz.views.tables import model_table

        return model_table(self)

    def _errors(self, rows: np.ndarray) -> np.ndarray:
        """(rows,): of these linear combinations (rows, models) of log Z."""
        sources = [one.source for one in self.evidences]
        return np.array([combined_error(row, self.std_err, sources) for row in rows])

    def _probability(self, number: int) -> str:
        share, error = self.probabilities[number], self.probability_std_errs[number]
        return f"{share:.4f} ± {error:.4f}" if share > 1e-3 or share == 0 else f"{share:.2g}"

    def __repr__(self) -> str:
        lines = [
            (name, f"log Z {log_z}, probability {share}, {status}")
            for name, log_z, _, share, status in self.table()
        ]
        return as_text(f"Models, the best first: {self.best}", lines, self.messages)

    def _repr_html_(self) -> str:
        from annealz.views.show.html import model_table_html

        return model_table_html(self)


def compare_models(
    models: Mapping[str, Any] | Sequence[Any], *, prior_weights: Any = None
) -> ModelTable:
    """A table of models by their evidence, with their probabilities given the data.

    Parameters
    ----------
    models : {name: estimate} by any method, or a pair (log Z, standard error) from elsewhere; or a list of
        estimates, by the names of their models
    prior_weights : of the models before the data, {name: weight} or a list in the same order; by default
        all are equal

    Examples
    --------
    >>> import annealz
    >>> table = annealz.compare_models(
    ...     {"line": (-12.0, 0.03), "parabola": (-10.0, 0.04)},
    ...     prior_weights={"line": 9, "parabola": 1},
    ... )
    >>> table.probabilities.round(3).tolist()
    [0.451, 0.549]
    """
    if isinstance(models, Mapping):
        named = [(str(name), given) for name, given in models.items()]
    else:
        named = [(str(getattr(given, "model", i)), given) for i, given in enumerate(models)]
    names = [name for name, _ in named]
    if not named or len({*names}) < len(names):
        raise ValueError(
            f"models must be at least one, each with a name of its own, got {names}: give a dictionary "
            "{name: estimate}."
        )
    weights = _prior(prior_weights, names)
    found = [evidence_of(given, name, f"models[{name!r}]") for name, given in named]
    order = sorted(range(len(found)), key=lambda i: -found[i].log_z)
    return ModelTable(tuple(found[i] for i in order), weights[order])


def _prior(given: Any, names: list[str]) -> np.ndarray:
    if given is None:
        return np.full(len(names), 1 / len(names))
    if isinstance(given, Mapping):
        if {*map(str, given)} != {*names}:
            raise ValueError(
                f"prior_weights must have the names of the models, {', '.join(names)}, got "
                f"{', '.join(map(str, given))}."
            )
        given = [given[name] for name in names]
    weights = np.asarray(given, np.float64)
    if weights.shape != (len(names),) or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(
            f"prior_weights must be one number per model, not negative, got {given!r} for {len(names)}."
        )
    if not weights.sum() > 0:
        raise ValueError(
            "prior_weights must not all be 0: give the models that are possible a weight."
        )
    return weights / weights.sum()


def _number(value: float, std_err: float) -> str:
    return f"{value:.4f} ± {f'{std_err:.4f}' if np.isfinite(std_err) else 'unknown'}"
