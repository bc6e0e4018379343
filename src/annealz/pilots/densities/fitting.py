"""The base that suits a sample of a density best: Laplace's, Gaussians, or Student's t.

Bases are fitted to half of the chains and compared on the other half. With U = f - log p_A, the length of
the path from a base is the integral of sqrt(Var_beta[U]) over beta, and its square is the steps that a run
needs for a variance of log w of 1, if chains mix at once. It is taken from the two ends,

    s_1 = sd of U over the chains at beta = 1,        s_0 = sd of U over draws of the base
    length = s_0 s_1 log(s_0 / s_1) / (s_0 - s_1)     where s_0 > s_1, exact for Gaussians of two widths
           = s_1                                      elsewhere

s_1 is large for a base that misses a mode or a tail, s_0 for one that is too wide or has tails that the
density has not. Where s_0 is the smaller one it says nothing: draws of a base never show what it misses. It
comes from quartiles, because it may be infinite; draws of zero density do not count.

Candidates are considered from simple to complex, and one is taken if its score, the squared length, is
clearly less than that of the best before it. Covariances are taken 1.5 times as large as they are fitted: a
perfect fit has then, in every dimension, the score of two Gaussians of these variances. Once a candidate is
about as good, no others are fitted.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from annealz.bases.fit_mixture import Gaussians, fit_gaussians
from annealz.bases.gaussian import GaussianBase
from annealz.bases.gaussian_mixture import GaussianMixtureBase
from annealz.core.arrays import moments, on_device, times
from annealz.core.programs import Compiled
from annealz.core.random import Stream
from annealz.core.weights import effective_sample_size
from annealz.pilots.densities.evaluator import Evaluator
from annealz.pilots.densities.modes import Mode
from annealz.pilots.densities.population import Sample

_INFLATION = 1.5
_STRAIGHT = (1.5, 1.1)  # variances, where coordinates are about normal
_COMPONENTS = (1, 2, 3, 4, 6, 8)
_MOST_COMPONENTS = _COMPONENTS[-1]
_MOST_PLACES = 24  # of modes, a component each
_DEGREES = (2, 4, 8)  # of Student's t
_CLEARLY = 0.7  # of the score of a simpler base
_NEARLY = 1.5  # times the score of a perfect fit
_ROWS = 1024  # at which bases are compared
_DRAWS = 128  # of a base, for its own end of the path
_FEWEST_DRAWS = 16  # inside the support
_QUARTILES = 1.349  # between them, in standard deviations of a normal law
_DRAWS_A_COMPONENT = 64
_ENOUGH = 0.1  # of the draws must be effective
_EVEN = 0.05  # of the weight, for all components alike


def squared_length(at_target: float, at_base: float) -> float:
    """Of a path, from the standard deviations of U at its ends."""
    if not at_base > at_target > 0:
        return at_target**2
    ratio = at_base / at_target
    return float((at_target * ratio * np.log1p(ratio - 1) / (ratio - 1)) ** 2)


def fitted_base(
    evaluator: Evaluator,
    modes: list[Mode],
    sample: Sample,
    name: str,
    generator: np.random.Generator,
    is_straight: bool,
) -> Any:
    """The shortest path's base for this sample; `name` asks for a kind of base, or any with auto."""
    dim, choice = evaluator.model.dim, _Choice(evaluator, sample, generator)
    if is_straight and name == "auto":
        for widening in _STRAIGHT:
            covariance = np.full(dim, widening)
            choice.consider(lambda _, c=covariance: GaussianBase.from_moments(0 * c, c, "profile"))
    if modes and (name == "laplace" or (name == "auto" and len(modes) <= _MOST_PLACES)):
        choice.consider(lambda _: _laplace(modes))
    if name in ("auto", "pilot", "mixture"):
        for count in _COMPONENTS if name != "pilot" else (1,):
            if count > 1 and choice.train.shape[0] / count < 10 * dim:
                break
            if name == "auto" and choice.is_perfect:
                break
            choice.consider(_seeded(count, generator, name))
        simple = choice.best
        for dof in _DEGREES if simple is not None else ():
            if choice.is_perfect:
                break
            choice.consider(lambda rows, dof=dof: _heavier(simple, rows, dof))
    if choice.best is None:
        raise ValueError(
            f"no base could be fitted to {evaluator.model.name}: the values of its pilot are not finite; "
            "give a base."
        )
    return _reweighted(evaluator, choice.best(sample.flat), generator)


