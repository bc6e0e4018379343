"""The RBM against brute-force enumeration of its joint distribution."""

import jax
import numpy as np
import pytest
from scipy.special import expit, logsumexp

from annealz.models.rbm import RBM
from annealz.testing import binary_states, independent_spins, log_joint, random_rbm

SHAPES = [(3, 5), (5, 3), (1, 4), (4, 1), (1, 1)]


@pytest.fixture(params=SHAPES, ids=str)
def model(request: pytest.FixtureRequest) -> RBM:
    return random_rbm(*request.param, scale=1.5, seed=1)


def test_marginals_sum_the_joint(model: RBM):
    """A transposed weight matrix or exchanged biases would show here on asymmetric shapes."""
    joint = log_joint(model)
    visible, hidden = binary_states(model.num_visible), binary_states(model.num_hidden)
    np.testing.assert_allclose(model.log_density(visible), logsumexp(joint, 0), atol=2e-5)
    np.testing.assert_allclose(model.log_density_hidden(hidden), logsumexp(joint, 1), atol=2e-5)


def test_conditionals_are_those_of_the_joint(model: RBM):
    joint = np.exp(log_joint(model))  # (hidden states, visible states)
    visible, hidden = binary_states(model.num_visible), binary_states(model.num_hidden)
    of_hidden = (hidden.T @ joint / joint.sum(0)).T  # E[h | v]
    of_visible = (joint @ visible) / joint.sum(1, keepdims=True)  # E[v | h]
    np.testing.assert_allclose(expit(model.hidden_logits(visible)), of_hidden, atol=1e-6)
    np.testing.assert_allclose(expit(model.visible_logits(hidden)), of_visible, atol=1e-6)


def test_enumeration_refuses_a_transposed_model():
    """Mutant: a square RBM with its weights transposed has another marginal."""
    model = random_rbm(4, 4, seed=2)
    wrong = RBM(model.weights.T, model.hidden_bias, model.visible_bias)
    marginal = logsumexp(log_joint(model), 0)
    assert np.abs(wrong.log_density(binary_states(4)) - marginal).max() > 0.1


def test_leading_axes_are_free():
    model = random_rbm(3, 5)
    states = binary_states(5).reshape(2, 16, 5)
    assert model.hidden_logits(states).shape == (2, 16, 3)
    assert model.log_density(states).shape == (2, 16)
    assert model.log_density(states[0, 0]).shape == ()


def test_no_weights_are_independent_spins():
    model, log_z = independent_spins([0.3, -1.2, 2.0], [-0.7, 0.1])
    assert logsumexp(log_joint(model)) == pytest.approx(log_z, rel=1e-12)


def test_parameters_are_float32_whatever_came():
    model = RBM(np.ones((2, 3)), [1, 2], np.zeros(3, np.float16), [0.5, 0.5, 0.5])
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype("float32")}
    assert (model.num_hidden, model.num_visible) == (2, 3)


def test_digest_is_the_identity_of_the_distribution():
    model = random_rbm(2, 3)
    arrays = (model.weights, model.hidden_bias, model.visible_bias)
    assert RBM(*arrays, visible_means=np.full(3, 0.5)).digest == model.digest
    assert RBM(model.weights.reshape(3, 2), model.visible_bias, model.hidden_bias).digest != (
        model.digest
    )
    for i in range(3):
        changed = [np.array(a) for a in arrays]
        changed[i].flat[0] = np.nextafter(changed[i].flat[0], np.float32(9))
        assert RBM(*changed).digest != model.digest


# --- refusals --------------------------------------------------------------------------------

GOOD = {"weights": np.ones((2, 3)), "hidden_bias": np.ones(2), "visible_bias": np.ones(3)}


def test_checked_accepts_what_numpy_gives():
    model = RBM.checked(**GOOD, visible_means=[0.1, 0.5, 0.9])
    np.testing.assert_array_equal(model.weights, np.ones((2, 3)))
    integers = {name: array.astype(np.int8) for name, array in GOOD.items()}
    assert RBM.checked(**integers).digest == model.digest


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weights": np.ones(3)}, [r"weights must be a \(hidden, visible\) matrix", r"\(3,\)"]),
        ({"weights": np.ones((0, 3))}, [r"weights must be", r"\(0, 3\)"]),
        ({"hidden_bias": np.ones(3)}, [r"\(2, 3\)", "hidden_bias", r"\(2,\)", r"\(3,\)"]),
        ({"visible_bias": np.ones(2)}, [r"\(2, 3\)", "visible_bias", r"\(3,\)", r"\(2,\)"]),
        ({"visible_bias": np.ones((3, 1))}, ["visible_bias", r"\(3,\)", r"\(3, 1\)"]),
        ({"visible_means": np.ones(4)}, ["visible_means", r"\(3,\)", r"\(4,\)"]),
        ({"weights": np.full((2, 3), np.nan)}, ["weights must be finite", "6 NaN", "of 6"]),
        ({"hidden_bias": [1, np.inf]}, ["hidden_bias must be finite", "1 NaN", "of 2"]),
        ({"visible_bias": [1, 2, 1e39]}, ["visible_bias must be finite in float32"]),
        ({"weights": np.ones((2, 3), complex)}, ["weights must hold real numbers", "complex"]),
        ({"weights": np.full((2, 3), "1")}, ["weights must hold real numbers"]),
        ({"weights": np.full((2, 3), None)}, ["weights must hold real numbers", "object"]),
    ],
)
def test_checked_says_what_is_wrong(wrong: dict, words: list[str]):
    """Both shapes, or the count of what is not finite, and the name of the array."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (several words are matched below)
        RBM.checked(**{**GOOD, **wrong})
    for word in words:
        caught.match(word)
