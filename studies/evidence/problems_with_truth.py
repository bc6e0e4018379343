"""Problems for every method: a prior, a likelihood, and the log evidence.

    log Z = log ∫ L(theta) pi(theta) dtheta,    pi uniform on a box, or N(0, I)

A likelihood is one function of theta (..., dim) and of the array module, NumPy (float64, for the methods
that take Python functions) or jax.numpy. Correlated priors are whitened: theta are then the whitened
variables.

Truths are closed forms, or quadrature in one or two dimensions (done here), or long runs of two unlike
methods (`evidence_reference.py`, results/reference.json), as `source` says.
"""

import dataclasses
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import erf, gammaln, logsumexp, ndtri

__all__ = ["NAMES", "Problem", "problem"]

_LOG_2PI = np.log(2 * np.pi)
_REFERENCE = Path(__file__).parent / "results" / "reference.json"


@dataclasses.dataclass(frozen=True)
class Problem:
    """A prior and a likelihood; `low` and `high` are None where the prior is N(0, I)."""

    name: str
    dim: int
    log_likelihood: Callable[[Any, Any], Any]
    truth: float | None
    source: str
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    def transform(self, u: np.ndarray) -> np.ndarray:
        """Parameters of points (..., dim) of the unit cube."""
        if self.low is None or self.high is None:
            return ndtri(u)
        return self.low + (self.high - self.low) * u

    def on_host(self, theta: np.ndarray) -> np.ndarray:
        """The log likelihood in NumPy."""
        return self.log_likelihood(np.asarray(theta, np.float64), np)

    def in_jax(self, theta):
        """The log likelihood in JAX."""
        import jax.numpy as jnp

        return self.log_likelihood(theta, jnp)

    def transform_in_jax(self, u):
        """The same as `transform`, of one point, in JAX."""
        import jax.numpy as jnp
        from jax.scipy.special import ndtri as inverse

        if self.low is None or self.high is None:
            return inverse(u)
        low, high = jnp.asarray(self.low, u.dtype), jnp.asarray(self.high, u.dtype)
        return low + (high - low) * u


def _box(name, dim, fn, truth, source, low, high) -> Problem:
    """With the same bounds in every direction, or bounds of their own."""
    ends = [np.array(np.broadcast_to(end, dim), float) for end in (low, high)]
    return Problem(name, dim, fn, truth, source, *ends)


# --- on a box ---------------------------------------------------------------------------------


def eggbox() -> Problem:
    """18 equal peaks on [0, 10 pi]^2 (Feroz, Hobson and Bridges, 2009)."""

    def fn(x, xp):
        return (2 + xp.cos(x[..., 0] / 2) * xp.cos(x[..., 1] / 2)) ** 5

    nodes = (np.arange(2000) + 0.5) / 2000 * 10 * np.pi  # periodic: the midpoint rule is exact
    table = fn(np.stack(np.meshgrid(nodes, nodes), -1), np)
    truth = float(logsumexp(table) - np.log(table.size))
    return _box("eggbox", 2, fn, truth, "quadrature in two dimensions", 0.0, 10 * np.pi)


def _gaussians(x, xp, means, scales, log_weights):
    """log of a sum of normalised Gaussians."""
    dim, terms = x.shape[-1], []
    for mean, scale, log_weight in zip(means, scales, log_weights, strict=True):
        square = xp.sum(((x - mean) / scale) ** 2, -1)
        terms.append(log_weight - 0.5 * square - dim * (np.log(scale) + 0.5 * _LOG_2PI))
    total = terms[0]
    for term in terms[1:]:
        total = xp.logaddexp(total, term)
    return total


def _inside(dim: int, low: float, high: float, mean: float, scale: float) -> float:
    """log of the mass of N(mean, scale^2 I) in a cube."""
    ends = [(end - mean) / (scale * np.sqrt(2)) for end in (low, high)]
    return dim * np.log((erf(ends[1]) - erf(ends[0])) / 2)


