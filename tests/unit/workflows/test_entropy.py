"""The entropy of models: against enumeration for every family, and what an estimate says of it."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import annealz
from annealz.core.arrays import on_device
from annealz.core.units import BernoulliUnits, GaussianUnits, SoftmaxUnits
from annealz.diagnostics.diagnostics import judge
from annealz.methods.annealing.estimate import Estimate
from annealz.models.density import end_of_path, log_densities
from annealz.results.entropy import _log_densities, _of_all
from annealz.testing import assert_within_mc_error, log_joint, random_rbm
from support.conjugate import OPTIONS, conjugate
from support.families import MODELS, annealed_columns, joint

RBM = random_rbm(4, 6)
SMALL = {"schedule": "linear", "num_steps": 100, "num_chains": 100, "base": "uniform"}
SMALL |= {"second_opinion": False}
WHOLE = ("boltzmann", "open lattice", "odd lattice", "lattice", "potts", "potts lattice")


def entropy_of(energies: np.ndarray) -> float:
    log_z = logsumexp(energies)
    return float(log_z - np.exp(energies - log_z) @ energies)


EXACT = entropy_of(logsumexp(log_joint(RBM), axis=0))


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return annealz.estimate_log_z(RBM, **SMALL)


# --- the values whose mean is taken, without noise ---------------------------------------------


@pytest.mark.parametrize(
    ("name", "marginal"),
    [(name, "visible") for name in WHOLE] + [("dbm", "hidden"), ("deeper dbm", "visible")],
)
def test_all_units_count_whatever_is_summed_out(name: str, marginal: str):
    """Over all states of the path: log Z - sum_s p(s) (log p*(s) - H(l | s)) is the joint entropy."""
    model, (states, energies) = MODELS[name], joint(name)
    kept = np.unique(states[:, annealed_columns(name, marginal)], axis=0)
    path = model.path(model.flat_base(), marginal)
    x = on_device(kept)
    logs, rest = (np.float64(f(path, x)) for f in (end_of_path, _of_all))
    hidden = logs - rest
    law = np.exp(logs - logsumexp(logs))
    assert logsumexp(logs) - law @ (logs - hidden) == pytest.approx(entropy_of(energies), abs=1e-4)
    if kept.shape[1] < states.shape[1]:  # what is summed out has an entropy of its own
        assert law @ hidden > 0.1


@pytest.mark.parametrize("name", [*WHOLE, "softmax"])
def test_log_densities_of_every_family(name: str):
    """What likelihood and entropy take, against brute force."""
    model, (states, energies) = MODELS[name], joint(name)
    if name == "softmax":
        visible, index = np.unique(states[:, :4], axis=0, return_inverse=True)
        sums = np.bincount(index.ravel(), np.exp(energies))
        states, energies = visible, np.log(sums)
    np.testing.assert_allclose(log_densities(model, states), energies, atol=1e-5)


def test_units_know_their_entropy():
    fields = np.array([[-30.0, -2.0, 0.0, 0.5, 9.0, 40.0]])
    p = 1 / (1 + np.exp(-fields))
    q = 1 / (1 + np.exp(fields))
    truth = -(p * np.log(p) + q * np.log(q)).sum()
    entropy = jax.jit(BernoulliUnits().entropy)
    assert float(entropy(on_device(fields))[0]) == pytest.approx(truth, rel=1e-6)
    law = np.exp(fields.reshape(2, 3)) / np.exp(fields.reshape(2, 3)).sum(1, keepdims=True)
    truth, entropy = -(law * np.log(law)).sum(), jax.jit(SoftmaxUnits(3).entropy)
    assert float(entropy(on_device(fields))[0]) == pytest.approx(truth, abs=1e-5)
    with pytest.raises(ValueError, match="not known in closed form"):
        GaussianUnits(jnp.ones(6)).entropy(on_device(fields))


# --- of runs -----------------------------------------------------------------------------------


def test_of_an_rbm(estimate: Estimate):
    entropy = estimate.entropy()
    assert_within_mc_error(entropy.value, EXACT, entropy.std_err)
    assert entropy.value == pytest.approx(estimate.log_z - entropy.mean_log_density, abs=1e-9)
    assert entropy.interval()[0] < EXACT < entropy.interval()[1]
    assert (entropy.variables, entropy.is_differential, entropy.status) == (
        "visible units",
        False,
        "ok",
    )
    assert entropy.bits == pytest.approx(entropy.value / np.log(2))


def test_with_the_hidden_layer_annealed_it_is_that_of_the_visible_units():
    estimate = annealz.estimate_log_z(RBM, **SMALL, marginal="hidden")
    entropy = estimate.entropy()
    assert_within_mc_error(entropy.value, EXACT, entropy.std_err)
    of_hidden = entropy_of(logsumexp(log_joint(RBM), axis=1))
    assert abs(EXACT - of_hidden) > 5 * entropy.std_err  # what it must not be
    assert estimate.entropy().value == entropy.value  # the same draws every time


def test_of_a_lattice_by_kaufmans_formula():
    """S = log Z - K d log Z / dK; without the colour that is summed out it would be half of it."""
    step, at = 1e-4, 0.3
    low, exact, high = (
        annealz.square_ising_log_z(8, coupling) for coupling in (at - step, at, at + step)
    )
    truth = exact - at * (high - low) / (2 * step)
    entropy = annealz.estimate_log_z(annealz.SquareIsing(8, at), **SMALL).entropy()
    assert_within_mc_error(entropy.value, truth, entropy.std_err)
    assert entropy.variables == "all units"


def test_of_a_density_it_is_differential():
    model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2)
    given = {"schedule": "linear", "num_steps": 50, "num_chains": 50, "second_opinion": False}
    kernel = annealz.HAIS(step_size=0.5)  # whose momenta have no part in it
    found = annealz.estimate_log_z(model, base="standard", kernel=kernel, **given)
    entropy = found.entropy()
    assert_within_mc_error(entropy.value, np.log(2 * np.pi * np.e), entropy.std_err)
    assert (entropy.variables, entropy.is_differential) == ("all variables", True)
    assert found.problem is not None
    values = _log_densities(found.problem, found.run, 0)
    place = np.asarray(found.problem.states.position(found.run.states))
    np.testing.assert_allclose(values, -0.5 * ((place - 1) ** 2).sum(1), atol=1e-5)


def test_of_resampled_islands(seed: int):
    given = {**SMALL, "num_steps": 8, "num_chains": 800}
    entropy = annealz.estimate_log_z(RBM, **given, resample=0.9, seed=seed).entropy()
    assert entropy.judgement.island_size is not None
    assert_within_mc_error(entropy.value, EXACT, entropy.std_err)


def test_two_sides_lift_nothing_of_the_forward_weights(estimate: Estimate):
    both = annealz.estimate_log_z(RBM, **SMALL, two_sided=True)
    assert both.entropy().value == estimate.entropy().value  # forward chains alone
    weights = estimate.log_weights.copy()
    weights[0] += 50
    damaged = dataclasses.replace(both, judgement=judge(weights))
    assert damaged.ok
    assert not damaged.entropy().ok


def test_not_ok_where_log_z_is_not(estimate: Estimate):
    off = dataclasses.replace(estimate.plan, exact_log_z=estimate.log_z + 1)
    entropy = dataclasses.replace(estimate, plan=off).entropy()
    assert (entropy.ok, entropy.status) == (False, "unreliable")
    assert any("the exact value is" in message for message in entropy.messages)


def test_a_base_that_was_fitted_may_miss_something(estimate: Estimate):
    fitted = dataclasses.replace(estimate.plan, base="fitted")
    entropy, wider = estimate.entropy(), dataclasses.replace(estimate, plan=fitted).entropy()
    unseen = (1 + np.log(100)) / 100
    assert wider.std_err == pytest.approx(np.hypot(entropy.std_err, unseen))
    assert wider.interval()[0] == entropy.interval()[0]
    assert wider.interval()[1] > entropy.interval()[1]


def test_of_a_run_that_was_read(tmp_path: Path, estimate: Estimate):
    """With a model that no folder holds it needs that model."""
    annealz.estimate_log_z(RBM, **SMALL, out=tmp_path / "run")
    assert annealz.resume(tmp_path / "run").entropy().value == estimate.entropy().value
    model = conjugate()
    first = annealz.estimate_log_z(model, **OPTIONS, out=tmp_path / "density")
    with pytest.raises(ValueError, match=r"resume\(out, model=model\)"):
        annealz.resume(tmp_path / "density").entropy()
    again = annealz.resume(tmp_path / "density", model=model).entropy()
    assert again.value == first.entropy().value


def test_it_shows_itself(estimate: Estimate):
    entropy = estimate.entropy()
    labels = [label for label, _ in entropy.rows()]
    assert labels[:6] == ["model", "entropy", "95 % interval", "in bits", "of", "mean of log p*"]
    assert labels[-1] == "status"
    assert f"{entropy.value:.4f} ± {entropy.std_err:.4f} nats" in repr(entropy)
    assert "nats" in entropy._repr_html_()
    assert entropy.to_dict()["estimate"] == estimate.to_dict()
