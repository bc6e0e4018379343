"""The Bayes factor of two models: by how much the data favour one of them.

    log B = log Z_a - log Z_b

Its error is that of a difference (`evidence.py`). Its interval is made of the distances d from log Z to the
ends of both intervals, which need not be symmetric (Zou and Donner 2008):

    log B - sqrt(d_low(a)^2 + d_high(b)^2)  …  log B + sqrt(d_high(a)^2 + d_low(b)^2)

and of the sums of the distances where both share random bits. Where both models are equally probable before
the data, P(a | data) = 1 / (1 + exp(-log B)).
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import expit

from annealz.core.numerics import finite_or_none
from annealz.core.text import as_text
from annealz.diagnostics.status import Judged, Status
from annealz.results.evidence import Evidence, combined_error, evidence_of, messages_about

__all__ = ["BayesFactor", "log_bayes_factor"]


@dataclasses.dataclass(frozen=True, repr=False)
class BayesFactor(Judged):
    """The log Bayes factor of model a against model b, with its error and whether to trust it.

    Examples
    --------
    >>> import annealz
    >>> factor = annealz.log_bayes_factor((-10.0, 0.03), (-12.0, 0.04))
    >>> factor.value, round(factor.std_err, 4), factor.status.value, factor.messages
    (2.0, 0.05, 'ok', ())
    >>> low, high = factor.interval()
    >>> round(low, 3), round(high, 3), round(factor.probability, 4)
    (1.902, 2.098, 0.8808)
    >>> factor.favoured, dict(factor.rows())["log Bayes factor"]
    ('a', '2.0000 ± 0.0500')
    >>> factor.to_dict()["value"]
    2.0
    """

    first: Evidence
    second: Evidence

    @property
    def value(self) -> float:
        """log Z_a - log Z_b: above 0 the data favour a."""
        return self.first.log_z - self.second.log_z

    @property
    def std_err(self) -> float:
        """Standard error of `value`."""
        both = self.first, self.second
        errors, sources = [one.std_err for one in both], [one.source for one in both]
        return combined_error([1, -1], errors, sources)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of `value`, from those of both estimates."""
        low, high = (
            [abs(one.log_z - bound) for bound in one.interval(level)]
            for one in (self.first, self.second)
        )
        below, above = (low[0], high[1]), (low[1], high[0])
        is_shared = self.first.source == self.second.source
        join = sum if is_shared else lambda parts: float(np.hypot(*parts))
        return self.value - join(below), self.value + join(above)

    @property
    def probability(self) -> float:
        """Of a, given the data, if both models were equally probable before."""
        return float(expit(self.value))

    @property
    def favoured(self) -> str:
        """The name of the model that the data favour."""
        return (self.first if self.value >= 0 else self.second).name

    @property
    def status(self) -> Status:
        """Unreliable if either estimate is."""
        both = {self.first.status, self.second.status}
        return Status.UNRELIABLE if Status.UNRELIABLE in both else Status.OK

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know of it; empty if there is nothing to report."""
        return messages_about((self.first, self.second))

    def rows(self) -> list[tuple[str, str]]:
        """The result as label and value, for people."""
        is_known = np.isfinite(self.std_err)
        low, high = self.interval() if is_known else (np.nan, np.nan)
        bounds = f" ({expit(low):.4g} … {expit(high):.4g})" if is_known else ""
        one, other = self.first.name, self.second.name
        return [
            ("models", f"{one} against {other}"),
            ("log Bayes factor", f"{self.value:.4f} ± {_error(self.std_err)}"),
            ("95 % interval", f"{low:.4f} … {high:.4f}" if is_known else "unknown"),
            ("in words", self.in_words),
            (
                f"probability of {one}",
                f"{self.probability:.4g}{bounds}, if both were equally probable before",
            ),
            ("status", self.status.value),
        ]

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
        other = ({self.first.name, self.second.name} - {self.favoured}).pop()
        doubt = "" if self.status is Status.OK else ", if these estimates are right"
        return f"the data favour {self.favoured} over {other} by a factor of {factor}{doubt}"

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values; what is unknown is None."""
        return {
            "models": [self.first.name, self.second.name],
            "value": self.value,
            "std_err": finite_or_none(self.std_err),
            "interval": [finite_or_none(bound) for bound in self.interval()],
            "probability": self.probability,
            "status": self.status.value,
            "messages": list(self.messages),
        }

    def __repr__(self) -> str:
        return as_text("BayesFactor", self.rows(), self.messages)

    def _repr_html_(self) -> str:
        from annealz.views.show.html import bayes_factor_html

        return bayes_factor_html(self)


def log_bayes_factor(a: Any, b: Any) -> BayesFactor:
    """The log Bayes factor log Z_a - log Z_b of two estimates, with its error.

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
    >>> factor = annealz.log_bayes_factor(a, b)
    >>> factor.value == a.log_z - b.log_z, factor.std_err > max(a.std_err, b.std_err)
    (True, True)
    """
    first, second = (_named(given, argument) for given, argument in ((a, "a"), (b, "b")))
    if first.digest is not None and (first.digest, first.source) == (second.digest, second.source):
        raise ValueError(
            f"a and b are estimates of one model with one seed, {first.name}: give estimates of two "
            "models, or of unlike seeds."
        )
    if first.name == second.name:
        first, second = (
            dataclasses.replace(one, name=f"{one.name} ({letter})")
            for one, letter in ((first, "a"), (second, "b"))
        )
    return BayesFactor(first, second)


def _named(given: Any, argument: str) -> Evidence:
    """By the model's own name where it has one."""
    name = getattr(given, "model", None)
    return evidence_of(given, name if isinstance(name, str) else argument, argument)


def _error(std_err: float) -> str:
    return f"{std_err:.4f}" if np.isfinite(std_err) else "unknown"