def spike_slab(dim: int = 10) -> Problem:
    """Skilling's (2006): on [-1/2, 1/2]^dim, a slab of width 0.1, a spike of 0.01 of 100 times its mass."""
    means, scales, logs = (0.0, 0.031), (0.1, 0.01), (0.0, np.log(100.0))

    def fn(x, xp):
        return _gaussians(x, xp, means, scales, logs)

    masses = [
        w + _inside(dim, -0.5, 0.5, m, s) for m, s, w in zip(means, scales, logs, strict=True)
    ]
    return _box(f"spike-slab-{dim}", dim, fn, float(logsumexp(masses)), "closed form", -0.5, 0.5)


def spike_and_background(dim: int = 10) -> Problem:
    """On [-5, 5]^dim, Gaussians of widths 1 and 0.1 at 0, the narrow one with 90 % of the evidence.

    That of the chapter on nested sampling of BlackJAX's book: -11.53388 in ten dimensions.
    """
    scales, shares = (1.0, 0.1), (1.0, 9.0)
    logs = [np.log(share) + dim / 2 * _LOG_2PI for share in shares]  # heights 1 and 9 x 10^dim

    def fn(x, xp):
        return _gaussians(x, xp, (0.0, 0.0), scales, logs)

    masses = [w + _inside(dim, -5.0, 5.0, 0.0, s) for s, w in zip(scales, logs, strict=True)]
    truth = float(logsumexp(masses) - dim * np.log(10))
    return _box(f"spike-background-{dim}", dim, fn, truth, "closed form", -5.0, 5.0)


def shells(dim: int) -> Problem:
    """Two thin shells in [-6, 6]^dim (Feroz and Hobson, 2008): radius 2, width 0.1, centres 7 apart."""
    radius, width, far = 2.0, 0.1, 3.5

    def fn(x, xp):
        terms = []
        for sign in (-1.0, 1.0):
            square = xp.sum(x[..., 1:] ** 2, -1) + (x[..., 0] - sign * far) ** 2
            terms.append(-0.5 * ((xp.sqrt(square) - radius) / width) ** 2)
        return xp.logaddexp(*terms) - np.log(width) - 0.5 * _LOG_2PI

    def radial(r):
        return r ** (dim - 1) * np.exp(-0.5 * ((r - radius) / width) ** 2)

    middle = quad(radial, 0, radius + 12 * width, points=[radius], epsabs=0, epsrel=1e-12)[0]
    surface = np.log(2) + dim / 2 * np.log(np.pi) - gammaln(dim / 2)
    log_z = np.log(2) + surface + np.log(middle) - np.log(width) - 0.5 * _LOG_2PI
    return _box(f"shells-{dim}", dim, fn, float(log_z - dim * np.log(12)), "quadrature", -6.0, 6.0)


def funnel(dim: int = 10) -> Problem:
    """Neal's, as a likelihood: v ~ N(0, 3^2), x_i ~ N(0, e^v), on [-10, 10] x [-30, 30]^(dim - 1)."""
    scale, wide = 3.0, 30.0

    def fn(x, xp):
        v, rest = x[..., 0], x[..., 1:]
        of_rest = -0.5 * (xp.exp(-v) * xp.sum(rest**2, -1) + (dim - 1) * (v + _LOG_2PI))
        return -0.5 * (v / scale) ** 2 - np.log(scale) - 0.5 * _LOG_2PI + of_rest

    def given(v):  # the mass of the normals inside the box
        inside = erf(wide * np.exp(-v / 2) / np.sqrt(2)) ** (dim - 1)
        return np.exp(-0.5 * (v / scale) ** 2) / scale / np.sqrt(2 * np.pi) * inside

    mass = quad(given, -10, 10, limit=200, epsrel=1e-10)[0]
    truth = np.log(mass) - np.log(20) - (dim - 1) * np.log(2 * wide)
    low, high = np.full(dim, -wide), np.full(dim, wide)
    low[0], high[0] = -10.0, 10.0
    return _box(f"funnel-{dim}", dim, fn, float(truth), "quadrature", low, high)


def many_well(pairs: int = 16) -> Problem:
    """Pairs of -x^4 + 6 x^2 + x/2 and -y^2/2 (Noé et al., 2019), on [-6, 6]^32; on R^32 164.695675."""

    def one(x):
        return -(x**4) + 6 * x**2 + 0.5 * x

    def fn(x, xp):
        return xp.sum(one(x[..., 0::2]) - 0.5 * x[..., 1::2] ** 2, -1)

    well = quad(lambda x: np.exp(one(x)), -6, 6, points=[-1.7, 1.7], epsabs=0, epsrel=1e-12)[0]
    each = np.log(well) + 0.5 * _LOG_2PI + np.log(erf(6 / np.sqrt(2)))
    truth = float(pairs * (each - 2 * np.log(12)))
    return _box(f"many-well-{2 * pairs}", 2 * pairs, fn, truth, "quadrature", -6.0, 6.0)


