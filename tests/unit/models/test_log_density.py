"""Log densities of the reals: bases, kernels, evidence, costs, folders."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

import annealz
from annealz.core.random import Stream
from annealz.io.serialise import restore, store
from annealz.paths.tempered import PhasePath
from annealz.pilots.densities.search import search_density
from annealz.testing import assert_within_mc_error

COVARIANCE = np.array([[0.5, 0.3], [0.3, 0.8]])
MEAN = np.array([1.0, -0.5])
PRECISION = jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32)
EXACT = float(np.log(2 * np.pi) + np.linalg.slogdet(COVARIANCE)[1] / 2)


def log_density(x):
    return -0.5 * (x - MEAN) @ PRECISION @ (x - MEAN)


MODEL = annealz.LogDensity(log_density, 2, "bell")
OPTIONS = {"num_steps": 150, "num_chains": 200}


def test_a_gaussian_base_knows_its_density_and_draws(seed):
    base = annealz.GaussianBase.from_moments(MEAN, COVARIANCE)
    bits = Stream(seed, "base").at(0, np.arange(20_000))
    x = np.asarray(jax.jit(lambda bits: base.sample(bits))(bits))
    law = stats.multivariate_normal(MEAN, COVARIANCE)
    density = np.asarray(jax.jit(lambda x: base.log_density(x))(x[:100]))
    np.testing.assert_allclose(density - base.log_z, law.logpdf(x[:100]), atol=1e-4)
    rows = np.float64(x)
    assert_within_mc_error(rows.mean(0), MEAN, np.sqrt(np.diag(COVARIANCE) / len(rows)))
    second = (rows - MEAN)[:, 0] * (rows - MEAN)[:, 1]
    assert_within_mc_error(second.mean(), 0.3, second.std() / np.sqrt(len(rows)))
    there_and_back = jax.jit(
        lambda x: base.from_unit(jax.lax.optimization_barrier(base.to_unit(x)))
    )
    np.testing.assert_allclose(there_and_back(x), x, atol=1e-5)


def test_more_variables_than_memory_holds():
    with pytest.raises(ValueError, match=r"dim = 1,000,000,000,000 "):
        annealz.LogDensity(lambda x: -(x**2).sum(), 10**12)


def test_normals_are_normal_to_the_tail(seed):
    bits = Stream(seed, "z").at(3, np.arange(5000))
    z = np.float64(jax.jit(lambda bits: bits.normals(100, 1))(bits)).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-6
    assert_within_mc_error((z**4).mean(), 3, np.sqrt(96 / z.size))
    assert abs(z).max() > 4.2


@pytest.mark.parametrize(
    ("mean", "covariance", "words"),
    [
        ([0.0, 0.0], [1.0], "shapes"),
        ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        ([0.0, 0.0], [1.0, -1.0], "positive definite"),
        ([0.0, np.nan], [1.0, 1.0], "finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_no_gaussian_is_refused(mean, covariance, words):
    with pytest.raises(ValueError, match=words):
        annealz.GaussianBase.from_moments(mean, covariance)


def test_the_laplace_base_of_a_gaussian_is_its_own_and_wider():
    found = search_density(MODEL, annealz.HAIS(), name="laplace")
    base = found.first
    np.testing.assert_allclose(base.mean, MEAN, atol=1e-3)
    np.testing.assert_allclose(base.scale @ base.scale.T, 1.5 * COVARIANCE, rtol=1e-3)
    assert found.evaluations < 20_000
    assert not found.findings


@pytest.mark.slow
def test_the_pilot_base_has_the_moments_of_the_target():
    """One Gaussian, or Student's t where that is clearly better: compared by quantiles, which both have."""
    base = search_density(MODEL, annealz.HAIS(), name="pilot").first
    assert base.name in ("pilot", "student")
    x = np.asarray(base.sample(Stream(0, "draws").at(0, jnp.arange(20_000))))
    np.testing.assert_allclose(np.median(x, axis=0), MEAN, atol=0.3)
    widths = np.diff(np.quantile(x, [0.25, 0.75], axis=0), axis=0)[0] / 1.349
    ratios = widths / np.sqrt(np.diag(COVARIANCE))
    assert (ratios > 0.8).all()
    assert (ratios < 1.6).all()


