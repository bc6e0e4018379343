"""Likelihoods under priors: transforms of the unit cube, distributions of SciPy and of NumPyro."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import potential_energy
from scipy import stats
from scipy.special import betaln

import annealz
from annealz.core.random import Stream
from annealz.models.priors.prior import JointPrior
from annealz.models.priors.scipy_variable import QUANTILES
from annealz.testing import assert_within_mc_error

RUN = {"schedule": "linear", "num_steps": 100, "num_chains": 100, "second_opinion": False}

BY_QUANTILE = {
    "norm": stats.norm(1, 2),
    "uniform": stats.uniform(-3, 5),
    "expon": stats.expon(1, 2),
    "halfnorm": stats.halfnorm(0, 3),
    "lognorm": stats.lognorm(0.5, scale=2),
    "cauchy": stats.cauchy(1, 2),
    "halfcauchy": stats.halfcauchy(0, 2),
    "laplace": stats.laplace(1, 2),
    "logistic": stats.logistic(-1, 2),
    "gumbel_r": stats.gumbel_r(1, 2),
    "gumbel_l": stats.gumbel_l(1, 2),
    "weibull_min": stats.weibull_min(1.5, scale=2),
    "pareto": stats.pareto(2.5),
    "loguniform": stats.loguniform(0.1, 10),
    "truncnorm": stats.truncnorm(-0.5, 2, 1, 2),
}
BY_DENSITY = {
    "gamma": stats.gamma(2.5, 1, 0.5),
    "invgamma": stats.invgamma(3.0, scale=2),
    "chi2": stats.chi2(5),
    "beta": stats.beta(2.5, 1.5, -1, 2),
    "t": stats.t(4, 1, 2),
}
EYE = np.eye(2, dtype=np.float32)
ON_THE_HOST = {"skewnorm": stats.skewnorm(3, 1, 2), "tail": stats.truncnorm(3, 5)}


def test_every_closed_form_is_tested():
    assert set(QUANTILES) - {"reciprocal"} == set(BY_QUANTILE)


def test_quantiles_are_scipys_in_both_tails():
    prior = JointPrior({**BY_QUANTILE, **ON_THE_HOST})
    assert prior.base.name == "prior"
    assert isinstance(prior.base, annealz.GaussianBase)
    z = np.linspace(-4.5, 4.5, 19)
    rows = np.repeat(z[:, None], prior.dim, 1)
    found = prior.parameters.constrain(rows)
    for name, law in {**BY_QUANTILE, **ON_THE_HOST}.items():
        exact = np.where(z < 0, law.ppf(stats.norm.cdf(z)), law.isf(stats.norm.sf(z)))
        np.testing.assert_allclose(found[name], exact, rtol=2e-4, atol=2e-5, err_msg=name)
    back = prior.parameters.unconstrain({n: np.float64(v) for n, v in found.items()})
    middle = np.abs(z) < 2
    np.testing.assert_allclose(back[middle], rows[middle], atol=1e-3)


def test_variables_by_density_have_scipys_law(seed):
    prior = JointPrior(BY_DENSITY)
    assert isinstance(prior.base, annealz.PriorBase)
    bits = Stream(seed, "prior").at(0, np.arange(4000))
    x = np.asarray(jax.jit(lambda bits: prior.base.sample(bits))(bits))
    values = prior.parameters.constrain(x)
    for name, law in BY_DENSITY.items():
        assert stats.kstest(values[name], law.cdf).pvalue > 1e-6, name
    # The density of the coordinates is that of the values, times the Jacobian.
    slopes = jax.jit(jax.vmap(jax.jacfwd(prior.values)))(x[:50])
    columns = dict(zip(prior.layout.names, range(prior.dim), strict=True))
    exact = sum(
        law.logpdf(np.float64(values[name][:50]))
        + np.log(np.abs(np.asarray(slopes[name])[:, columns[name]]))
        for name, law in BY_DENSITY.items()
    )
    found = prior.base.log_density(jnp.asarray(x[:50]))
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(prior.parameters.unconstrain(values), x, rtol=1e-2, atol=1e-2)


def test_the_derivative_of_a_quantile_on_the_host():
    law = ON_THE_HOST["skewnorm"]
    prior = JointPrior(law)
    z = np.array([-2.0, 0.0, 1.5], np.float32)
    slope = jax.jit(jax.vmap(jax.grad(lambda z: prior.values(z[None]))))(z)
    exact = stats.norm.pdf(z) / law.pdf(law.ppf(stats.norm.cdf(z)))
    np.testing.assert_allclose(slope, exact, rtol=1e-4)


def test_numpyros_distributions_and_any_pytree(seed):
    laws = [
        (dist.Dirichlet(np.float32([1, 2, 3])), dist.Uniform(1.0, np.float32([2, 2]))),
        {
            "half": dist.HalfNormal(2.0),
            "mvn": dist.MultivariateNormal(np.ones(2, np.float32), scale_tril=EYE),
        },
        stats.multivariate_normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]),
        stats.norm([0.0, 5.0], 1.0),
    ]
    prior = JointPrior(laws)
    assert prior.dim == 2 + 2 + 1 + 2 + 2 + 2
    bits = Stream(seed, "prior").at(0, np.arange(2000))
    x = np.asarray(jax.jit(lambda bits: prior.base.sample(bits))(bits))
    named = prior.parameters.constrain(x)
    values = jax.tree.unflatten(prior.layout.structure, [named[n] for n in prior.layout.names])
    (shares, rates), matrices, normals, pair = values
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    root = np.sqrt(len(x))
    assert_within_mc_error(shares.mean(0), np.array([1, 2, 3]) / 6, shares.std(0) / root)
    assert_within_mc_error(rates.mean(0), 1.5, rates.std(0) / root)
    assert_within_mc_error(np.cov(normals.T)[0, 1], 0.5, np.sqrt(2.25 / len(x)))
    assert_within_mc_error(pair.mean(0), [0, 5], 1 / root)
    assert matrices["half"].shape == (2000,)
    np.testing.assert_allclose(
        prior.parameters.unconstrain(prior.layout.by_name(values)), x, atol=0.02
    )

    correlations = dist.LKJ(3, 2.0)

    def model():

        numpyro.sample("shares", laws[0][0])
        numpyro.sample("corr", correlations)

    alone = JointPrior({"corr": correlations, "shares": laws[0][0]})
    point = np.linspace(-1, 1, 5).astype(np.float32)
    both = jax.jit(
        lambda x: (
            alone.log_density(x),
            -potential_energy(model, (), {}, {"corr": x[:3], "shares": x[3:]}),
        )
    )
    np.testing.assert_allclose(*both(point), rtol=1e-5)


def conjugate(data):
    """log Z of a normal mean and its data, prior N(0, 2^2), noise 1."""
    covariance = np.eye(len(data)) + 4
    return stats.multivariate_normal(np.zeros(len(data)), covariance).logpdf(data)


DATA = np.array([0.5, 1.5, 2.0])


@pytest.mark.parametrize(
    "prior",
    [stats.norm(0, 2), dist.Normal(0.0, 2.0)],
    ids=["scipy", "numpyro"],
)
def test_the_evidence_of_a_conjugate_model(prior, seed):
    """The mean's evidence is known, and a variable that the data do not know of adds nothing."""

    def log_likelihood(p):
        return jax.scipy.stats.norm.logpdf(DATA, p["mean"]).sum()

    model = annealz.from_prior(
        log_likelihood, prior={"mean": prior, "idle": dist.Uniform(1.0, 3.0)}
    )
    assert model.is_differentiable
    estimate = annealz.estimate_log_z(
        model, base="prior", kernel=annealz.HAIS(step_size=0.4), seed=seed, **RUN
    )
    assert_within_mc_error(estimate.log_z, conjugate(DATA), estimate.std_err)
    assert estimate.plan.base == "prior"


