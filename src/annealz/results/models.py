"""Models compared by their evidence: Bayes factors, and probabilities given the data.

    log B = log Z_a - log Z_b
    P_m = v_m Z_m / sum_j v_j Z_j                     v_m the weight of model m before the data
    dP_m = P_m (dL_m - sum_j P_j dL_j)                L = log Z; the delta method

All errors are those of linear combinations of log Zs,

    error of sum_i c_i log Z_i:   sqrt( sum over groups (sum_{i in group} |c_i| s_i)^2 )

Estimates of unlike seeds are independent, a group each. Two of one seed draw from the same random bits, so
that their errors are correlated in an unknown way: they are one group, whose errors add, which no
correlation can exceed. P_m has the coefficients P_m (1 - P_m) of its own and -P_m P_j of the others, and an
error of at most 1/2; it is rough where log Z is known to no better than one nat.

The interval of log B is made of the distances d from log Z to the ends of both intervals, which need not be
symmetric (Zou and Donner 2008), and of their sums where both share random bits:

    log B - sqrt(d_low(a)^2 + d_high(b)^2)  …  log B + sqrt(d_high(a)^2 + d_low(b)^2)
"""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from annealz.core.errors import InputError
from annealz.core.numerics import interval_text, with_error
from annealz.diagnostics.findings import Doubt, Note
from annealz.diagnostics.sheet import Result, Sheet, Table, data_frame, json_of, record_of
from annealz.diagnostics.status import Judged, Status, normal_interval


class _Known(NamedTuple):
    """log Z from elsewhere, as an estimate."""

    log_z: float
    std_err: float

    @property
    def status(self) -> Status:
        return Status.OK

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        return normal_interval(self.log_z, self.std_err, level)


@dataclasses.dataclass(frozen=True, repr=False)
class _Compared(Result, Judged):
    """What Bayes factors and tables of models have in common."""

    estimates: Mapping[str, Any]
    """By the names of their models; of a table the largest log Z first."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models."""
        return tuple(self.estimates)

    @property
    def log_z(self) -> np.ndarray:
        """(models,)."""
        return np.array([one.log_z for one in self.estimates.values()])

    @property
    def status(self) -> Status:
        """Unreliable if any estimate is: one that is too low may belong further up."""
        are_ok = all(one.status is Status.OK for one in self.estimates.values())
        return Status.OK if are_ok else Status.UNRELIABLE

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know: which estimates cannot be trusted, and which share random bits."""
        doubts = [
            Doubt(name, next(iter(getattr(one, "notes", ())), "its status is unreliable."))
            for name, one in self.estimates.items()
            if one.status is not Status.OK
        ]
        shared = [
            f"{' and '.join(np.array(self.names)[group])} were estimated with one seed, {source[1]}, and "
            "share random bits, so that their errors are added: with unlike seeds the error is smaller."
            for source, group in self._groups().items()
            if sum(group) > 1 and isinstance(source, tuple)
        ]
        return (*doubts, *shared)

    def _groups(self) -> dict[Hashable, np.ndarray]:
        """Return (models,) of each group that shares random bits: whether a model is in it."""
        sources = [_source(one) for one in self.estimates.values()]
        return {source: np.array([one == source for one in sources]) for source in sources}

    def _errors(self, rows: np.ndarray) -> np.ndarray:
        """Return the errors of linear combinations (rows, models) of log Zs; see the module."""
        errors = np.array([one.std_err for one in self.estimates.values()])
        with np.errstate(invalid="ignore"):  # infinite errors of what has no part do not count
            parts = np.where(rows == 0, 0, np.abs(rows) * errors)
        return np.linalg.norm([parts[:, g].sum(1) for g in self._groups().values()], axis=0)


@dataclasses.dataclass(frozen=True, repr=False)
class BayesFactor(_Compared):
    """The log Bayes factor of model a against model b, with its error and whether to trust it.

    Examples
    --------
    >>> import annealz
    >>> factor = annealz.log_bayes_factor((-10.0, 0.03), (-12.0, 0.04))
    >>> factor.value, round(factor.std_err, 4), factor.status.value
    (2.0, 0.05, 'ok')
    >>> factor.favoured, round(factor.probability, 4)
    ('a', 0.8808)
    """

    @property
    def value(self) -> float:
        """log Z_a - log Z_b: above 0 the data favour a."""
        return float(-np.diff(self.log_z)[0])

    @property
    def std_err(self) -> float:
        """Standard error of `value`."""
        return float(self._errors(np.array([[1, -1]]))[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of `value`, from those of both estimates."""
        bounds = np.array([one.interval(level) for one in self.estimates.values()])
        a, b = np.abs(bounds - self.log_z[:, None])
        below, above = a + b[::-1] if len(self._groups()) == 1 else np.hypot(a, b[::-1])
        return self.value - float(below), self.value + float(above)

    @property
    def probability(self) -> float:
        """Of a, given the data, if both models were equally probable before."""
        return float(expit(self.value))

    @property
    def favoured(self) -> str:
        """The name of the model that the data favour."""
        return self.names[int(self.value < 0)]

    @property
    def in_words(self) -> str:
        """By how much the data favour which model, and whether the error leaves that open."""
        low, high = self.interval()
        if not low > 0 and not high < 0:
            return "the error leaves open which model the data favour"
        size = abs(self.value)
        factor = (
            f"{float(f'{np.exp(size):.2g}'):,g}" if size < 10 else f"10^{size / np.log(10):.1f}"
        )
        other = self.names[int(self.value >= 0)]
        doubt = "" if self.status is Status.OK else ", if these estimates are right"
        return f"the data favour {self.favoured} over {other} by a factor of {factor}{doubt}"

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        interval, (one, other) = self.interval(), self.names
        bounds = " ({:.4g} … {:.4g})".format(*expit(interval)) if np.isfinite(self.std_err) else ""
        share = f"{self.probability:.4g}{bounds}, if both were equally probable before"
        headline = "log Bayes factor", with_error(self.value, self.std_err)
        rows = (
            ("models", f"{one} against {other}"),
            headline,
            ("95 % interval", interval_text(interval)),
            ("in words", self.in_words),
            (f"probability of {one}", share),
            ("status", self.status.value),
        )
        record = {"models": [one, other]} | record_of(self, "value std_err interval probability")
        return self.described(headline, rows, record=record)


