"""NumPyro's models: the prior as the base, discrete latents, parameters by name."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import annealz
from annealz.core.random import Stream
from annealz.testing import assert_within_mc_error


def mixture(y):
    """A normal mean with a shift that is there with probability 0.3, and a bound that follows the mean."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("part", dist.Uniform(0.0, jnp.exp(mean)))
    shift = numpyro.sample("shift", dist.Bernoulli(0.3))
    numpyro.deterministic("double", 2 * mean)
    numpyro.sample("y", dist.Normal(mean + shift, 1.0), obs=y)


def test_discrete_latents_are_summed_out_and_the_base_is_the_prior(seed):
    model = annealz.from_numpyro(mixture, 1.0)
    assert (model.dim, model.prior.name) == (2, "prior")
    root = np.sqrt(2)
    exact = np.log(0.7 * stats.norm.pdf(1, 0, root) + 0.3 * stats.norm.pdf(0, 0, root))
    bits = Stream(seed, "prior").at(0, np.arange(4000))
    x = jax.jit(lambda bits: model.prior.sample(bits))(bits)
    ratios = np.exp(
        np.float64(jax.jit(lambda x: model.log_density(x) - model.prior.log_density(x))(x))
    )
    assert_within_mc_error(ratios.mean(), np.exp(exact), ratios.std() / np.sqrt(len(x)))
    values = model.parameters.constrain(x)
    assert set(values) == set(model.parameters.names) == {"mean", "part", "double"}
    assert stats.kstest(values["mean"], "norm").pvalue > 1e-6
    shares = values["part"] / np.exp(values["mean"])
    assert stats.kstest(shares, "uniform").pvalue > 1e-6
    np.testing.assert_allclose(values["double"], 2 * values["mean"], rtol=1e-6)
    np.testing.assert_allclose(model.parameters.unconstrain(values)[:100], x[:100], atol=1e-2)


def test_the_prior_has_integral_one_and_float64_agrees():
    def coin(heads):
        share = numpyro.sample("share", dist.Uniform(0.0, 1.0))
        numpyro.sample("heads", dist.Binomial(20, share), obs=heads)

    model = annealz.from_numpyro(coin, 7)
    grid = np.linspace(-12, 12, 2001, dtype=np.float32)[:, None]
    density = np.exp(np.float64(jax.jit(lambda x: model.prior.log_density(x))(grid)))
    np.testing.assert_allclose(np.trapezoid(density, grid[:, 0]), 1, atol=1e-4)
    double = annealz.from_numpyro(coin, 7, dtype="float64")
    near = grid[800:1200:50]
    both = jax.jit(lambda x: (double.log_density(x), model.log_density(x)))(near)
    np.testing.assert_allclose(*both, rtol=1e-5)


def test_a_reweighted_or_improper_prior_is_no_base():
    def scaled(y):
        with numpyro.handlers.scale(scale=0.5):
            mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    assert annealz.from_numpyro(scaled, 1.0).prior is None


def test_what_cannot_be_summed_out_is_refused():
    def count():
        rate = numpyro.sample("rate", dist.Gamma(1.0, 1.0))
        numpyro.sample("count", dist.Poisson(rate))

    with pytest.raises(ValueError, match="count is discrete without end"):
        annealz.from_numpyro(count)
    with pytest.raises(ValueError, match="must run with the arguments .* TypeError"):
        annealz.from_numpyro(mixture)
    with pytest.raises(ValueError, match="must be a function of NumPyro"):
        annealz.from_numpyro(3)