def test_a_likelihood_of_numpy_under_distributions(seed):
    def log_likelihood(p):
        assert isinstance(p["share"], np.ndarray | np.floating)
        return 7 * np.log(p["share"]) + 13 * np.log1p(-p["share"])

    model = annealz.from_prior(log_likelihood, prior={"share": stats.beta(2, 3)})
    assert not model.is_differentiable
    x = np.linspace(-2, 2, 5, dtype=np.float32)[:, None]
    share = 1 / (1 + np.exp(-np.float64(x[:, 0])))
    exact = 9 * np.log(share) + 16 * np.log1p(-share) - betaln(2, 3)
    np.testing.assert_allclose(jax.jit(lambda x: model.log_density(x))(x), exact, rtol=1e-5)


# dynesty's examples: a correlated normal in three dimensions, and the eggbox, as its users write them.
NDIM = 3
COVARIANCE = np.full((NDIM, NDIM), 0.95) + 0.05 * np.eye(NDIM)
INVERSE = np.linalg.inv(COVARIANCE)
LNORM = -0.5 * (np.log(2 * np.pi) * NDIM + np.log(np.linalg.det(COVARIANCE)))


def loglike(x):
    return -0.5 * np.dot(x, np.dot(INVERSE, x)) + LNORM


def ptform(u):
    return 10.0 * (2.0 * u - 1.0)


