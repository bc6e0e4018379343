"""Contrastive divergence: the right gradient, the right direction, coins of its own."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from annealz.core.random import Stream
from annealz.models.exact import exact_log_z, exact_samples
from annealz.models.rbm import RBM
from annealz.testing import assert_within_mc_error, binary_states, log_joint, random_rbm
from annealz.training.contrastive import Settings, TrainingState, initial_state, update
from support.training import DATA, NUM_HIDDEN, NUM_VISIBLE, fit

STATES = binary_states(NUM_VISIBLE)


def data_probabilities() -> np.ndarray:
    """p(v) of a row drawn and binarised: the distribution that training really sees."""
    return np.exp(STATES @ np.log(DATA.T) + (1 - STATES) @ np.log1p(-DATA.T)).mean(1)


def log_likelihood(model: RBM) -> float:
    """Expected log p(v) over the binarised data, exact."""
    return float(data_probabilities() @ np.float64(model.log_density(STATES)) - exact_log_z(model))


@pytest.fixture(scope="module")
def start() -> float:
    """The log-likelihood before training: independent units at the base rate."""
    state = initial_state(DATA.mean(0), NUM_HIDDEN, optax.sgd(0.1), 50, seed=1)
    return log_likelihood(state.model)


@pytest.mark.parametrize("algorithm", ["cd", "pcd"])
@pytest.mark.parametrize("gibbs_steps", [1, 3])
def test_training_raises_the_likelihood(algorithm: str, gibbs_steps: int, start: float):
    """Most of what independent units miss is learned; the data's entropy is the upper bound."""
    best = float(data_probabilities() @ np.log(data_probabilities()))
    reached = log_likelihood(fit(algorithm=algorithm, gibbs_steps=gibbs_steps))
    assert start + 0.5 * (best - start) < reached < best


@pytest.mark.parametrize("algorithm", ["cd", "pcd"])
def test_a_swapped_sign_lowers_it(algorithm: str, start: float, monkeypatch):
    """Mutant: going down the gradient."""
    monkeypatch.setattr(Settings, "optimiser", lambda _: optax.sgd(-0.1))
    wrong = fit(algorithm=algorithm, num_updates=101)  # other settings, so compiled anew
    assert log_likelihood(wrong) < start - 0.01


@pytest.mark.usefixtures("optimised")
def test_pcd_of_many_sweeps_reaches_the_maximum_of_the_likelihood():
    """With chains that mix, a falling rate ends where gradient ascent by enumeration ends."""
    best = climb(fit(num_updates=1, batch_size=200))  # no other test compares bits of this program
    model = fit(
        gibbs_steps=10,
        num_updates=6000,
        learning_rate=0.2,
        final_learning_rate=0.0,
        batch_size=200,
    )
    assert best - 0.01 < log_likelihood(model) < best + 1e-4


def climb(model: RBM) -> float:
    """The largest log-likelihood that exact gradients from this start reach, in NumPy."""
    given = [np.float64(getattr(model, n)) for n in ("weights", "hidden_bias", "visible_bias")]
    ends = np.cumsum([part.size for part in given])[:-1]
    states, share = np.float64(STATES), data_probabilities()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights, hidden, visible = np.split(flat, ends)
        fields = states @ weights.reshape(given[0].shape).T + hidden  # (states, hidden)
        logs = states @ visible + np.logaddexp(0, fields).sum(1)
        log_z, on = logsumexp(logs), expit(fields)
        change = share - np.exp(logs - log_z)
        gradient = np.concatenate(
            [np.ravel((on * change[:, None]).T @ states), change @ on, change @ states]
        )
        return log_z - share @ logs, -gradient

    found = minimize(
        objective,
        np.concatenate([np.ravel(part) for part in given]),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-7, "maxiter": 300},
    )
    return -found.fun


# --- one update against the exact gradient ----------------------------------------------------


class Gradient(NamedTuple):
    """Of the log-likelihood, in the order of the parameters, flat."""

    mean: np.ndarray
    std_err: np.ndarray


def statistics(model: RBM) -> np.ndarray:
    """d log p*(v) for every state: weights (row by row), hidden bias, visible bias."""
    hidden = expit(STATES @ np.float64(model.weights).T + np.float64(model.hidden_bias))
    products = hidden[:, :, None] * STATES[:, None, :]
    return np.concatenate([products.reshape(len(STATES), -1), hidden, STATES], axis=1)