def test_the_laplace_base_has_the_modes_that_are_apart():
    centres = jnp.array([[-4.0, 0.0], [4.0, 0.0]])

    def two(x):
        return jax.scipy.special.logsumexp(-0.5 * ((x - centres) ** 2).sum(-1))

    model = annealz.LogDensity(two, 2, starts=[[-3.0, 1.0], [3.0, -1.0]])
    base = search_density(model, annealz.HAIS(), name="laplace").first
    assert base.num_components == 2
    weights = np.exp(base.log_weights)  # zero of components that fill it up
    np.testing.assert_allclose(weights[weights > 0], [0.5, 0.5], atol=0.15)
    places = np.asarray(base.from_unit(base.centres))[weights > 0]
    np.testing.assert_allclose(places[np.argsort(places[:, 0])], centres, atol=1e-2)


@pytest.mark.parametrize(
    "kernel", [annealz.HAIS(), pytest.param(annealz.RandomWalk(), marks=pytest.mark.slow)]
)
def test_log_z_from_two_sides_with_costs(kernel, seed):
    estimate = annealz.estimate_log_z(
        MODEL,
        base="standard",
        kernel=kernel,
        schedule="linear",
        two_sided=True,
        second_opinion=False,
        seed=seed,
        **OPTIONS,
    )
    assert_within_mc_error(estimate.log_z, EXACT, estimate.std_err)
    assert_within_mc_error(
        estimate.run.log_z0 + estimate.judgement.log_mean, EXACT, estimate.judgement.std_err
    )
    assert abs(estimate.two_sided.bar.crooks_z) < 5
    assert estimate.evaluations["main"] == estimate.sweeps["main"] + estimate.num_chains
    assert estimate.to_dict()["evaluations"] == estimate.evaluations
    assert "evaluations" in repr(estimate)
    assert estimate.run.states.dtype == np.float32


@pytest.mark.slow
def test_draws_of_the_model_start_the_reverse_run(seed):
    draws = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, 200)
    estimate = annealz.estimate_log_z(
        MODEL, base="laplace", two_sided=True, draws=draws, seed=seed, **OPTIONS
    )
    assert estimate.plan.draws == "given"
    assert_within_mc_error(estimate.log_z, EXACT, estimate.std_err)


@pytest.mark.slow
def test_observers_see_the_models_own_variables(seed):
    estimate = annealz.estimate_log_z(
        MODEL, base="laplace", observe={"x": lambda x: x}, seed=seed, **OPTIONS
    )
    mean = estimate.trace.means["x"][-1]
    assert_within_mc_error(mean, MEAN, np.sqrt(1.5 * np.diag(COVARIANCE) / estimate.ess))


def test_a_run_with_a_tuned_kernel_goes_on_to_the_same_bits(tmp_path, seed):
    options = {**OPTIONS, "base": "standard", "schedule": "linear", "seed": seed}
    options["second_opinion"] = False
    whole = annealz.estimate_log_z(MODEL, **options)

    def stop(progress):
        if progress.step >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        annealz.estimate_log_z(
            MODEL, out=tmp_path / "r", chunk_steps=50, on_progress=stop, **options
        )
    with pytest.raises(ValueError, match="a model that cannot be stored: give it again by model"):
        annealz.resume(tmp_path / "r")
    other = annealz.LogDensity(lambda x: 1.1 * log_density(x), 2, "bell")
    with pytest.raises(ValueError, match="another model"):
        annealz.resume(tmp_path / "r", model=other)
    resumed = annealz.resume(tmp_path / "r", model=MODEL)
    assert np.array_equal(resumed.log_weights, whole.log_weights)


@pytest.mark.parametrize(
    "kernel", [annealz.HMC(4, 0.3), annealz.MALA(0.2), annealz.HAIS(2, 0.7, 0.1), annealz.HAIS()]
)
def test_kernels_are_stored_and_read_again(kernel):
    arrays, record = store(kernel)
    again = restore(arrays, record)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), kernel, again)
    assert all(jax.tree.leaves(same))
    assert jax.tree.structure(kernel) == jax.tree.structure(again)