def eggbox(x):
    tmax = 5.0 * np.pi
    t = 2.0 * tmax * x - tmax
    return (2.0 + np.cos(t[0] / 2.0) * np.cos(t[1] / 2.0)) ** 5.0


def test_dynestys_correlated_normal(seed):
    model = annealz.from_prior(loglike, ptform, NDIM, names=["a", "b", "c"])
    assert (model.name, model.dim, model.prior.log_z) == ("loglike", 3, 1.5 * np.log(2 * np.pi))
    assert "NumPy function" in model.note
    values = model.parameters.constrain(np.zeros((2, 3)))
    assert list(values) == ["a", "b", "c"]
    estimate = annealz.estimate_log_z(
        model, base="prior", kernel=annealz.RandomWalk(0.25), seed=seed, **RUN
    )
    assert_within_mc_error(estimate.log_z, -NDIM * np.log(20), estimate.std_err)


def test_dynestys_eggbox(seed):
    model = annealz.from_prior(
        log_likelihood=eggbox, prior_transform=lambda x: x, num_dims=2, name="eggbox"
    )
    options = {**RUN, "num_steps": 300}
    estimate = annealz.estimate_log_z(
        model, base="prior", kernel=annealz.RandomWalk(0.1), seed=seed, **options
    )
    assert_within_mc_error(estimate.log_z, 235.856, estimate.std_err)


@pytest.mark.parametrize(
    ("log_likelihood", "transform", "vectorized", "is_differentiable"),
    [
        (lambda x: -0.5 * jnp.dot(x, x), lambda u: 20 * u - 10, False, True),
        (lambda x: -0.5 * np.dot(x, x), lambda u: 20 * jnp.asarray(u) - 10, False, False),
        (lambda x: -0.5 * jnp.dot(x, x), lambda u: np.multiply(u, 20) - 10, False, False),
        (lambda x: -0.5 * np.sum(np.square(x), 1), lambda u: 20 * u - 10, True, False),
        (lambda x: -0.5 * jnp.sum(x**2, 1), lambda u: 20 * u - 10, True, True),
    ],
    ids=["jax", "numpy of jax", "jax of numpy", "numpy vectorised", "jax vectorised"],
)
def test_transforms_and_likelihoods_of_every_kind(
    log_likelihood, transform, vectorized, is_differentiable
):
    model = annealz.from_prior(log_likelihood, transform, 2, vectorized=vectorized)
    assert model.is_differentiable == is_differentiable
    z = np.array([[0.1, -0.2], [9.0, -9.0], [0.0, 4.0]], np.float32)
    theta = 20 * stats.norm.cdf(np.float64(z)) - 10
    exact = stats.norm.logpdf(z).sum(1) - 0.5 * (theta**2).sum(1)
    np.testing.assert_allclose(jax.jit(lambda x: model.log_density(x))(z), exact, rtol=1e-5)
    np.testing.assert_allclose(model.parameters.constrain(z)["theta"], theta, atol=1e-4)