@dataclasses.dataclass(frozen=True, repr=False)
class ModelTable(_Compared):
    """Models with their log evidence, in the order of it.

    Examples
    --------
    >>> import annealz
    >>> table = annealz.compare_models({"line": (-12.0, 0.03), "parabola": (-10.0, 0.04)})
    >>> table.names, table.probabilities.round(4).tolist()
    (('parabola', 'line'), [0.8808, 0.1192])
    """

    prior_weights: np.ndarray
    """(models,), with the sum 1, in the same order."""

    @property
    def best(self) -> str:
        """The model of the largest evidence."""
        return self.names[0]

    @property
    def std_err(self) -> np.ndarray:
        """(models,), of log Z."""
        return np.array([one.std_err for one in self.estimates.values()])

    @property
    def differences(self) -> np.ndarray:
        """(models,): log Z less that of the best."""
        return self.log_z - self.log_z[0]

    @property
    def difference_std_errs(self) -> np.ndarray:
        """(models,), of the differences; 0 of the best."""
        rows = np.eye(len(self.names))
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
        return np.minimum(self._errors(np.diag(shares) - np.outer(shares, shares)), 0.5)

    def bayes_factor(self, a: str, b: str) -> BayesFactor:
        """Return the Bayes factor of model a against model b, by name."""
        for name in (a, b):
            if name not in self.estimates:
                known = ", ".join(self.names)
                raise ValueError(f"{name!r} is not in the table: choose from {known}.")
        return BayesFactor({name: self.estimates[name] for name in (a, b)})

    def sheet(self) -> Sheet:
        """Return what the result shows."""
        columns = {
            "log_z": self.log_z,
            "std_err": self.std_err,
            "difference": self.differences,
            "difference_std_err": self.difference_std_errs,
            "probability": self.probabilities,
            "probability_std_err": self.probability_std_errs,
            "prior_weight": self.prior_weights,
        }
        records, lines = [], []
        for i, (name, one) in enumerate(self.estimates.items()):
            own = {column: float(values[i]) for column, values in columns.items()}
            records.append({"model": name, **json_of(own), "status": one.status.value})
            away = with_error(own["difference"], own["difference_std_err"]) if i else "–"
            chance, error = own["probability"], own["probability_std_err"]
            is_small = not (chance > 1e-3 or chance == 0)
            share = f"{chance:.2g}" if is_small else f"{chance:.4f} ± {error:.4f}"
            number = with_error(one.log_z, one.std_err)
            lines.append((name, number, away, share, one.status.value))
        is_even = np.ptp(self.prior_weights) < 1e-12
        prior = "equal" if is_even else ", ".join(f"{v:.3g}" for v in self.prior_weights)
        factors = [self.bayes_factor(self.best, name) for name in self.names[1:]]
        headline = "best model", self.best
        rows = (
            headline,
            ("its probability", lines[0][3]),
            *(("in words", factor.in_words) for factor in factors[:1]),
            ("before the data", prior),
            ("status", self.status.value),
        )
        table = Table(lines, ("model", "log Z", "difference", "probability", "status"))
        bayes_factors = [factor.to_dict() for factor in factors]
        record = {"best": self.best, "models": records, "log_bayes_factors": bayes_factors}
        return self.described(headline, rows, table=table, record=record)

    def to_pandas(self):
        """Return a pandas table of a row per model."""
        return data_frame(self.sheet().record["models"])


