"""A parameter under a frozen distribution of SciPy, in JAX.

By default by the quantile function, with z standard normal,

    x = F^-1(Phi(z))        1 - Phi(z) = Phi(-z)

exact in both tails: neither is computed from the difference of two numbers near 1. Where JAX has no closed
form SciPy's own `ppf` is called on the host, in float64, with the derivative

    dx/dz = phi(z) / p(x)

so that gradients of the likelihood pass through it. Some families have coordinates y of their own; draws of
them are exact, from log gamma variables:

    gamma       x = e^y           log p(y) = a y - e^y - log Gamma(a)
    invgamma    x = e^-y          y as above
    beta        x = 1/(1 + e^-y)  log p(y) = a log x + b log(1 - x) - log B(a, b)     y = log g_a - log g_b
    t           x                 log p(x) of SciPy's

These are the standard forms, location 0 and scale 1, and the shapes are SciPy's. A multivariate normal is
m + L z, L L^T its covariance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, ndtr, ndtri
from jaxtyping import Array
from scipy import special as host

from annealz.core.failures import call_on_host
from annealz.models.priors.variable import Variable

_LEAST, _MOST = np.finfo(float).tiny, 1 - np.finfo(float).epsneg  # of a probability in float64


def _cauchy(z):
    return jnp.sign(z) / jnp.tan(jnp.pi * ndtr(-jnp.abs(z)))


def _laplace(z):
    tail = -log_ndtr(-jnp.abs(z)) - jnp.log(2.0)
    return jnp.sign(z) * tail


def _truncnorm(z, a, b):
    """Compute from the side on which the truncated law has its smaller probabilities."""
    a, b = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    is_right = a > 0
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    u = ndtr(jnp.where(is_right, -z, z))
    x = ndtri(ndtr(low) + u * (ndtr(high) - ndtr(low)))
    return jnp.clip(jnp.where(is_right, -x, x), a, b)


QUANTILES: dict[str, Callable[..., Any]] = {
    "norm": lambda z: z,
    "uniform": lambda z: ndtr(z),
    "expon": lambda z: -log_ndtr(-z),
    "halfnorm": lambda z: -ndtri(ndtr(-z) / 2),
    "lognorm": lambda z, s: jnp.exp(s * z),
    "cauchy": _cauchy,
    "halfcauchy": lambda z: 1 / jnp.tan(jnp.pi / 2 * ndtr(-z)),
    "laplace": _laplace,
    "logistic": lambda z: log_ndtr(z) - log_ndtr(-z),
    "gumbel_r": lambda z: -jnp.log(-log_ndtr(z)),
    "gumbel_l": lambda z: jnp.log(-log_ndtr(-z)),
    "weibull_min": lambda z, c: (-log_ndtr(-z)) ** (1 / c),
    "pareto": lambda z, b: jnp.exp(-log_ndtr(-z) / b),
    "loguniform": lambda z, a, b: jnp.exp(jnp.log(a) + ndtr(z) * (jnp.log(b) - jnp.log(a))),
    "reciprocal": lambda z, a, b: jnp.exp(jnp.log(a) + ndtr(z) * (jnp.log(b) - jnp.log(a))),
    "truncnorm": _truncnorm,
}


class Law(NamedTuple):
    """x of y, y of x (NumPy), log p(y) and draws of y, element by element; the shapes come last."""

    value: Callable[..., Array]
    coordinate: Callable[[np.ndarray], np.ndarray]
    density: Callable[..., Array]
    draw: Callable[..., Array]


def _gamma_density(y, a):
    return a * y - jnp.exp(y) - gammaln(a)


def _gamma_draw(key, shape, a):
    return jax.random.loggamma(key, jnp.broadcast_to(jnp.float32(a), shape))


def _beta_density(y, a, b):
    log_beta = gammaln(a) + gammaln(b) - gammaln(a + b)
    return a * jax.nn.log_sigmoid(y) + b * jax.nn.log_sigmoid(-y) - log_beta


def _beta_draw(key, shape, a, b):
    first, second = jax.random.split(key)
    return _gamma_draw(first, shape, a) - _gamma_draw(second, shape, b)


def _t_density(x, df):
    return (
        gammaln((df + 1) / 2)
        - gammaln(df / 2)
        - 0.5 * jnp.log(df * jnp.pi)
        - (df + 1) / 2 * jnp.log1p(x**2 / df)
    )


def _t_draw(key, shape, df):
    return jax.random.t(key, jnp.broadcast_to(jnp.float32(df), shape))


_GAMMA = Law(lambda y, a: jnp.exp(y), np.log, _gamma_density, _gamma_draw)

DENSITIES = {
    "gamma": _GAMMA,
    "chi2": Law(
        lambda y, df: 2 * jnp.exp(y),
        lambda x: np.log(x / 2),
        lambda y, df: _gamma_density(y, df / 2),
        lambda key, shape, df: _gamma_draw(key, shape, df / 2),
    ),
    "invgamma": Law(lambda y, a: jnp.exp(-y), lambda x: -np.log(x), _gamma_density, _gamma_draw),
    "beta": Law(
        lambda y, a, b: jax.nn.sigmoid(y),
        lambda x: np.log(x) - np.log1p(-x),
        _beta_density,
        _beta_draw,
    ),
    "t": Law(lambda y, df: y, lambda x: x, _t_density, _t_draw),
}


def is_scipy(given: Any) -> bool:
    """Check whether it is one of SciPy's distributions, frozen or not."""
    return type(given).__module__.startswith("scipy.stats")