def exact_gradient(model: RBM, batch_size: int) -> Gradient:
    """E_data[d log p*] - E_model[d log p*], and the standard error of its batch average."""
    joint = logsumexp(log_joint(model), 0)
    laws = data_probabilities(), np.exp(joint - logsumexp(joint))
    values = statistics(model)
    means = [law @ values for law in laws]
    variances = [law @ values**2 - mean**2 for law, mean in zip(laws, means, strict=True)]
    return Gradient(means[0] - means[1], np.sqrt(sum(variances) / batch_size))


BATCH = 100_000


@eqx.filter_jit
def take_step(state: TrainingState, stream: Stream, algorithm: str) -> TrainingState:
    return update(state, jnp.float32(DATA), optax.sgd(1.0), stream, algorithm, 1)


def one_update(model: RBM, chains: np.ndarray, algorithm: str, seed: int) -> np.ndarray:
    """The change of the parameters in one update with learning rate 1, flat."""
    optimiser = optax.sgd(1.0)
    fresh = initial_state(DATA.mean(0), NUM_HIDDEN, optimiser, 1, seed=0)
    state = TrainingState(model, fresh.optimiser, jnp.asarray(chains), jnp.uint32(5))
    after = take_step(state, Stream(seed, "t"), algorithm).model
    names = ("weights", "hidden_bias", "visible_bias")
    return np.concatenate(
        [np.ravel(np.asarray(getattr(after, n)) - getattr(model, n)) for n in names]
    )


def test_the_gradient_is_exact_where_the_chains_are(seed: int):
    """PCD from exact samples is unbiased: every component within its standard error.

    Mutants: the swapped sign, chains of another model, and CD, which starts at the data.
    """
    model = random_rbm(NUM_HIDDEN, NUM_VISIBLE, scale=2.5, seed=2)
    model = RBM(model.weights, model.hidden_bias, model.visible_bias, DATA.mean(0))
    chains, _ = exact_samples(model, BATCH, seed)
    gradient = exact_gradient(model, BATCH)
    change = one_update(model, chains, "pcd", seed)
    assert_within_mc_error(change, *gradient)
    wrong_chains, _ = exact_samples(random_rbm(NUM_HIDDEN, NUM_VISIBLE, seed=3), BATCH, seed)
    for wrong in (
        -change,
        one_update(model, wrong_chains, "pcd", seed),
        one_update(model, chains, "cd", seed),
    ):
        with pytest.raises(AssertionError, match="z = "):
            assert_within_mc_error(wrong, *gradient)


@pytest.mark.parametrize("algorithm", ["cd", "pcd"])
def test_the_step_points_along_the_exact_gradient(algorithm: str, seed: int):
    """CD is biased, but its direction is that of the likelihood."""
    model = fit(num_updates=50)
    chains, _ = exact_samples(model, BATCH, seed)
    change = one_update(model, chains, algorithm, seed)
    exact = exact_gradient(model, BATCH).mean
    assert change @ exact > 0.5 * np.linalg.norm(change) * np.linalg.norm(exact)


@pytest.mark.parametrize("gibbs_steps", [1, 2])
def test_every_update_throws_its_own_coins(gibbs_steps: int, seed: int):
    """Without weights each sweep is a fresh draw: fair units agree with the last ones by chance.

    Mutant: chains that threw the same coins again agree everywhere.
    """
    optimiser, rows = optax.sgd(0.0), 10_000
    state = initial_state(np.full(NUM_VISIBLE, 0.5), NUM_HIDDEN, optimiser, rows, seed=0)
    state = eqx.tree_at(lambda s: s.model.weights, state, jnp.zeros((NUM_HIDDEN, NUM_VISIBLE)))
    stream, data = Stream(seed, "t"), jnp.full((2, NUM_VISIBLE), 0.5)
    step = jax.jit(lambda s: update(s, data, optimiser, stream, "pcd", gibbs_steps))
    first = step(state)
    second = step(first)
    agreement = float(jnp.mean(first.chains == second.chains))
    assert_within_mc_error(agreement, 0.5, 0.5 / np.sqrt(rows * NUM_VISIBLE))
    again = float(jnp.mean(step(state).chains == first.chains))
    assert again == 1  # what stale coins would look like