def log_bayes_factor(a: Any, b: Any) -> BayesFactor:
    """Return the log Bayes factor log Z_a - log Z_b of two estimates, with its error.

    Parameters
    ----------
    a, b : estimates by any method, or pairs (log Z, standard error) from elsewhere. Estimates of unlike
        seeds are independent; the errors of two with one seed, which share random bits, are added.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> options = {"schedule": "linear", "num_steps": 100, "num_chains": 100}
    >>> a = annealz.estimate_log_z(random_rbm(4, 6, seed=1), seed=1, **options)
    >>> b = annealz.estimate_log_z(random_rbm(4, 6, seed=2), seed=2, **options)
    >>> annealz.log_bayes_factor(a, b).value == a.log_z - b.log_z
    True
    """
    first, second = _estimate(a, "a"), _estimate(b, "b")
    digests = [getattr(getattr(one, "plan", None), "model_digest", None) for one in (a, b)]
    if digests[0] is not None and digests[0] == digests[1] and _source(first) == _source(second):
        raise ValueError(
            f"a and b are estimates of one model with one seed, {a.model}: give estimates of two "
            "models, or of unlike seeds."
        )
    return BayesFactor(dict(zip(_names((a, b), ("a", "b")), (first, second), strict=True)))


def compare_models(
    models: Mapping[str, Any] | Sequence[Any], *, prior_weights: Any = None
) -> ModelTable:
    """Return a table of models by their evidence, with their probabilities given the data.

    Parameters
    ----------
    models : {name: estimate} by any method, or a pair (log Z, standard error) from elsewhere; or a list of
        estimates, by the names of their models
    prior_weights : of the models before the data, {name: weight} or a list in the same order; by default
        all are equal

    Examples
    --------
    >>> import annealz
    >>> models = {"line": (-12.0, 0.03), "parabola": (-10.0, 0.04)}
    >>> table = annealz.compare_models(models, prior_weights={"line": 9, "parabola": 1})
    >>> table.probabilities.round(3).tolist()
    [0.451, 0.549]
    """
    if isinstance(models, Mapping):
        given, names = [*models.values()], [str(name) for name in models]
    else:
        given, names = [*models], _names(models, [str(i) for i in range(len(models))])
    if not given or len({*names}) < len(names):
        raise ValueError(
            f"models must be at least one, each with a name of its own, got {names}: give a dictionary "
            "{name: estimate}."
        )
    weights = _prior(prior_weights, names)
    found = [_estimate(one, f"models[{name!r}]") for one, name in zip(given, names, strict=True)]
    order = sorted(range(len(found)), key=lambda i: -found[i].log_z)
    return ModelTable({names[i]: found[i] for i in order}, weights[order])


def _names(given: Sequence[Any], arguments: Sequence[str]) -> list[str]:
    """Return the names of models; those of one name have their sources, or the arguments' names."""
    own = [getattr(one, "model", None) for one in given]
    sources = [getattr(getattr(one, "plan", None), "source", None) for one in given]
    for names in (own, sources):
        written = [n if isinstance(n, str) else a for n, a in zip(names, arguments, strict=True)]
        if len({*written}) == len(written):
            return written
    return list(arguments)


def _source(estimate: Any) -> Hashable:
    """Return what estimates that share random bits have in common."""
    seed = getattr(estimate, "seed", None)
    return id(estimate) if seed is None else (type(estimate).__name__, seed)


def _estimate(given: Any, argument: str) -> Any:
    """Return an estimate by any method, or a pair (log Z, standard error) as one."""
    is_row = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    if is_row and len(given) == 2:
        try:
            log_z, std_err = (float(value) for value in given)
        except (TypeError, ValueError):
            log_z, std_err = np.nan, np.nan
        if not (np.isfinite(log_z) and 0 <= std_err < np.inf):
            raise ValueError(
                f"{argument} must be a pair of numbers (log Z, standard error), the error not negative, "
                f"got {given!r}."
            )
        return _Known(log_z, std_err)
    needed = ("log_z", "std_err", "interval", "status")
    if isinstance(given, type) or not all(hasattr(given, field) for field in needed):
        raise ValueError(
            f"{argument} must be an estimate, or a pair (log Z, standard error), got "
            f"{type(given).__name__}: estimate_log_z returns one."
        )
    return given


def _prior(given: Any, names: list[str]) -> np.ndarray:
    """Return the weights of models before the data, with the sum 1."""
    if isinstance(given, Mapping):
        named = {str(name): weight for name, weight in given.items()}
        if named.keys() != {*names}:
            raise InputError(
                "prior_weights",
                f"must have the names of the models, {', '.join(names)}",
                ", ".join(named),
            )
        given = [named[name] for name in names]
    weights = np.asarray([1] * len(names) if given is None else given, np.float64)
    if weights.shape != (len(names),) or not (weights.min() >= 0 and 0 < weights.sum() < np.inf):
        raise InputError(
            "prior_weights", "must be one number per model, not negative and not all 0", given
        )
    return weights / weights.sum()
