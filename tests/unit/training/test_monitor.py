"""What is looked at while a model trains, against enumeration."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp

from annealz.models.rbm import RBM
from annealz.testing import assert_within_mc_error, binary_states, log_joint, random_rbm
from annealz.training.train import Monitor, pseudo_log_likelihood, reconstruction_error

NUM_HIDDEN, NUM_VISIBLE = 3, 5
STATES = binary_states(NUM_VISIBLE)
pseudo = eqx.filter_jit(pseudo_log_likelihood)


@pytest.fixture
def model() -> RBM:
    return random_rbm(NUM_HIDDEN, NUM_VISIBLE, scale=2.0, seed=4)


def exact_terms(model: RBM) -> np.ndarray:
    """log p(v_j | v_-j) of every state and unit, by summing the joint: (states, units)."""
    log_p = logsumexp(log_joint(model), 0)
    index = {tuple(state): i for i, state in enumerate(STATES)}
    terms = np.empty(STATES.shape)
    for i, state in enumerate(STATES):
        for j in range(NUM_VISIBLE):
            other = state.copy()
            other[j] = 1 - other[j]
            terms[i, j] = log_p[i] - np.logaddexp(log_p[i], log_p[index[tuple(other)]])
    return terms


def test_with_every_unit_it_is_the_pseudo_likelihood(model: RBM):
    """An identity, without noise; the mutants are the sign of a unit and one left as it is."""
    units = np.tile(np.arange(NUM_VISIBLE), (len(STATES), 1))
    found = pseudo(model, np.float32(STATES), units)
    exact = exact_terms(model).sum(1).mean()
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    for wrong in (
        RBM(model.weights, model.hidden_bias, -model.visible_bias),
        RBM(-model.weights, model.hidden_bias, model.visible_bias),
        RBM(model.weights, -model.hidden_bias, model.visible_bias),
    ):
        assert abs(pseudo(wrong, np.float32(STATES), units) - exact) > 0.1


def test_random_units_estimate_it_without_bias(model: RBM, seed: int):
    """Mutant: the sum over the units drawn, in place of D times their mean."""
    rows, drawn = 20_000, 2
    generator = np.random.default_rng(seed)
    picks = generator.integers(len(STATES), size=rows)
    units = generator.integers(NUM_VISIBLE, size=(rows, drawn))
    found = float(pseudo(model, np.float32(STATES[picks]), units))
    terms = exact_terms(model)
    std_err = NUM_VISIBLE * terms.std() / np.sqrt(rows)  # at most: two units of a row are dependent
    assert_within_mc_error(found, terms.sum(1).mean(), std_err)
    with pytest.raises(AssertionError, match="z = "):
        assert_within_mc_error(found * drawn / NUM_VISIBLE, terms.sum(1).mean(), std_err)


def test_the_reconstruction_is_mean_field(model: RBM):
    weights, hidden_bias, visible_bias = (
        np.float64(a) for a in (model.weights, model.hidden_bias, model.visible_bias)
    )
    back = expit(expit(STATES @ weights.T + hidden_bias) @ weights + visible_bias)
    exact = ((STATES - back) ** 2).mean()
    np.testing.assert_allclose(reconstruction_error(model, jnp.float32(STATES)), exact, rtol=1e-5)


def test_the_sample_is_fixed_binary_and_of_the_data(model: RBM):
    data = np.random.default_rng(0).random((700, NUM_VISIBLE)).astype(np.float32)
    data[:, 0], data[:, 1] = 0, 1
    one, two = Monitor(data, 3), Monitor(data, 3)
    assert one(model) == two(model)
    assert one(model) != Monitor(data, 4)(model)
    rows = np.asarray(one.rows)
    assert rows.shape == (512, NUM_VISIBLE)
    assert set(np.unique(rows)) == {0, 1}
    assert not rows[:, 0].any()
    assert rows[:, 1].all()
    few = Monitor(data[:3], 0)
    assert few.rows.shape == (3, NUM_VISIBLE)