def two_blobs() -> Problem:
    """Two Gaussians of height 1 and width 0.2, at (-3, -3) and (3, 3), on [-10, 10]^2."""
    logs = (np.log(2 * np.pi * 0.04),) * 2

    def fn(x, xp):
        return _gaussians(x, xp, (-3.0, 3.0), (0.2, 0.2), logs)

    truth = float(np.log(4 * np.pi * 0.04 / 400))
    return _box("two-blobs", 2, fn, truth, "closed form", -10.0, 10.0)


def modes(dim: int = 5) -> Problem:
    """Gaussians at 0 and 20 on the first axis, of widths 1 and 0.5 and equal masses, on [-40, 40]^dim."""
    far = 20.0 * np.eye(dim)[0]

    def fn(x, xp):
        return _gaussians(x, xp, (0.0, far.astype(str(x.dtype))), (1.0, 0.5), (np.log(0.5),) * 2)

    return _box(f"modes-{dim}", dim, fn, float(-dim * np.log(80)), "closed form", -40.0, 40.0)


def wells(dim: int = 10) -> Problem:
    """Two wells in every direction, at -3 and 3 with a barrier of 8 nats and a tilt, on [-6, 6]^dim."""

    def one(x):
        return -8 * (x**2 - 9) ** 2 / 81 + 0.3 * x

    def fn(x, xp):
        return xp.sum(one(x), -1)

    each = quad(lambda x: np.exp(one(x)), -6, 6, points=[-3, 3], epsabs=0, epsrel=1e-12)[0]
    truth = float(dim * (np.log(each) - np.log(12)))
    return _box(f"wells-{dim}", dim, fn, truth, "quadrature", -6.0, 6.0)


# --- normal priors, whitened ------------------------------------------------------------------


def gaussian(dim: int = 50) -> Problem:
    """Prior N(0, I), a likelihood of widths from 0.05 to 0.5 in directions of no coordinate."""
    generator = np.random.default_rng(50)
    axes = np.linalg.qr(generator.normal(size=(dim, dim)))[0]
    widths = np.geomspace(0.05, 0.5, dim)
    centre = axes @ (generator.normal(size=dim) * np.sqrt(1 + widths**2))
    factor = axes / widths

    def fn(x, xp):
        turned = (x - centre.astype(str(x.dtype))) @ factor.astype(str(x.dtype))
        return -0.5 * xp.sum(turned**2, -1) - np.log(widths).sum() - dim / 2 * _LOG_2PI

    variance = 1 + widths**2
    truth = -0.5 * np.sum((axes.T @ centre) ** 2 / variance + np.log(variance) + _LOG_2PI)
    return Problem(f"gaussian-{dim}", dim, fn, float(truth), "closed form")


def hierarchy(groups: int = 10, rows: int = 5) -> Problem:
    """mu ~ N(0, 5^2), theta_j ~ N(mu, 2^2), y_ij ~ N(theta_j, 1): all whitened."""
    generator = np.random.default_rng(11)
    top, between = 5.0, 2.0
    centres = 3.0 + between * generator.normal(size=groups)
    data = centres[:, None] + generator.normal(size=(groups, rows))
    means, within = data.mean(1), ((data - data.mean(1, keepdims=True)) ** 2).sum()
    constant = -0.5 * within - groups * rows / 2 * _LOG_2PI

    def fn(x, xp):
        theta = top * x[..., :1] + between * x[..., 1:]
        misfit = xp.sum((theta - means.astype(str(x.dtype))) ** 2, -1)
        return -0.5 * rows * misfit + constant

    covariance = (top**2 + np.zeros((groups, groups))) + between**2 * np.eye(groups)
    covariance = np.kron(covariance, np.ones((rows, rows))) + np.eye(groups * rows)
    flat = data.ravel()
    square = flat @ np.linalg.solve(covariance, flat)
    truth = -0.5 * (square + np.linalg.slogdet(covariance)[1] + flat.size * _LOG_2PI)
    return Problem(f"hierarchy-{groups + 1}", groups + 1, fn, float(truth), "closed form")


