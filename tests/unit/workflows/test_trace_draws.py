"""Traces as draws: every container, autocorrelation, halves, and what they do to log Z."""

import dataclasses

import arviz_base
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy import stats

import annealz
from annealz.diagnostics.two_sided import judge_two_sided
from annealz.pilots.draws import base_of_rows, rows_of_trace, spread_over
from annealz.testing import assert_within_mc_error, random_rbm
from support.conjugate import OPTIONS, PARAMETERS, conjugate, log_evidence, posterior_moments

CHAINS, DRAWS = 4, 400
MODEL = conjugate()


def trace(seed: int, memory: float = 0.8, draws: int = DRAWS) -> dict[str, np.ndarray]:
    """Chains of the posterior that forget by this factor with every draw."""
    generator, (mean, spread) = np.random.default_rng(seed), posterior_moments()
    x, rows = generator.normal(size=(CHAINS, 2)), []
    for _ in range(draws):
        x = memory * x + np.sqrt(1 - memory**2) * generator.normal(size=x.shape)
        rows.append(mean + spread * x)
    both = np.stack(rows, 1)  # (chains, draws, 2)
    return {"shift": both[..., 0], "scale": np.exp(both[..., 1])}


def test_every_container_gives_the_same_rows():
    samples = trace(1)
    tree = arviz_base.from_dict({"posterior": samples | {"beside": np.zeros((CHAINS, DRAWS))}})
    swapped = tree["posterior"].to_dataset().transpose("draw", "chain")
    expected = rows_of_trace(MODEL, samples)
    for container in (tree, {"posterior": swapped}, swapped):
        found = rows_of_trace(MODEL, container)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    joined = {name: values[0] for name, values in samples.items()}  # one chain, no axis of chains
    assert rows_of_trace(MODEL, joined).fit.shape == (DRAWS // 2, 2)


@pytest.mark.filterwarnings("ignore")  # of PyMC, PyTensor and NumPyro
def test_traces_of_numpyro_and_pymc_are_taken_as_they_are():
    """A coin: the same draws by either, with a variable that follows from the parameter."""
    import pymc
    from pymc.backends.base import MultiTrace
    from pymc.backends.ndarray import NDArray

    def coin(heads):
        bias = numpyro.sample("bias", dist.Beta(2.0, 3.0))
        numpyro.deterministic("odds", bias / (1 - bias))
        numpyro.sample("heads", dist.Binomial(20, bias), obs=heads)

    sampler = MCMC(
        NUTS(coin),
        num_warmup=100,
        num_samples=200,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(jax.random.key(0), 7)
    drawn = np.asarray(sampler.get_samples(group_by_chain=True)["bias"])
    rows = rows_of_trace(annealz.from_numpyro(coin, 7), sampler)
    expected = np.log(drawn / (1 - drawn))[:, :100].reshape(-1, 1)
    np.testing.assert_allclose(rows.fit, expected, atol=1e-5)

    with pymc.Model() as same:
        bias = pymc.Beta("bias", 2.0, 3.0)
        pymc.Deterministic("odds", bias / (1 - bias))
        pymc.Binomial("heads", 20, bias, observed=7)
    chains = []
    for number, values in enumerate(drawn):
        chain = NDArray(model=same)
        chain.setup(len(values), number)
        for value in values:
            point = np.array(np.log(value / (1 - value)), np.float64)
            chain.record({"bias_logodds__": point}, in_warmup=False)
        chain.close()
        chains.append(chain)
    model = annealz.from_pymc(same)
    for trace in (MultiTrace(chains), {"bias": drawn}):  # with and without what follows from it
        found = rows_of_trace(model, trace)
        np.testing.assert_allclose(found.fit, rows.fit, atol=1e-5)
        assert len(found.reverse) == len(rows.reverse)


def test_autocorrelation_is_known():
    """Of an autoregression the effective number is n (1 - r) / (1 + r)."""
    free, slow = (rows_of_trace(MODEL, trace(2, memory, 2000)) for memory in (0.0, 0.8))
    total = 2000 * CHAINS
    assert 0.8 * total < free.effective <= total
    assert 0.6 < slow.effective / (total / 9) < 1.5
    for rows in (free, slow):
        assert len(rows.reverse) == pytest.approx(rows.effective / 2, rel=0.02)
        assert len(rows.fit) == total / 2
    kept = slow.reverse.reshape(CHAINS, -1, 2)[..., 0]
    near = np.mean([np.corrcoef(row[:-1], row[1:])[0, 1] for row in kept])
    assert abs(near) < 0.35  # where neighbours in the trace have 0.8


def test_the_halves_are_apart_and_the_base_has_their_moments():
    samples = trace(3)
    rows = rows_of_trace(MODEL, samples)
    early = PARAMETERS.unconstrain({k: v[:, : DRAWS // 2].ravel() for k, v in samples.items()})
    np.testing.assert_array_equal(rows.fit, early)
    assert not {*map(tuple, rows.fit)} & {*map(tuple, rows.reverse)}
    base = base_of_rows(rows.fit)
    np.testing.assert_allclose(base.mean, rows.fit.mean(0), rtol=1e-5)
    np.testing.assert_allclose(base.scale @ base.scale.T, 1.5 * np.cov(rows.fit.T), rtol=1e-4)
    everything = rows_of_trace(MODEL, samples, is_fitted=False)
    assert everything.fit.size == 0
    assert len(everything.reverse) == pytest.approx(2 * len(rows.reverse), rel=0.1)


def test_chains_start_from_rows_in_turn():
    rows = np.arange(10.0).reshape(5, 2)
    states, count = spread_over(rows, 12)
    assert count == 5
    np.testing.assert_array_equal(states, rows[np.arange(12) % 5])
    states, count = spread_over(np.arange(40.0).reshape(20, 2), 5)
    assert count == len({*map(tuple, states)}) == 5


def test_log_z_from_traces_is_right_and_its_error_covers(tmp_path):
    """Two hundred reverse chains from some sixty draws."""
    options = {**OPTIONS, "base": "auto", "two_sided": True}
    found = [
        annealz.estimate_log_z(MODEL, draws=trace(seed, 0.8, 300), seed=seed, **options)
        for seed in range(10)
    ]
    z = np.array([(one.log_z - log_evidence()) / one.std_err for one in found])
    assert_within_mc_error(z.mean(), 0, 1 / np.sqrt(z.size))
    assert (z**2).sum() < stats.chi2.isf(1e-6, z.size)
    one = found[0]
    count = one.plan.independent_draws
    assert one.base == "draws"
    assert 20 <= count < 150
    assert np.array_equal(one.reverse.ancestors, np.arange(200) % count)
    assert f"{count} independent" in dict(one.rows())["bounds"]
    assert one.to_dict()["two_sided"]["independent_draws"] == count
    kept = annealz.estimate_log_z(MODEL, draws=trace(0, 0.8, 300), out=tmp_path / "run", **options)
    read = annealz.resume(tmp_path / "run")
    assert (read.log_z, read.std_err) == (kept.log_z, kept.std_err) == (one.log_z, one.std_err)


def test_a_base_that_is_given_is_kept():
    mean, spread = posterior_moments()
    base = annealz.GaussianBase.from_moments(mean, np.diag(2 * spread**2), name="own")
    options = {**OPTIONS, "base": base}
    estimate = annealz.estimate_log_z(MODEL, draws=trace(4), two_sided=True, **options)
    assert estimate.base == "own"
    assert_within_mc_error(estimate.log_z, log_evidence(), estimate.std_err)


def test_copies_widen_the_error_and_lift_no_verdict():
    generator = np.random.default_rng(6)
    forward, starts = generator.normal(-0.5, 1, 200), generator.normal(0.5, 1, 20)
    ancestors = np.arange(200) % 20
    reverse = starts[ancestors] + generator.normal(0, 0.05, 200)
    given = {"are_exact": False, "ancestors": ancestors, "are_forward": False}
    related = judge_two_sided(forward, reverse, **given)
    taken_as_new = judge_two_sided(forward, reverse, are_exact=True)
    assert related.std_err > 1.5 * taken_as_new.std_err
    assert related.kinship is None
    poor = np.where(np.arange(200) < 2, 9.0, forward)  # weights that cannot be trusted
    forgotten = generator.normal(0.5, 1, 200)
    kept = judge_two_sided(poor, forgotten, **given)
    assert kept.status is annealz.Status.UNRELIABLE


@pytest.mark.parametrize(
    ("draws", "words"),
    [
        ({"shift": trace(1)["shift"]}, "scale is missing: got shift"),
        ({**trace(1), "scale": -trace(1)["scale"]}, "1,600 of 1,600 do not"),
        (trace(1, 0.999), "independent draws, got 1,600 that are worth"),
        (trace(1, 0.0, 6), "at least 8 draws per chain, got 6"),
        ({**trace(1), "scale": trace(1)["scale"][:, :50]}, "one number of chains"),
        ({name: value[..., None] for name, value in trace(1).items()}, r"\(chains, draws\), got"),
        ({name: value.astype(str) for name, value in trace(1).items()}, "real numbers"),
    ],
)
def test_bad_traces_get_one_sentence(draws, words):
    with pytest.raises(ValueError, match=words) as error:
        annealz.estimate_log_z(MODEL, two_sided=True, draws=draws, **OPTIONS)
    assert str(error.value).startswith("draws")


def test_models_without_a_way_back_are_refused():
    with pytest.raises(ValueError, match="has no named parameters"):
        annealz.estimate_log_z(random_rbm(4, 6), two_sided=True, draws={"x": np.zeros((4, 100))})
    one_way = dataclasses.replace(PARAMETERS, unconstrain=None)
    model = annealz.LogDensity(MODEL.fn, 2, parameters=one_way)
    with pytest.raises(ValueError, match="no inverse"):
        annealz.estimate_log_z(model, two_sided=True, draws=trace(1), **OPTIONS)
    with pytest.raises(ValueError, match="two_sided"):
        annealz.estimate_log_z(MODEL, draws=trace(1), **OPTIONS)
    plain = annealz.LogDensity(MODEL.fn, 2)
    rows = PARAMETERS.unconstrain({k: v.ravel() for k, v in trace(1).items()})
    found = rows_of_trace(plain, {"x": rows.reshape(CHAINS, DRAWS, 2)})
    np.testing.assert_array_equal(found.fit, rows_of_trace(MODEL, trace(1)).fit)