def scipy_variable(name: str, given: Any) -> Variable:
    """Return the parameter of this name under a distribution of SciPy with a density."""
    kind = type(given).__name__
    from scipy import stats

    if isinstance(given, stats.rv_continuous | stats.rv_discrete):
        raise ValueError(
            f"prior of {name} must be a frozen distribution, got scipy.stats.{given.name}: give it its "
            f"parameters, such as scipy.stats.{given.name}(...)."
        )
    if kind == "multivariate_normal_frozen":
        return _multivariate_normal(given)
    if kind == "rv_discrete_frozen" or not (hasattr(given, "pdf") and _ppf(given) is not None):
        what = "is discrete" if "discrete" in kind else "has no quantile function"
        raise ValueError(
            f"prior of {name} must be a continuous distribution with a density, and SciPy's "
            f"{_family(given)} {what}: sum it out, or take one of NumPyro's distributions."
        )
    value = np.asarray(_ppf(given)(0.5))
    if not np.isfinite(value).all():
        raise ValueError(
            f"prior of {name} must be a distribution with a finite median, got {value.tolist()}: look at "
            "its parameters."
        )
    family, (shapes, loc, scale) = _family(given), _parsed(given)
    if family in DENSITIES:
        return _by_density(DENSITIES[family], value.shape, shapes, loc, scale)
    if family in QUANTILES:
        quantile, shape = QUANTILES[family], value.shape
        return _of_normal(
            given,
            shape,
            lambda z: (loc + scale * quantile(z.reshape(shape), *shapes)).astype(z.dtype),
        )
    return _by_callback(given, value.shape)


def _by_density(law: Law, shape, shapes, loc, scale) -> Variable:
    size = int(np.prod(shape))
    loc, scale = np.broadcast_to(loc, shape), np.broadcast_to(scale, shape)
    shapes = [np.broadcast_to(np.float32(s), shape) for s in shapes]

    def coordinates(x):
        return law.coordinate((np.asarray(x, np.float64) - loc) / scale).reshape(-1, size)

    return Variable(
        shape,
        size,
        lambda y: (loc + scale * law.value(y.reshape(shape), *shapes)).astype(y.dtype),
        coordinates,
        lambda y: law.density(y.reshape(shape), *shapes).sum(),
        lambda key: law.draw(key, shape, *shapes).reshape(size),
    )


def _by_callback(given: Any, shape: tuple[int, ...]) -> Variable:
    on_host = _OnHost(given, shape)

    @jax.custom_jvp
    def quantile(z):
        return on_host(on_host.quantile, z)

    @quantile.defjvp
    def _(primals, tangents):
        (z,), (dz,) = primals, tangents
        x = quantile(z)
        log_phi = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        return x, (jnp.exp(log_phi - on_host(on_host.log_density, x)) * dz).astype(x.dtype)

    return _of_normal(
        given, shape, lambda z: quantile(z.astype(jnp.float32).reshape(shape)).astype(z.dtype)
    )


class _OnHost:
    """SciPy's functions of one distribution, called by compiled programs."""

    def __init__(self, given: Any, shape: tuple[int, ...]):
        self.given, self.shape = given, shape

    def __call__(self, function, x):
        return call_on_host(function, jax.ShapeDtypeStruct(self.shape, jnp.float32), x)

    def quantile(self, z) -> np.ndarray:
        u = np.clip(host.ndtr(np.asarray(z, np.float64)), _LEAST, _MOST)
        return np.asarray(_ppf(self.given)(u), np.float32)

    def log_density(self, x) -> np.ndarray:
        x = np.asarray(x, np.float64)
        with np.errstate(divide="ignore"):
            log_pdf = getattr(self.given, "logpdf", lambda x: np.log(self.given.pdf(x)))
            return np.asarray(log_pdf(x), np.float32)

    @property
    def __fingerprint__(self) -> tuple:
        """The identity of its distribution, for digests."""
        if hasattr(self.given, "dist"):
            given = self.given
            return (given.dist.name, given.args, sorted(given.kwds.items()))
        return (repr(self.given),)


def _multivariate_normal(given: Any) -> Variable:
    """Return the parameter m + L z."""
    mean, covariance = np.asarray(given.mean, np.float64), np.asarray(given.cov_object.covariance)
    try:
        scale = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the covariance of a multivariate normal prior must be positive definite: one that is "
            "singular has no density."
        ) from None
    return Variable(
        mean.shape,
        mean.size,
        lambda z: (mean + jnp.matmul(scale, z, precision=jax.lax.Precision.HIGHEST)).astype(
            z.dtype
        ),
        lambda x: np.linalg.solve(scale, (np.asarray(x, np.float64) - mean).T).T,
    )


def _of_normal(given: Any, shape: tuple[int, ...], value: Callable[[Any], Any]) -> Variable:
    """Return the parameter of standard normal coordinates, which are found from the tail of its value."""
    size = int(np.prod(shape))

    def coordinates(x):
        x = np.asarray(x, np.float64)
        above = getattr(given, "sf", None) or given.ccdf
        low, high = given.cdf(x), above(x)
        return np.where(low < 0.5, host.ndtri(low), -host.ndtri(high)).reshape(-1, size)

    return Variable(shape, size, value, coordinates)


def _ppf(given: Any) -> Any:
    return getattr(given, "ppf", getattr(given, "icdf", None))


def _family(given: Any) -> str:
    return given.dist.name if hasattr(given, "dist") else type(given).__name__


def _parsed(given: Any) -> tuple[tuple, Any, Any]:
    """Return shapes, location and scale, as NumPy arrays."""
    if not hasattr(given, "dist"):
        return (), 0.0, 1.0
    shapes, loc, scale = given.dist._parse_args(*given.args, **given.kwds)
    return tuple(np.asarray(s) for s in shapes), np.asarray(loc), np.asarray(scale)
