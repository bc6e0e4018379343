"""Models whose evidence is known in closed form, by name: (model, exact log Z)."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from scipy.special import betaln, gammaln

import annealz

__all__ = ["PROBLEMS"]

_NOISE = 0.5


def regression(dim: int) -> tuple[annealz.LogDensity, float]:
    """y = X w + noise of 0.5, w ~ N(0, 1), from dim + 50 rows: y ~ N(0, X X^T + 0.25)."""
    generator = np.random.default_rng(dim)
    rows = dim + 50
    x = generator.normal(size=(rows, dim))
    y = x @ generator.normal(size=dim) + _NOISE * generator.normal(size=rows)
    covariance = x @ x.T + _NOISE**2 * np.eye(rows)
    exact = -0.5 * (
        y @ np.linalg.solve(covariance, y)
        + np.linalg.slogdet(covariance)[1]
        + rows * np.log(2 * np.pi)
    )
    constant = -rows * np.log(_NOISE) - (rows + dim) / 2 * np.log(2 * np.pi)
    inputs, outputs = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)

    def log_density(w):
        misfit = (outputs - inputs @ w) / _NOISE
        return -0.5 * (misfit @ misfit + w @ w) + constant

    return annealz.LogDensity(log_density, dim, f"regression-{dim}"), float(exact)


def mixture(dim: int, means, scales, name: str) -> tuple[annealz.LogDensity, float]:
    """Unnormalised Gaussians side by side: log Z = log of the sum of their volumes."""
    means, scales = np.asarray(means, np.float64), np.asarray(scales, np.float64)
    exact = np.logaddexp.reduce(dim * np.log(scales) + dim / 2 * np.log(2 * np.pi))
    centres, widths = jnp.asarray(means, jnp.float32), jnp.asarray(scales, jnp.float32)

    def log_density(x):
        return logsumexp(-0.5 * ((x - centres) ** 2).sum(-1) / widths**2)

    return annealz.LogDensity(log_density, dim, name), float(exact)


def beta_binomial() -> tuple[annealz.LogDensity, float]:
    """7 of 20, with a Beta(2, 3) prior on (0, 1)."""

    def model(count):
        share = numpyro.sample("share", dist.Beta(2.0, 3.0))
        numpyro.sample("count", dist.Binomial(20, share), obs=count)

    choose = gammaln(21) - gammaln(8) - gammaln(14)
    exact = choose + betaln(2 + 7, 3 + 13) - betaln(2, 3)
    return annealz.from_numpyro(model, jnp.array(7), name="beta-binomial"), float(exact)


def gamma_poisson() -> tuple[annealz.LogDensity, float]:
    """Five counts with a Gamma(2, 0.5) prior on their positive rate."""
    counts = np.array([3, 5, 2, 7, 4])

    def model(counts):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 0.5))
        with numpyro.plate("rows", len(counts)):
            numpyro.sample("counts", dist.Poisson(rate), obs=counts)

    total, rows = counts.sum(), len(counts)
    exact = 2 * np.log(0.5) - gammaln(2) - gammaln(counts + 1).sum()
    exact += gammaln(2 + total) - (2 + total) * np.log(0.5 + rows)
    return annealz.from_numpyro(model, jnp.asarray(counts), name="gamma-poisson"), float(exact)


def normal_inverse_gamma() -> tuple[annealz.LogDensity, float]:
    """Twelve numbers of unknown mean and positive variance, with the conjugate prior."""
    rows = np.random.default_rng(5).normal(1.5, 0.8, 12)
    mean0, weight0, shape0, scale0 = 0.0, 0.5, 3.0, 2.0

    def model(rows):
        variance = numpyro.sample("variance", dist.InverseGamma(shape0, scale0))
        mean = numpyro.sample("mean", dist.Normal(mean0, jnp.sqrt(variance / weight0)))
        with numpyro.plate("rows", len(rows)):
            numpyro.sample("y", dist.Normal(mean, jnp.sqrt(variance)), obs=rows)

    count = len(rows)
    weight, shape = weight0 + count, shape0 + count / 2
    scale = (
        scale0
        + ((rows - rows.mean()) ** 2).sum() / 2
        + weight0 * count * (rows.mean() - mean0) ** 2 / (2 * weight)
    )
    exact = gammaln(shape) - gammaln(shape0) + shape0 * np.log(scale0) - shape * np.log(scale)
    exact += 0.5 * np.log(weight0 / weight) - count / 2 * np.log(2 * np.pi)
    density = annealz.from_numpyro(model, jnp.asarray(rows), name="normal-inverse-gamma")
    return density, float(exact)


def dirichlet_multinomial() -> tuple[annealz.LogDensity, float]:
    """Counts of four kinds, with a Dirichlet prior on the simplex."""
    counts, prior = np.array([4, 0, 9, 2]), np.array([1.0, 0.5, 2.0, 1.5])

    def model(counts):
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.asarray(prior)))
        numpyro.sample("counts", dist.Multinomial(total, shares), obs=counts)

    total = int(counts.sum())
    exact = gammaln(total + 1) - gammaln(counts + 1).sum()
    exact += gammaln(prior.sum()) - gammaln(prior.sum() + total)
    exact += (gammaln(prior + counts) - gammaln(prior)).sum()
    return annealz.from_numpyro(model, jnp.asarray(counts), name="dirichlet"), float(exact)


PROBLEMS: dict[str, Callable[[], tuple[annealz.LogDensity, float]]] = {
    **{f"regression-{dim}": lambda dim=dim: regression(dim) for dim in (2, 10, 50, 200)},
    "mixture-2": lambda: mixture(2, [[-3, 0], [3, 1], [0, 4]], [0.5, 1.0, 0.7], "mixture-2"),
    "mixture-10": lambda: mixture(
        10, np.array([[-1.0], [1.0]]) * np.ones((2, 10)), [0.7, 1.0], "mixture-10"
    ),
    "beta-binomial": beta_binomial,
    "gamma-poisson": gamma_poisson,
    "normal-inverse-gamma": normal_inverse_gamma,
    "dirichlet-multinomial": dirichlet_multinomial,
}