def _logistic(name: str, inputs: np.ndarray, signs: np.ndarray) -> Problem:
    """Weights of prior precision (3 d / pi^2) X^T X / n, whitened."""
    rows, dim = inputs.shape
    precision = 3 * dim / np.pi**2 * inputs.T @ inputs / rows
    whitened = signs[:, None] * np.linalg.solve(np.linalg.cholesky(precision), inputs.T).T

    def fn(x, xp):
        return -xp.sum(xp.logaddexp(0.0, -(x @ whitened.T.astype(str(x.dtype)))), -1)

    return Problem(name, dim, fn, _reference(name), "long runs")


def simulated_logistic(dim: int, rows: int) -> Problem:
    """Simulated, of the size of a well-known data set: correlated inputs and a constant."""
    generator = np.random.default_rng(dim)
    inputs = generator.normal(size=(rows, dim - 1)) @ (
        np.eye(dim - 1) + 0.3 * generator.normal(size=(dim - 1, dim - 1)) / np.sqrt(dim)
    )
    inputs = np.concatenate([np.ones((rows, 1)), inputs], 1)
    logits = inputs @ (generator.normal(size=dim) / np.sqrt(dim) * 1.5)
    signs = np.where(generator.random(rows) < 1 / (1 + np.exp(-logits)), 1.0, -1.0)
    return _logistic(f"logistic-{dim}", inputs, signs)


def breast_cancer() -> Problem:
    """scikit-learn's data: 569 rows, 30 inputs and a constant."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    inputs = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    return _logistic("breast-cancer-31", inputs, 2.0 * y - 1)


def cox(side: int = 30) -> Problem:
    """A log-Gaussian Cox process on a side x side grid (Møller et al., 1998), of a simulated pattern.

    y_s ~ Poisson(a e^{f_s}), a = 1/side^2, f ~ N(mu, sigma^2 exp(-|s - t| / (side/33))), whitened:
    f = mu + L x. Without the log y! term. sigma^2 = 1.91, mu = log 126 - sigma^2 / 2, distances in cells.
    """
    variance, area = 1.91, 1.0 / side**2
    mean = np.log(126) - variance / 2
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)
    apart = np.sqrt(((cells[:, None] - cells[None]) ** 2).sum(-1))
    factor = np.linalg.cholesky(variance * np.exp(-apart / (side / 33)))
    generator = np.random.default_rng(126)
    field = mean + factor @ generator.normal(size=side**2)
    counts = generator.poisson(area * np.exp(field)).astype(float)

    def fn(x, xp):
        here = mean + x @ factor.T.astype(str(x.dtype))
        return xp.sum(counts.astype(str(x.dtype)) * here - area * xp.exp(here), -1)

    return Problem(f"cox-{side**2}", side**2, fn, _reference(f"cox-{side**2}"), "long runs")


def _reference(name: str) -> float | None:
    if not _REFERENCE.exists():
        return None
    found = json.loads(_REFERENCE.read_text()).get(name)
    return None if found is None else found["log_z"]


_MAKERS: dict[str, Callable[[], Problem]] = {
    "eggbox": eggbox,
    "two-blobs": two_blobs,
    "shells-2": lambda: shells(2),
    "modes-5": modes,
    "spike-slab-5": lambda: spike_slab(5),
    "logistic-8": lambda: simulated_logistic(8, 768),
    "spike-slab-10": spike_slab,
    "spike-background-10": spike_and_background,
    "shells-10": lambda: shells(10),
    "funnel-10": funnel,
    "wells-10": wells,
    "hierarchy-11": hierarchy,
    "logistic-25": lambda: simulated_logistic(25, 1000),
    "shells-30": lambda: shells(30),
    "breast-cancer-31": breast_cancer,
    "many-well-32": many_well,
    "gaussian-50": gaussian,
    "cox-900": cox,
}
NAMES: tuple[str, ...] = tuple(_MAKERS)


@cache
def problem(name: str) -> Problem:
    """By its name."""
    return _MAKERS[name]()