class _Choice:
    """The best of the bases that were considered, each a function of rows that makes it."""

    best: Callable[[np.ndarray], Any] | None = None
    score = np.inf

    def __init__(self, evaluator: Evaluator, sample: Sample, generator: np.random.Generator):
        dim = evaluator.model.dim
        self.evaluator = evaluator
        self.train = sample.rows[:, ::2].reshape(-1, dim)
        test, values = sample.rows[:, 1::2].reshape(-1, dim), sample.values[:, 1::2].reshape(-1)
        some = np.linspace(0, len(test) - 1, _ROWS).round().astype(int)  # one program for all seeds
        self._test, self.values = on_device(test[some]), values[some]
        self._stream = Stream(int(generator.integers(2**31)), "compared")

    @property
    def is_perfect(self) -> bool:
        """Whether no other fit can be clearly better."""
        one = squared_length((1 - 1 / _INFLATION) / 2**0.5, (_INFLATION - 1) / 2**0.5)
        return self.score <= _NEARLY * one * self.evaluator.model.dim

    def consider(self, make: Callable[[np.ndarray], Any]) -> None:
        """Take it, where it is clearly better than what is there."""
        score = self._score(make(self.train))
        if np.isfinite(score) and (self.best is None or score < _CLEARLY * self.score):
            self.best, self.score = make, score

    def _score(self, base: Any) -> float:
        model = self.evaluator.model
        logs, slopes = _compared(base.unnamed(), model, self._stream, self._test, work=0)
        self.evaluator.spent["draws of bases"] += _DRAWS
        at_target = float(np.std(self.values - np.asarray(logs, np.float64)))
        slopes = np.asarray(slopes, np.float64)
        slopes = slopes[np.isfinite(slopes)]
        if slopes.size < _FEWEST_DRAWS:
            return at_target**2
        low, high = np.quantile(slopes, [0.25, 0.75])
        return squared_length(at_target, float(high - low) / _QUARTILES)


@Compiled
def _compared(base, model, stream, rows):
    """log p_A of rows, and U of draws of the base."""
    z = base.sample_unit(stream.at(0, jnp.arange(_DRAWS)))
    slopes = model.log_density(base.from_unit(z)) - base.log_density_unit(z)
    return base.log_density(rows), slopes


def _seeded(count: int, generator: np.random.Generator, name: str) -> Callable:
    """Fits of so many Gaussians, the same ones for the same rows."""
    seed = int(generator.integers(2**63))

    def make(rows):
        fit = fit_gaussians(rows, count, np.random.default_rng(seed))
        return _base_of(fit._replace(weights=np.maximum(fit.weights, 0.02)), name)

    return make


def _reweighted(evaluator: Evaluator, base: Any, generator: np.random.Generator) -> Any:
    """The same with weights of the components by importance sampling, where that is possible.

    Chains do not move between modes far apart, so what the base gives a mode too much or too little stays
    in the weights to the end, however long the run.
    """
    if getattr(base, "num_components", 1) == 1:
        return base
    count = _DRAWS_A_COMPONENT * base.num_components
    stream = Stream(int(generator.integers(2**31)), "weights")
    rows, logs, parts = (
        np.asarray(one, np.float64)[:count] for one in _drawn(base.unnamed(), stream, work=0)
    )
    logs = evaluator.values(rows) - logs
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    if not np.isfinite(logs).any() or effective_sample_size(logs) < _ENOUGH * count:
        return base
    shares = np.exp(logs - logsumexp(logs))
    parts = np.exp(parts[:, : base.num_components])
    parts /= parts.sum(1, keepdims=True)
    weights = (1 - _EVEN) * (shares @ parts) + _EVEN / base.num_components
    return base.with_weights(weights)


@Compiled
def _drawn(base, stream):
    """Draws, more than are needed of any base, with their log densities and those of all components."""
    chains = jnp.arange(_DRAWS_A_COMPONENT * max(_MOST_COMPONENTS, base.centres.shape[0]))
    z = base.sample_unit(stream.at(0, chains))
    return base.from_unit(z), base.log_density_unit(z), base.log_parts(z)


def _laplace(modes: list[Mode]) -> Any:
    evidences = np.array([mode.evidence for mode in modes])
    weights = np.maximum(np.exp(evidences - logsumexp(evidences)), 0.02 / len(modes))
    places = np.stack([mode.place for mode in modes])
    return _base_of(Gaussians(weights, places, np.stack([m.covariance for m in modes])), "laplace")


def _base_of(fit: Gaussians, name: str, dof: int = 0) -> Any:
    """The base of these Gaussians; of Student's t, whose scale is their covariance as it is."""
    kind = "mixture" if len(fit.weights) > 1 else "student" if dof else "pilot"
    name = kind if name == "auto" else name
    if kind == "pilot":
        return GaussianBase.from_moments(fit.means[0], _INFLATION * fit.covariances[0], name)
    covariances = fit.covariances if dof else _INFLATION * fit.covariances
    return GaussianMixtureBase.from_moments(fit.weights, fit.means, covariances, dof=dof, name=name)


def _heavier(make: Any, rows: np.ndarray, dof: int) -> Any:
    """The base of another fit with the tails of Student's t; its bulk, not its tail, sets the scale."""
    base = make(rows)
    if isinstance(base, GaussianBase):
        centre, away = np.median(rows, axis=0), rows - np.median(rows, axis=0)
        covariance = np.atleast_2d(np.cov(away.T))
        for _ in range(20):  # maximum likelihood of Student's t
            turned = times(away, np.linalg.pinv(covariance, hermitian=True))
            squares = np.einsum("ni,ni->n", away, turned)
            shares = (dof + rows.shape[1]) / (dof + squares)
            centre = (shares[:, None] * rows).sum(0) / shares.sum()
            away = rows - centre
            covariance = moments(away * (shares / len(rows))[:, None], away)
        fit = Gaussians(np.ones(1), centre[None], covariance[None] + 1e-12 * np.eye(rows.shape[1]))
        return _base_of(fit, "auto", dof)
    return dataclasses.replace(base, dof=dof)