def test_a_digest_tells_functions_apart():
    def make(shift):
        return annealz.LogDensity(lambda x: -((x - shift) ** 2).sum(), 2)

    shift = jnp.array([0.0, 1.0])
    assert make(shift).digest == make(shift + 0).digest
    assert make(shift).digest != make(shift + 1).digest
    assert make(0.5).digest != make(0.25).digest


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: annealz.LogDensity(3, 2), "fn must be a function"),
        (lambda: annealz.LogDensity(log_density, 0), "dim must be a whole number"),
        (lambda: annealz.LogDensity(log_density, 2, starts=[[1.0]]), "starts must have shape"),
        (lambda: annealz.LogDensity(log_density, 3).check(), r"position of shape \(3,\)"),
        (lambda: annealz.LogDensity(lambda x: x, 2).check(), "one real number"),
        (lambda: MODEL.choose_base("nope"), "auto, laplace, mixture, pilot, prior, standard, wide"),
        (lambda: MODEL.path(annealz.GaussianBase.standard(3)), "must have its dimension 2, got 3"),
        (lambda: annealz.HMC(0), "num_leapfrog"),
        (lambda: annealz.MALA(-1.0), "step_size must be a positive number"),
        (lambda: annealz.HAIS(1, 0.0), "persistence must be positive"),
    ],
)
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_density_that_is_nan_everywhere_is_refused():
    model = annealz.LogDensity(lambda x: jnp.nan * x.sum(), 2)
    with pytest.raises(
        ValueError, match="fn of density-2 must return a real number or -inf, got NaN"
    ):
        annealz.estimate_log_z(model, **OPTIONS)


def test_a_momentum_beside_each_position(seed):
    path = PhasePath(MODEL.path(annealz.GaussianBase.standard(2)), has_momentum=True)
    bits = Stream(seed, "phase").at(0, jnp.arange(4000))
    x = np.asarray(jax.jit(lambda bits: path.sample(bits))(bits))
    assert x.shape == (4000, 2 + 2 + 1)  # positions, momenta, values
    correlation = np.corrcoef(x[:, :4].T)[np.triu_indices(4, 1)]
    assert_within_mc_error(correlation, 0, 1 / np.sqrt(4000))
    again = jax.jit(lambda bits, x: path.position(path.state(bits, x)))(bits, x[:, :2])
    np.testing.assert_allclose(again, x[:, :2], atol=1e-6)


def beta_binomial(count):
    share = numpyro.sample("share", dist.Beta(2.0, 3.0))
    numpyro.sample("count", dist.Binomial(20, share), obs=count)


def test_the_evidence_of_a_numpyro_model(seed):
    model = annealz.from_numpyro(beta_binomial, jnp.array(7))
    exact = gammaln(21) - gammaln(8) - gammaln(14) + betaln(9, 16) - betaln(2, 3)
    assert (model.dim, model.name) == (1, "beta_binomial")
    walk = annealz.RandomWalk()
    estimate = annealz.estimate_log_z(
        model, base="laplace", kernel=walk, schedule="linear", seed=seed, **OPTIONS
    )
    assert_within_mc_error(estimate.log_z, exact, estimate.std_err)


def test_numpyro_models_without_real_latents_are_refused():
    def discrete():
        numpyro.sample("coin", dist.Bernoulli(0.5))

    def none(y):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)

    with pytest.raises(ValueError, match="no latent variables that are real"):
        annealz.from_numpyro(discrete)
    with pytest.raises(ValueError, match="no latent variables"):
        annealz.from_numpyro(none, 1.0)


def test_the_digest_knows_data_inside_jitted_functions():
    def density(data):
        inner = jax.jit(lambda x: -((x - jnp.asarray(data)) ** 2).sum() / 2)
        return annealz.LogDensity(jax.jit(lambda x: inner(x) + 0.0), 2)

    assert density([0.0, 1.0]).digest == density([0.0, 1.0]).digest
    assert density([0.0, 1.0]).digest != density([0.0, 2.0]).digest


class DearPath(PhasePath):
    """Its recorded steps are a copy of their own in the program, as those of RBMs are."""

    @property
    def is_cheap_to_record(self) -> bool:
        return False


def test_a_step_that_is_there_once_records_the_same():
    kernel = annealz.HAIS(step_size=0.3)
    positions = MODEL.path(annealz.GaussianBase.standard(2))
    runs = [
        annealz.anneal(
            form(positions, has_momentum=True, has_gradient=True), kernel, annealz.linear(20),
            num_chains=30, seed=2, record_every=3,
        )
        for form in (PhasePath, DearPath)
    ]  # fmt: skip
    once, twice = runs
    np.testing.assert_allclose(once.log_weights, twice.log_weights, rtol=1e-5)
    for name in ("log_z", "ess"):
        found, expected = getattr(once.trace, name), getattr(twice.trace, name)
        assert len(found) == 7
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    for values in ("means", "variances"):
        found, expected = (getattr(run.trace, values)["slope"] for run in runs)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
