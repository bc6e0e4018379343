"""Densities that are hard for annealing, with their log Z: a tuning set, two that were tested on and led to
changes (seen, seen-2), a testing set of other dimensions, places and scales, and a second one (testing-2)
for a rule that one problem of the first had led to: tail-3 is a test of the rules before it alone.

    modes       sum_k w_k N(x; m_k, s_k^2 I), far apart; log Z = 0
    spike       1/2 N(0, I) + 1/2 N(m, s^2 I), s << 1: a first-order transition; log Z = 0
    funnel      v ~ N(0, s^2), x_i ~ N(0, e^v); log Z = 0
    wells       prod_i exp(-h (x_i^2 - a^2)^2 / a^4 + t x_i); log Z by quadrature in one dimension
    scale       tau ~ HalfCauchy(s), x_i ~ N(0, tau^2), in log tau; log Z = 0. Eight schools add
                y_i ~ N(x_i, e_i^2), and log Z = log of an integral over tau
    cauchy      heavy tails, closed forms
    bounded     -inf outside the support; log Z = 0
    million     10^6 data, in sums over groups; closed form, or quadrature in two dimensions
    improper    no finite integral: log Z = inf, and no number is right
"""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import jax.scipy.stats as jstats
import numpy as np
from jax.nn import softplus
from jax.scipy.special import logsumexp
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln, roots_hermite

import annealz

__all__ = ["HARD", "Hard"]

_LOG_2PI = np.log(2 * np.pi)


@dataclasses.dataclass(frozen=True)
class Hard:
    """One problem: a function of one position, and log Z."""

    name: str
    kind: str
    set: str
    dim: int
    fn: Callable
    truth: float
    dtype: str | None = None

    def model(self) -> annealz.LogDensity:
        """The density as a user would give it."""
        options = {} if self.dtype is None else {"dtype": self.dtype}
        return annealz.LogDensity(self.fn, self.dim, self.name, **options)


def modes(dim: int, places, scales, weights) -> tuple[Callable, float]:
    """Gaussians at `places`, each along the first axis (a number) or anywhere (a vector)."""
    rows = [np.eye(dim)[0] * p if np.ndim(p) == 0 else np.asarray(p, float) for p in places]
    means, widths = jnp.asarray(np.stack(rows), jnp.float32), np.asarray(scales, float)
    constants = np.log(weights) - dim * np.log(widths) - dim / 2 * _LOG_2PI
    constants, sharp = jnp.asarray(constants, jnp.float32), jnp.asarray(1 / widths, jnp.float32)

    def fn(x):
        return logsumexp(constants - 0.5 * jnp.sum(((x - means) * sharp[:, None]) ** 2, -1))

    return fn, float(np.log(np.sum(weights)))


def spike(dim: int, scale: float, place: float) -> tuple[Callable, float]:
    """Half wide, half narrow, `place` widths of the wide one away from its middle."""
    return modes(dim, [0.0, np.full(dim, place / np.sqrt(dim))], [1.0, scale], [0.5, 0.5])


def funnel(dim: int, scale: float) -> tuple[Callable, float]:
    """Neal's: the first variable is the log variance of the others."""

    def fn(x):
        v, rest = x[0], x[1:]
        spread = -0.5 * (jnp.exp(-v) * (rest @ rest) + (dim - 1) * (v + _LOG_2PI))
        return -0.5 * (v / scale) ** 2 - np.log(scale) - 0.5 * _LOG_2PI + spread

    return fn, 0.0


def wells(dim: int, place: float, height: float, tilt: float) -> tuple[Callable, float]:
    """Two wells in every direction, at -a and a, with a barrier of `height` nats."""

    def one(x):
        return -height * (x**2 - place**2) ** 2 / place**4 + tilt * x

    total = quad(lambda x: np.exp(one(x)), -6 * place, 6 * place, points=[-place, place], limit=200)
    return lambda x: jnp.sum(one(x)), float(dim * np.log(total[0]))


def half_cauchy(count: int, scale: float) -> tuple[Callable, float]:
    """A scale of its own for `count` normals, without data."""

    def fn(x):
        t, rest = x[0], x[1:]
        prior = np.log(2 / np.pi / scale) - jnp.log1p((jnp.exp(t) / scale) ** 2) + t
        return prior - 0.5 * jnp.exp(-2 * t) * (rest @ rest) - count * (t + 0.5 * _LOG_2PI)

    return fn, 0.0


_EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(scale: float) -> tuple[Callable, float]:
    """Rubin's eight schools, effects around 0, centred: tau integrated by quadrature."""
    inner = half_cauchy(8, scale)[0]
    effects, errors = jnp.asarray(_EFFECTS, jnp.float32), jnp.asarray(_ERRORS, jnp.float32)
    constant = -np.log(_ERRORS).sum() - 4 * _LOG_2PI

    def fn(x):
        return inner(x) - 0.5 * jnp.sum(((effects - x[1:]) / errors) ** 2) + constant

    def given(t):
        variance = np.exp(2 * t) + _ERRORS**2
        data = -0.5 * np.sum(_EFFECTS**2 / variance + np.log(variance) + _LOG_2PI)
        return data + np.log(2 / np.pi / scale) - np.log1p(np.exp(2 * t) / scale**2) + t

    top = max(given(t) for t in np.linspace(-10, 10, 401))
    total = quad(lambda t: np.exp(given(t) - top), -40, 40, points=[0, 2, 5], limit=400)[0]
    return fn, float(top + np.log(total))


def cauchy(dim: int, freedom: float = 1.0) -> tuple[Callable, float]:
    """Student's t in `dim` dimensions, not normalised."""
    half = (freedom + dim) / 2
    exact = gammaln(freedom / 2) - gammaln(half) + dim / 2 * np.log(freedom * np.pi)
    return lambda x: -half * jnp.log1p(jnp.sum(x**2) / freedom), float(exact)


def million_normal(mean: float, spread: float) -> tuple[Callable, float]:
    """10^6 numbers of unknown mean and log scale, both ~ N(0, 10^2), by their sums."""
    count, width = 1e6, 10.0

    def fn(x):
        misfit = count * (spread**2 + (x[0] - mean) ** 2) * jnp.exp(-2 * x[1])
        likelihood = -0.5 * misfit - count * (x[1] + 0.5 * _LOG_2PI)
        return likelihood - 0.5 * (x @ x) / width**2 - 2 * np.log(width) - _LOG_2PI

    def exact(x):
        misfit = count * (spread**2 + (x[..., 0] - mean) ** 2) * np.exp(-2 * x[..., 1])
        likelihood = -0.5 * misfit - count * (x[..., 1] + 0.5 * _LOG_2PI)
        return likelihood - 0.5 * (x**2).sum(-1) / width**2 - 2 * np.log(width) - _LOG_2PI

    return fn, _quadrature(exact, np.array([mean, np.log(spread)]))


