"""Functions of discrete states: enumerated, annealed with both kernels, and refused in one sentence."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.models.host_function import HostFunction
from annealz.testing import assert_within_mc_error, check_path
from support.command import refused, run
from support.counted import Counted
from support.discrete import Network

SMALL = Network(5, 2, scale=1.5)
THREE = Network(4, 3, scale=1.5, seed=2)
RUN = {"base": "uniform", "schedule": "linear", "num_steps": 50, "num_chains": 100}
PLAIN = {**RUN, "second_opinion": False}


def exact(network: Network) -> float:
    return float(logsumexp(network.values(network.states)))


@pytest.mark.parametrize("network", [SMALL, THREE], ids=["binary", "three states"])
def test_enumeration_is_the_brute_sum(network: Network):
    model = network.model()
    assert model.exact_log_z_if_cheap() == pytest.approx(exact(network), abs=1e-5)
    assert annealz.exact_log_z(model) == model.exact_log_z()
    if network.num_states == 2:
        assert network.binary_model().exact_log_z() == pytest.approx(exact(network), abs=1e-5)
    draws = model.exact_draws(20_000, 1)
    law = np.exp(network.values(network.states) - exact(network))
    means, spread = law @ network.states, np.sqrt(law @ network.states**2)
    np.testing.assert_allclose(draws.mean(0), means, atol=5 * spread.max() / np.sqrt(20_000))


def test_large_ones_are_not_enumerated():
    model = annealz.DiscreteDensity(lambda x: 0.1 * x.sum(), 40)
    assert model.exact_log_z_if_cheap() is None
    assert not model.has_exact_draws
    with pytest.raises(ValueError, match=r"at most 67,108,864 states, and 40 units of 2 have 1.1e"):
        model.exact_log_z()


@pytest.mark.parametrize("kernel", ["gibbs", "gradient"])
@pytest.mark.parametrize("network", [SMALL, THREE], ids=["binary", "three states"])
def test_both_kernels_find_log_z(network: Network, kernel: str, seed: int):
    one = annealz.estimate_log_z(network.model(), kernel=kernel, seed=seed, **PLAIN)
    assert_within_mc_error(one.log_z, exact(network), one.std_err)
    each = network.num_units * (network.num_states - 1) if kernel == "gibbs" else 16
    looked_at = 64 + network.num_states**network.num_units  # to check it, and to enumerate
    assert one.evaluations == {"pilot": looked_at, "main": 100 + 100 * 50 * each}
    assert one.plan.request.kernel == kernel


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["gibbs", "gradient"])
@pytest.mark.parametrize("network", [Network(16, 2, 8), Network(10, 3, 8)])
def test_both_kernels_are_calibrated(network: Network, kernel: str, seed: int):
    """Twelve seeds with all pilots and second opinions: mean and spread of z."""
    model, z = network.model(), []
    for number in range(12):
        one = annealz.estimate_log_z(model, kernel=kernel, num_chains=100, seed=seed + number)
        assert one.status.value == "ok"
        z.append((one.log_z - exact(network)) / one.std_err)
    assert abs(np.mean(z)) < 4 / np.sqrt(12)
    assert (np.square(z).sum() < 37) & (np.abs(z).max() < 4)  # chi-square of 12, at 2e-4


def test_a_base_is_searched_and_a_second_one_asked(seed: int):
    count: list[Counted] = []
    model = SMALL.model(lambda fn: count.append(Counted(fn)) or count[0])
    one = annealz.estimate_log_z(model, num_steps=50, num_chains=100, seed=seed)
    assert one.status.value == "ok"
    assert one.second_opinion is not None
    assert one.second_opinion.confirms
    assert {one.base, one.second_opinion.base} & {"fitted", "fitted-product"}
    assert one.evaluations is not None
    assert sum(one.evaluations.values()) == count[0].since()  # the states of the probe are carried
    assert_within_mc_error(one.log_z, exact(SMALL), one.std_err)


def test_data_give_the_base_rate():
    rows = np.random.default_rng(0).integers(0, 3, (30, 4))
    base = THREE.model().choose_base("auto", rows)
    np.testing.assert_allclose(np.exp(base.logits)[:, 1], ((rows == 1).sum(0) + 1) / 33, rtol=1e-5)
    assert SMALL.model().choose_base("base-rate", rows[:, [0, 1, 2, 3, 0]] % 2).name == "base-rate"
    with pytest.raises(ValueError, match=r"states of shape \(rows, 4\), got \(30, 3\)"):
        THREE.model().choose_base("auto", rows[:, :3])
    with pytest.raises(ValueError, match="the base has 2 states and the model 3"):
        THREE.model().choose_base(annealz.CategoricalBase.uniform(4, 2))
    with pytest.raises(ValueError, match="one of auto, base-rate, uniform, .* got 'visible-bias'"):
        THREE.model().choose_base("visible-bias")


def test_kernels_are_chosen_by_size_and_gradient():
    def kind(model) -> tuple[str, int]:
        kernel = model.kernel()
        return type(kernel).__name__, kernel.evaluations

    def looked_up(x):
        return jnp.ones(2)[x].sum()  # no gradient: real numbers are no indices

    assert kind(annealz.DiscreteDensity(lambda x: x.sum(), 64)) == ("UnitGibbs", 64)
    assert kind(annealz.DiscreteDensity(lambda x: x.sum(), 65)) == ("GradientGibbs", 16)
    assert kind(annealz.DiscreteDensity(looked_up, 65)) == ("UnitGibbs", 64)
    many = annealz.DiscreteDensity(lambda x: x.sum(), 65, 5)
    assert kind(many) == ("UnitGibbs", 64)
    with pytest.raises(ValueError, match="has no gradient in its states, .* with one_hot=True"):
        annealz.estimate_log_z(many, kernel="gradient", **PLAIN)


def test_states_without_weight(seed: int):
    """No two neighbours may both be 1: 13 of 32 states have any weight."""

    def fn(x):
        return jnp.where((x[1:] * x[:-1]).any(), -jnp.inf, 0.3 * x.sum())

    model = annealz.DiscreteDensity(fn, 5)
    states = SMALL.states
    allowed = ~(states[:, 1:] * states[:, :-1]).any(1)
    truth = logsumexp(0.3 * states[allowed].sum(1))
    assert model.exact_log_z() == pytest.approx(truth, abs=1e-6)
    for kernel in ("gibbs", "gradient"):
        one = annealz.estimate_log_z(model, kernel=kernel, seed=seed, **PLAIN)
        assert_within_mc_error(one.log_z, truth, one.std_err)


def test_functions_of_numpy(seed: int):
    def fn(x):
        assert x.dtype == np.int64
        return float(np.tanh(np.float64(SMALL.weights[0])[..., 1] @ x).sum())

    model = annealz.DiscreteDensity(fn, 5, name="host")
    assert isinstance(model.fn, HostFunction)
    truth = logsumexp([fn(x) for x in SMALL.states])
    assert model.exact_log_z() == pytest.approx(truth, abs=1e-6)
    one = annealz.estimate_log_z(model, seed=seed, **PLAIN)
    assert_within_mc_error(one.log_z, float(truth), one.std_err)
    with pytest.raises(
        ValueError, match=r"has no gradient in its states, .*: take kernel='gibbs'\."
    ):
        annealz.estimate_log_z(model, kernel="gradient", **PLAIN)


def test_values_in_float64():
    model = annealz.DiscreteDensity(lambda x: 1e-3 * x.sum() + 0.1, 3, dtype="float64")
    assert model.exact_log_z() == pytest.approx(0.1 + 3 * np.logaddexp(0, 1e-3), abs=1e-7)
    assert not jax.config.jax_enable_x64


def test_gradients_are_those_of_the_function():
    for model, network in ((THREE.model(), THREE), (SMALL.binary_model(), SMALL)):
        values, gains = jax.jit(model.value_and_gains)(np.float32(network.states))
        slopes = network.gradients(network.states)
        np.testing.assert_allclose(values, network.values(network.states), atol=1e-5)
        np.testing.assert_allclose(gains, slopes[..., 1:] - slopes[..., :1], atol=1e-5)


def test_the_path_keeps_its_promises():
    for network in (SMALL, THREE):
        model = network.model()
        path = model.path(model.choose_base("uniform"))
        for one in (path, path.carrying(), path.carrying(gains=True)):
            check_path(one)


def _raise(x):
    raise RuntimeError("no such thing")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: annealz.DiscreteDensity(3, 4), "fn must be a function of one state, got int"),
        (lambda: annealz.DiscreteDensity(jnp.sum, 0), "num_units must be .* at least 1, got 0"),
        (lambda: annealz.DiscreteDensity(jnp.sum, 2, 1), "num_states must be .* least 2, got 1"),
        (lambda: annealz.DiscreteDensity(jnp.sum, 2.0), "num_units must be a whole number"),
        (
            lambda: annealz.DiscreteDensity(lambda x: 1.0 * x, 4),
            r"fn of discrete-4x2 must return one real number, .* got shape \(4,\)",
        ),
        (
            lambda: annealz.DiscreteDensity(_raise, 4, 3),
            r"must take one state of shape \(4,\), whole numbers from 0 to 2, and it failed on one: "
            "RuntimeError: no such thing",
        ),
        (
            lambda: annealz.estimate_log_z(
                annealz.DiscreteDensity(lambda x: jnp.log(x.sum() - 2), 4)
            ),
            r"fn of discrete-4x2 must return a real number or -inf, got NaN at x = \[0, 0, 0, 0\]",
        ),
        (
            lambda: annealz.estimate_log_z(annealz.DiscreteDensity(lambda x: 1 / x.sum(), 4)),
            r"must return a real number or -inf, got \+inf at x = \[0, 0, 0, 0\]",
        ),
        (
            lambda: annealz.estimate_log_z(
                annealz.DiscreteDensity(lambda x: float(np.log(x.sum() - 2.0)), 4)
            ),
            "fn of discrete-4x2 must return a real number or -inf, got NaN at",
        ),
        (
            lambda: annealz.estimate_log_z(annealz.DiscreteDensity(jnp.sum, 4), method="nested"),
            "nested sampling takes a density over real variables",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_bad_functions_are_one_sentence(make, words: str):
    with pytest.raises(ValueError, match=words):
        make()


def test_digests_are_of_the_function():
    one, same, other = (SMALL.model(), SMALL.model(), Network(5, 2, scale=1.6).model())
    assert one.digest == same.digest != other.digest


MODULE = """
import annealz
import jax.numpy as jnp

model = annealz.DiscreteDensity(lambda x: 0.3 * jnp.sum(x), 5, name="free")
bad = annealz.DiscreteDensity(lambda x: jnp.log(x.sum() - 2), 5)
"""


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    words = "--base uniform --schedule linear --steps 50 --chains 100 --no-second-opinion --quiet"
    common = [*words.split(), "--json", "--out", "run"]
    status, out, _ = run(capsys, "estimate", "mine.py:model", "--kernel", "gradient", *common)
    assert status == 0
    result = json.loads(out)
    assert result["model"] == "free"
    assert abs(result["log_z"] - 5 * np.logaddexp(0, 0.3)) < 5 * result["std_err"]
    assert result["evaluations"]["main"] == 100 + 100 * 50 * 16
    again = run(capsys, "resume", "run", "--model", "mine.py:model", "--json", "--quiet")[1]
    assert json.loads(again)["log_z"] == result["log_z"]
    bad = refused(capsys, "estimate", "mine.py:bad", "--quiet")
    assert "must return a real number or -inf, got NaN" in bad
    wrong = refused(capsys, "estimate", "mine.py:model", "--kernel", "clusters", "--quiet")
    assert "--kernel must be one of auto, gibbs, gradient, which free knows" in wrong
