"""A parameter under a frozen distribution of SciPy.

By default x = F^-1(Phi(z)) with z standard normal: in closed form where JAX has one (`scipy_families.py`),
else SciPy's own `ppf` on the host, in float64, with the derivative

    dx/dz = phi(z) / p(x)

so that gradients of the likelihood pass through it. Gamma, beta and t variables have coordinates of
their own. A multivariate normal is m + L z, L L^T its covariance.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri

from annealz.core.failures import call_on_host
from annealz.models.priors.scipy_families import DENSITIES, QUANTILES, Law
from annealz.models.priors.variable import Variable

_LEAST, _MOST = np.finfo(float).tiny, 1 - np.finfo(float).epsneg  # of a probability in float64


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
        u = np.clip(ndtr(np.asarray(z, np.float64)), _LEAST, _MOST)
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
        return np.where(low < 0.5, ndtri(low), -ndtri(high)).reshape(-1, size)

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
