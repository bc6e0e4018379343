"""PyMC's models: the prior as the base, float64, parameters by name."""

import os
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

import annealz
from annealz.core.random import Stream
from annealz.testing import assert_within_mc_error

FLAGS = os.environ.get("XLA_FLAGS")


@pytest.fixture(scope="module")
def pm() -> Any:
    """Imported where it is needed: it takes as long as all of annealz."""
    with warnings.catch_warnings():  # of the libraries that it imports
        warnings.simplefilter("ignore")
        return pytest.importorskip("pymc")


def test_the_base_is_the_prior_and_the_density_is_pymcs(pm, seed):
    with pm.Model() as coin:
        share = pm.Beta("share", 2.0, 3.0)
        pm.Uniform("part", 0, share)
        pm.Deterministic("odds", share / (1 - share))
        pm.Binomial("heads", 20, share, observed=7)
    model = annealz.from_pymc(coin, name="coin")
    assert not jax.config.jax_enable_x64
    assert os.environ.get("XLA_FLAGS") == FLAGS
    assert (model.dim, model.name, model.prior.name) == (2, "coin", "prior")
    assert model.parameters.names == ("share", "part", "odds")

    bits = Stream(seed, "prior").at(0, np.arange(4000))
    x = jax.jit(lambda bits: model.prior.sample(bits))(bits)
    ratios = np.exp(
        np.float64(jax.jit(lambda x: model.log_density(x) - model.prior.log_density(x))(x))
    )
    exact = gammaln(21) - gammaln(8) - gammaln(14) + betaln(9, 16) - betaln(2, 3)
    assert_within_mc_error(ratios.mean(), np.exp(exact), ratios.std() / np.sqrt(len(x)))
    values = model.parameters.constrain(x)
    assert stats.kstest(values["share"], stats.beta(2, 3).cdf).pvalue > 1e-6
    assert stats.kstest(values["part"] / values["share"], "uniform").pvalue > 1e-6
    np.testing.assert_allclose(values["odds"], values["share"] / (1 - values["share"]), rtol=1e-6)
    np.testing.assert_allclose(model.parameters.unconstrain(values), x, rtol=1e-4, atol=1e-4)
    # log p + log |J|, both bijections logistic: d share = share (1 - share) dx, d part = share q (1 - q) dy
    share, q = values["share"], values["part"] / values["share"]
    density = stats.beta(2, 3).logpdf(share) + np.log(share * (1 - share)) + np.log(q * (1 - q))
    density += stats.binom(20, share).logpmf(7)
    inside = slice(0, 200)
    np.testing.assert_allclose(model.log_density(x[inside]), density[inside], rtol=1e-4, atol=1e-3)
    gradient = jax.jit(lambda x: model.value_and_gradient(x)[1])(x[:3])
    assert np.isfinite(gradient).all()


def test_what_is_no_density_is_refused(pm):
    with pm.Model() as switch:
        pm.Bernoulli("switch", 0.5)
    with pm.Model() as known:
        pm.Normal("y", 0, 1, observed=1.0)
    with pytest.raises(ValueError, match="switch is discrete: sum it out"):
        annealz.from_pymc(switch)
    with pytest.raises(ValueError, match="no free variables"):
        annealz.from_pymc(known)
    with pytest.raises(ValueError, match="model must be a pymc.Model, got int"):
        annealz.from_pymc(3)
    with pytest.raises(ValueError, match="give annealz.from_pymc"):
        annealz.estimate_log_z(switch)