def test_a_transform_may_change_its_argument():
    def in_place(u):
        u[0] = 3 * u[0]
        return u

    model = annealz.from_prior(lambda x: -np.dot(x, x), in_place, 2)
    theta = model.parameters.constrain(np.zeros((2, 2)))["theta"]
    np.testing.assert_allclose(theta, [[1.5, 0.5]] * 2)


def flat(x):
    return 0.0 * x.sum()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: annealz.from_prior(3, ptform, 2), "log_likelihood must be a function"),
        (lambda: annealz.from_prior(flat), "a prior_transform with num_dims, or prior="),
        (lambda: annealz.from_prior(flat, ptform), "num_dims must be the number of parameters"),
        (lambda: annealz.from_prior(flat, stats.norm(), 2), "distributions are given by prior="),
        (lambda: annealz.from_prior(flat, ptform, 2, names=["a"]), "names must be 2 different"),
        (
            lambda: annealz.from_prior(flat, lambda u: u[:1], 2),
            r"prior_transform of flat must return 2 parameters .*, got shape \(1,\)",
        ),
        (
            lambda: annealz.from_prior(flat, lambda u: jnp.log(u - 0.5), 2),
            "prior_transform of flat must return finite parameters, got .* at u =",
        ),
        (
            lambda: annealz.from_prior(flat, lambda u: np.arccosh(2 * np.asarray(u)), 2),
            "prior_transform of flat must return finite parameters",
        ),
        (lambda: annealz.from_prior(flat, lambda u: {}["a"], 2), "prior_transform .* KeyError"),
        (
            lambda: annealz.from_prior(lambda x: x, ptform, 2, name="m"),
            r"log_likelihood of m must return one real number, got shape \(2,\)",
        ),
        (
            lambda: annealz.from_prior(lambda x: float(jnp.sum(x)), ptform, 2, name="m"),
            "log_likelihood of m mixes JAX with Python numbers",
        ),
        (
            lambda: annealz.from_prior(lambda p: p["b"], prior={"a": stats.norm()}),
            "log_likelihood of posterior must take the values of a, .* KeyError: 'b'",
        ),
        (lambda: annealz.from_prior(flat, prior={}), "at least one distribution"),
        (lambda: annealz.from_prior(flat, prior={"a": 3}), "prior of a must be a frozen"),
        (lambda: annealz.from_prior(flat, prior={"a": stats.norm}), "prior of a must be a frozen"),
        (lambda: annealz.from_prior(flat, prior=[stats.poisson(3)]), "prior of 0 .* is discrete"),
        (lambda: annealz.from_prior(flat, prior={"a": stats.norm(0, -1)}), "finite median"),
        (lambda: annealz.from_prior(flat, prior={"a": stats.wishart(3, np.eye(2))}), "no quantile"),
        (lambda: annealz.from_prior(flat, prior={"a": dist.Poisson(3.0)}), "Poisson is discrete"),
        (
            lambda: annealz.from_prior(
                flat, prior={"a": dist.ImproperUniform(dist.constraints.real, (), ())}
            ),
            "prior of a must be a distribution with a density and with draws",
        ),
        (lambda: annealz.from_prior(flat, prior=stats.norm(), num_dims=2), "leave them out"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_bad_input_is_refused_in_one_sentence(make, words):
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_digest_knows_the_prior():
    def make(prior):
        return annealz.from_prior(lambda p: -(p["a"] ** 2), prior={"a": prior})

    for first, other in [
        (stats.skewnorm(3), stats.skewnorm(4)),
        (dist.Normal(0.0, 1.0), dist.Normal(0.0, 2.0)),
    ]:
        assert make(first).digest == make(first).digest
        assert make(first).digest != make(other).digest
    bases = [make(dist.Normal(0.0, scale)).prior.digest for scale in (1.0, 1.0, 2.0)]
    assert bases[0] == bases[1] != bases[2]