def million_binomial(slope: float, seed: int) -> tuple[Callable, float]:
    """10^6 yes or no, 1000 at each of 1000 inputs: logistic regression with weights ~ N(0, 1)."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=1000).astype(np.float32).astype(float)
    yes = generator.binomial(1000, 1 / (1 + np.exp(-(0.3 + slope * inputs)))).astype(float)
    z, k = jnp.asarray(inputs, jnp.float32), jnp.asarray(yes, jnp.float32)

    def fn(x):
        logit = x[0] + x[1] * z
        return jnp.sum(k * logit - 1000.0 * softplus(logit)) - 0.5 * (x @ x) - _LOG_2PI

    def exact(x):
        logit = x[..., :1] + x[..., 1:] * inputs
        likelihood = (yes * logit - 1000 * np.logaddexp(0, logit)).sum(-1)
        return likelihood - 0.5 * (x**2).sum(-1) - _LOG_2PI

    return fn, _quadrature(exact, np.array([0.3, slope]))


def _quadrature(log_density: Callable, start: np.ndarray, nodes: int = 24) -> float:
    """log of a peaked integral in two dimensions: Gauss-Hermite around the mode."""
    options = {"xatol": 1e-10, "fatol": 1e-10, "maxiter": 2000}
    simplex = start + 1e-3 * np.array([[0, 0], [1, 0], [0, 1]])
    options["initial_simplex"] = simplex  # pyright: ignore
    mode = minimize(lambda x: -log_density(x), start, method="Nelder-Mead", options=options).x
    step, hessian = 1e-4, np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        a, b = step * np.eye(2)[i], step * np.eye(2)[j]
        hessian[i, j] = -(
            log_density(mode + a + b)
            - log_density(mode + a - b)
            - log_density(mode - a + b)
            + log_density(mode - a - b)
        ) / (4 * step**2)
    scale = np.linalg.cholesky(np.linalg.inv((hessian + hessian.T) / 2))
    points, weights = roots_hermite(nodes)
    grid = np.sqrt(2) * np.stack(np.meshgrid(points, points), -1).reshape(-1, 2)
    terms = np.log(np.outer(weights, weights)).ravel() + (grid**2).sum(-1) / 2
    terms = terms + log_density(mode + grid @ scale.T)
    return float(np.logaddexp.reduce(terms) + np.log(2) + np.log(np.diag(scale)).sum())


def _separable(x):
    """Logistic regression of data that a line separates, without a prior."""
    inputs = jnp.array([[1.0, -2.0], [1.0, -1.0], [1.0, 0.5], [1.0, 2.0]])
    signs = jnp.array([-1.0, -1.0, 1.0, 1.0])
    return -jnp.sum(softplus(-signs * (inputs @ x)))


def _all() -> list[Hard]:
    found: list[Hard] = []

    def add(kind: str, name: str, where: str, dim: int, problem, dtype: str | None = None):
        fn, truth = problem if isinstance(problem, tuple) else (problem, 0.0)
        found.append(Hard(name, kind, where, dim, fn, truth, dtype))

    for dim in (1, 2, 5):
        add("modes", f"modes-{dim}", "tuning", dim, modes(dim, [0, 20], [1, 0.5], [0.5, 0.5]))
        add("modes", f"modes-far-{dim}", "tuning", dim, modes(dim, [0, 20], [1, 1.5], [0.1, 0.9]))
    for dim in (1, 3, 6):
        away = np.full(dim, 25 / np.sqrt(dim))
        two = modes(dim, [-away, away / 5], [0.6, 1.2], [0.4, 0.6])
        three = modes(dim, [0, 12, -35], [1, 0.7, 2], [0.2, 0.3, 0.5])
        add("modes", f"modes-{dim}", "seen", dim, two)
        add("modes", f"modes-three-{dim}", "seen", dim, three)
    for dim in (1, 2, 4, 5):
        away = np.full(dim, 18 / np.sqrt(dim))
        two = modes(dim, [away, -away / 3], [0.8, 1.3], [0.35, 0.65])
        three = modes(dim, [0, -15, 30], [1, 1.4, 0.8], [0.25, 0.45, 0.3])
        add("modes", f"modes-{dim}", "seen-2", dim, two)
        add("modes", f"modes-three-{dim}", "seen-2", dim, three)
    for dim in (1, 2, 3):
        away = np.full(dim, 22 / np.sqrt(dim))
        two = modes(dim, [away / 4, -away], [1.1, 0.9], [0.7, 0.3])
        three = modes(dim, [-8, 10, 28], [0.9, 1.2, 1.6], [0.3, 0.3, 0.4])
        add("modes", f"modes-{dim}", "testing", dim, two)
        add("modes", f"modes-three-{dim}", "testing", dim, three)
    for dim, scale in ((3, 0.03), (7, 0.07), (15, 0.15)):
        add("spike", f"spike-{dim}", "testing", dim, spike(dim, scale, 0.15))
    for dim, scale in ((2, 0.01), (6, 0.06), (12, 0.12)):
        add("spike", f"spike-{dim}", "seen-2", dim, spike(dim, scale, 0.1))
    for dim, scale in ((3, 0.02), (5, 0.05), (10, 0.1)):
        add("spike", f"spike-{dim}", "tuning", dim, spike(dim, scale, 0.0))
        add("needle", f"needle-{dim}", "beyond", dim, spike(dim, scale, 1.0))
    for dim, scale in ((4, 0.03), (8, 0.08), (20, 0.2)):
        add("spike", f"spike-{dim}", "seen", dim, spike(dim, scale, 0.2))
    add("funnel", "funnel-5", "tuning", 5, funnel(5, 3.0))
    add("funnel", "funnel-10", "tuning", 10, funnel(10, 3.0))
    add("funnel", "funnel-3", "seen", 3, funnel(3, 3.0))
    add("funnel", "funnel-8", "seen", 8, funnel(8, 2.0))
    add("funnel", "funnel-20", "seen", 20, funnel(20, 2.5))
    add("funnel", "funnel-6", "seen-2", 6, funnel(6, 2.5))
    add("funnel", "funnel-12", "seen-2", 12, funnel(12, 3.0))
    add("funnel", "funnel-4", "testing", 4, funnel(4, 2.8))
    add("funnel", "funnel-11", "testing", 11, funnel(11, 2.2))
    add("wells", "wells-10", "testing", 10, wells(10, 3.5, 8.0, 0.25))
    add("wells", "wells-6", "testing", 6, wells(6, 2.0, 10.0, -0.35))
    add("scale", "half-cauchy-7", "testing", 8, half_cauchy(7, 1.5))
    add("scale", "schools-15", "testing", 9, schools(15.0))
    add("cauchy", "cauchy-5", "testing", 5, cauchy(5))
    add("cauchy", "student-4", "testing", 4, cauchy(4, 2.5))
    add("wells", "wells-5", "seen-2", 5, wells(5, 2.5, 7.0, 0.2))
    add("wells", "wells-12", "seen-2", 12, wells(12, 3.0, 9.0, -0.3))
    add("scale", "half-cauchy-6", "seen-2", 7, half_cauchy(6, 0.5))
    add("scale", "schools-10", "seen-2", 9, schools(10.0))
    add("cauchy", "cauchy-3", "seen-2", 3, cauchy(3))
    add("cauchy", "student-2", "seen-2", 2, cauchy(2, 3.0))
    add("wells", "wells-10", "tuning", 10, wells(10, 3.0, 8.0, 0.3))
    add("wells", "wells-10-high", "tuning", 10, wells(10, 2.0, 15.0, 0.2))
    add("wells", "wells-7", "seen", 7, wells(7, 4.0, 10.0, -0.25))
    add("wells", "wells-14", "seen", 14, wells(14, 1.5, 6.0, 0.4))
    add("scale", "half-cauchy-5", "tuning", 6, half_cauchy(5, 1.0))
    add("scale", "half-cauchy-8", "seen", 9, half_cauchy(8, 2.5))
    add("scale", "schools", "tuning", 9, schools(5.0))
    add("scale", "schools-wide", "seen", 9, schools(25.0))
    add("cauchy", "cauchy-2", "tuning", 2, cauchy(2))
    apart = (lambda x: -jnp.sum(jnp.log1p(x**2)), float(2 * np.log(np.pi)))
    add("cauchy", "cauchies-2", "tuning", 2, apart)
    add("cauchy", "cauchy-4", "seen", 4, cauchy(4))
    add("cauchy", "student-3", "seen", 3, cauchy(3, 2.0))

    def half_normal(x):
        return jnp.where(x[0] > 0, -0.5 * x[0] ** 2 + 0.5 * np.log(2 / np.pi), -jnp.inf)

    def gamma_beta(x):
        return jstats.gamma.logpdf(x[0], 1.5, scale=4.0) + jstats.beta.logpdf(x[1], 1.2, 3.0)

    def cut_normals(x):  # a corner of a wide Gaussian
        constant = 3 * np.log(2 / 5) - 1.5 * _LOG_2PI
        return jnp.where(jnp.all(x > 1), -0.5 * jnp.sum(((x - 1) / 5) ** 2) + constant, -jnp.inf)

    add("bounded", "half-normal", "tuning", 1, half_normal)
    add("bounded", "gamma", "tuning", 1, lambda x: jstats.gamma.logpdf(x[0], 3.0))
    add("bounded", "beta", "tuning", 1, lambda x: jstats.beta.logpdf(x[0], 2.0, 5.0))
    add("bounded", "gamma-beta", "seen", 2, gamma_beta)
    add("bounded", "half-normals-3", "seen", 3, cut_normals)
    add("bounded", "exponential", "seen", 1, lambda x: jstats.expon.logpdf(x[0], scale=0.1))

    def beta_normal(x):
        return jstats.beta.logpdf(x[0], 3.0, 1.5) + jstats.norm.logpdf(x[1], 5.0, 2.0)

    add("bounded", "beta-normal", "seen-2", 2, beta_normal)
    add("bounded", "gamma-2", "seen-2", 1, lambda x: jstats.gamma.logpdf(x[0], 2.0, scale=10.0))
    add("bounded", "uniform", "seen-2", 1, lambda x: jstats.uniform.logpdf(x[0], -3.0, 8.0))

    def gamma_normal(x):
        return jstats.gamma.logpdf(x[0], 1.2, scale=0.5) + jstats.norm.logpdf(x[1], -4.0, 3.0)

    add("bounded", "gamma-normal", "testing", 2, gamma_normal)
    add("bounded", "beta-2", "testing", 1, lambda x: jstats.beta.logpdf(x[0], 1.5, 4.0))
    add("bounded", "uniform-wide", "testing", 1, lambda x: jstats.uniform.logpdf(x[0], 2.0, 30.0))
    for dtype in ("float32", "float64"):
        given = None if dtype == "float32" else dtype
        add("million", f"million-normal-{dtype}", "tuning", 2, million_normal(0.7, 1.3), given)
        add("million", f"million-binomial-{dtype}", "tuning", 2, million_binomial(0.8, 0), given)
        add("million", f"million-normal-{dtype}", "seen", 2, million_normal(-3.1, 0.4), given)
        add("million", f"million-binomial-{dtype}", "seen", 2, million_binomial(-1.5, 1), given)
        add("million", f"million-normal-{dtype}", "seen-2", 2, million_normal(1.9, 2.2), given)
        add("million", f"million-binomial-{dtype}", "seen-2", 2, million_binomial(0.4, 2), given)
        add("million", f"million-normal-{dtype}", "testing", 2, million_normal(-0.6, 0.8), given)
        add("million", f"million-binomial-{dtype}", "testing", 2, million_binomial(1.1, 3), given)
    add("cauchy", "student-6", "testing-2", 6, cauchy(6, 2.0))
    add("cauchy", "cauchies-4", "testing-2", 4, (apart[0], float(4 * np.log(np.pi))))
    add("scale", "schools-12", "testing-2", 9, schools(12.0))
    improper = {
        "testing": {
            "half-line-3": (3, lambda x: -0.5 * x[0] - x[1] ** 2 - 2 * (x[2] - x[1]) ** 2),
            "flat-plane": (4, lambda x: -0.5 * (x[0] ** 2 + (x[1] + x[2] - x[3]) ** 2)),
            "tail-3": (3, lambda x: -1.3 * jnp.log1p(jnp.sum(x**2))),
            "saddle-3": (3, lambda x: -0.5 * x[0] ** 2 - x[1] ** 2 + 0.02 * x[2] ** 2),
        },
        "testing-2": {
            "tail-4": (4, lambda x: -1.8 * jnp.log1p(jnp.sum((x - 2.0) ** 2))),
            "tail-oblong": (2, lambda x: -0.8 * jnp.log1p(x[0] ** 2 + (x[1] / 5 - 1) ** 2)),
            "tail-6": (6, lambda x: -2.7 * jnp.log1p(jnp.sum(x**2) / 9)),
        },
        "seen-2": {
            "ridge": (2, lambda x: -0.5 * (x[0] + 2 * x[1]) ** 2),
            "slope": (3, lambda x: 0.2 * x[1] - 0.5 * (x[0] - x[2]) ** 2 - x[2] ** 2),
            "tail-2": (2, lambda x: -0.9 * jnp.log1p(jnp.sum(x**2))),
            "growing": (1, lambda x: 0.01 * x[0] ** 2),
        },
        "tuning": {
            "half-line": (2, lambda x: -x[0] - x[1] ** 2 / 2),
            "flat": (2, lambda x: 0.0 * x[0]),
            "flat-one": (3, lambda x: -0.5 * (x[0] ** 2 + (x[1] - x[2]) ** 2)),
            "separable": (2, _separable),
        },
        "seen": {
            "half-line-4": (4, lambda x: 0.3 * x[2] - jnp.sum(x[:2] ** 2) - jnp.abs(x[3])),
            "tail": (1, lambda x: -0.5 * jnp.log1p(x[0] ** 2)),
            "saddle": (2, lambda x: -0.5 * x[0] ** 2 + 0.05 * x[1] ** 2),
            "scale-free": (2, lambda x: -0.5 * jnp.exp(-2 * x[1]) * x[0] ** 2 - x[1]),
        },
    }
    for where, each in improper.items():
        for name, (dim, fn) in each.items():
            add("improper", name, where, dim, (fn, np.inf))
    return found


HARD: list[Hard] = _all()
