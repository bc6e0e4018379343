"""Reverse annealing from examples: the annealed model's likelihood, exactly and by z-test, from below.

The law of where forward chains end is a product of matrices. The estimate must have it as its mean for
every state, not only on average over the model: that tells it from p_B itself.
"""

import dataclasses
import itertools
import json
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from annealz import Likelihood, conservative_log_z, estimate_log_z, exact_log_z, log_likelihood
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.weights import log_mean
from annealz.engine.progress import Progress
from annealz.kernels.gibbs import BlockGibbs
from annealz.methods.annealing.estimate import Estimate
from annealz.models.exact import exact_samples
from annealz.models.formats.npz import save_rbm
from annealz.paths.geometric import GeometricPath
from annealz.results.conservative import Conservative
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from annealz.testing import assert_within_mc_error, binary_states, log_joint
from support.command import PLAIN, run
from support.enumeration import first_law, in_float64, transition_matrix
from support.memory import SLOW
from support.systems import SCHEDULE, SMALL, SMALL_BASE
from support.values import log_density, log_ratio

STATES = binary_states(5).astype(np.float32)
CHAINS = 4000


def target(model) -> np.ndarray:
    """p_B of every visible state."""
    joint = log_joint(model)
    return np.exp(logsumexp(joint, axis=0) - logsumexp(joint))


def annealed_law(path: GeometricPath, betas: np.ndarray) -> np.ndarray:
    """p_annl of every state: the first law moved by every kernel in turn."""
    with jax.enable_x64(True):
        law = first_law(in_float64(path))
        for beta in betas[1:]:
            law = law @ transition_matrix(BlockGibbs(), path, beta)
    return law


def expected_likelihood(path: GeometricPath, betas: np.ndarray) -> np.ndarray:
    """E[p^(v)] of every state, by enumeration of the reverse chain, from its end."""
    states = binary_states(path.to_state.shape[1])
    with jax.enable_x64(True):
        wide = in_float64(path)
        mean = np.ones(len(states))
        for low, high in itertools.pairwise(betas):  # k = 1 is the last of the chain
            ratio = np.exp(log_ratio(wide, states, high, low))
            mean = transition_matrix(BlockGibbs(), path, high) @ (ratio * mean)
        density = log_density(wide, states, 1.0)
    return np.exp(density - path.log_z0) * mean


PATH = GeometricPath(SMALL_BASE, SMALL)


@pytest.fixture(scope="module")
def annealed() -> np.ndarray:
    return annealed_law(PATH, SCHEDULE.betas)


# --- the identity, without noise --------------------------------------------------------------


@pytest.mark.parametrize("betas", [SCHEDULE.betas, [0, 1], [0, 0.1, 1], np.linspace(0, 1, 8)])
def test_the_mean_is_the_annealed_law(betas):
    betas = np.asarray(betas, np.float64)
    law = annealed_law(PATH, betas)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(expected_likelihood(PATH, betas), law, rtol=1e-9)


def test_the_annealed_law_is_not_the_model(annealed: np.ndarray):
    """Else the tests below could not tell them apart."""
    assert np.abs(np.log(annealed / target(SMALL))).max() > 0.2


# --- the code meets the identity --------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> Conservative:
    """Every state is an example."""
    return conservative_log_z(
        SMALL, STATES, SCHEDULE, base=SMALL_BASE, num_chains=CHAINS, seed=20150215
    )


def likelihoods(found: Conservative) -> tuple[np.ndarray, np.ndarray]:
    """Mean of p^ over single chains, for every example, and its standard error."""
    log_p = found.log_densities[:, None] - found.log_z0 + found.log_weights
    p = np.exp(log_p)
    return p.mean(1), p.std(1, ddof=1) / np.sqrt(found.num_chains)


def test_every_likelihood_has_the_annealed_law_as_its_mean(found: Conservative, annealed):
    mean, std_err = likelihoods(found)
    np.testing.assert_array_equal(found.examples, np.arange(32))
    np.testing.assert_allclose(np.log(mean), found.log_likelihoods, rtol=1e-9)
    assert_within_mc_error(mean, annealed, std_err)


def test_the_test_refuses_other_laws(found: Conservative, annealed: np.ndarray):
    """Mutants: the model itself, a run without its last move, the wrong sign, chains mixed up."""
    mean, std_err = likelihoods(found)
    with jax.enable_x64(True):
        shorter = first_law(in_float64(PATH))
        for beta in SCHEDULE.betas[1:-1]:
            shorter = shorter @ transition_matrix(BlockGibbs(), PATH, beta)
    for wrong in (target(SMALL), shorter):
        with pytest.raises(AssertionError, match="z = "):
            assert_within_mc_error(mean, wrong, std_err)
    for weights in (-found.log_weights, np.roll(found.log_weights, 1, axis=0)):
        mean, std_err = likelihoods(dataclasses.replace(found, log_weights=weights))
        with pytest.raises(AssertionError, match="z = "):
            assert_within_mc_error(mean, annealed, std_err)


# --- from below -------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_low_where_the_forward_estimate_flatters(seed: int):
    """A model of two modes that 6 steps do not reach fairly; examples are draws of the model.

    On average over them log Z_up is log Z + KL(p_B | p_annl), and more where chains are few.
    """
    base, model = SLOW
    path, schedule, log_z = GeometricPath(base, model), linear(6), exact_log_z(model)
    p, law = target(model), annealed_law(path, schedule.betas)
    divergence = float((p * np.log(p / law)).sum())
    assert divergence > 0.02
    data = exact_samples(model, 4000, seed)[0]
    many, few = (
        conservative_log_z(
            model, data, schedule, base=base, num_examples=n, num_chains=c, seed=seed
        )
        for n, c in ((400, 200), (4000, 2))
    )
    assert_within_mc_error(many.log_z, log_z + divergence, many.std_err, alpha=1e-4)
    assert few.log_z - 4 * few.std_err > log_z
    assert few.log_z > many.log_z
    forward = estimate_log_z(
        model, base=base, schedule=schedule, num_chains=4000, seed=seed, second_opinion=False
    )
    pairs = [log_mean(pair) for pair in forward.log_weights.reshape(-1, 2)]  # as few chains
    low, error = forward.run.log_z0 + np.mean(pairs), np.std(pairs, ddof=1) / np.sqrt(len(pairs))
    assert low + 4 * error < log_z  # the log-likelihood is flattered


# --- which examples ---------------------------------------------------------------------------


def test_examples_are_drawn_once_each_and_from_the_seed():
    data = exact_samples(SMALL, 100)[0]

    def chosen(seed: int, num_examples: int = 20, num_chains: int = 10) -> Conservative:
        return conservative_log_z(
            SMALL, data, SCHEDULE, num_examples=num_examples, num_chains=num_chains, seed=seed
        )

    first, again, other = chosen(1), chosen(1), chosen(2)
    np.testing.assert_array_equal(first.examples, again.examples)
    np.testing.assert_array_equal(first.log_weights, again.log_weights)
    assert not np.array_equal(first.examples, other.examples)
    assert len(set(first.examples)) == 20
    assert first.log_weights.shape == (20, 10)
    everything = chosen(1, num_examples=1000, num_chains=2)
    np.testing.assert_array_equal(everything.examples, np.arange(100))


@pytest.mark.parametrize("name", ["num_examples", "num_chains"])
def test_bad_counts(name: str):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        conservative_log_z(SMALL, STATES, SCHEDULE, **{name: 0})


# --- beside the likelihood --------------------------------------------------------------------


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return estimate_log_z(
        SMALL, schedule=SCHEDULE, num_chains=200, base="uniform", second_opinion=False
    )


def look(estimate: Estimate, num_examples: int, **options) -> Likelihood:
    data = exact_samples(SMALL, 100)[0]
    return log_likelihood(
        SMALL,
        data,
        estimate=estimate,
        conservative=True,
        conservative_examples=num_examples,
        **options,
    )


def test_it_is_that_of_all_examples(estimate: Estimate):
    """From all of them it is their mean; from some, the difference to the estimate is theirs."""
    whole, some = look(estimate, 100), look(estimate, 20)
    assert whole.conservative is not None
    assert some.conservative is not None
    assert whole.conservative_log_likelihood == pytest.approx(
        whole.conservative.log_likelihoods.mean(), abs=1e-9
    )
    here = some.log_likelihoods[some.conservative.examples] - some.conservative.log_likelihoods
    assert some.conservative_log_likelihood == pytest.approx(some.log_likelihood - here.mean())
    assert some.conservative.std_err == pytest.approx(here.std(ddof=1) / np.sqrt(20))
    assert some.conservative.std_err < some.std_err_data  # what the examples share is taken out


def test_record_and_table(estimate: Estimate):
    seen: list[Progress] = []
    result = look(estimate, 20, on_progress=seen.append)
    record = result.to_dict()["conservative"]
    keys = ["log_likelihood", "std_err", "log_z", "num_examples", "num_chains", "sweeps", "seconds"]
    assert list(record) == keys
    assert (record["num_examples"], record["num_chains"]) == (20, 10)
    assert record["sweeps"] >= 200 * SCHEDULE.num_steps
    assert "20 examples, 10 chains each" in repr(result)
    assert seen[-1].step == SCHEDULE.num_steps
    assert np.isnan(seen[-1].log_z)
    assert result.conservative_log_likelihood is not None
    assert log_likelihood(SMALL, STATES, estimate=estimate).conservative_log_likelihood is None


def test_on_the_command_line(capsys, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("annealz.cli.run._SCRATCH", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    save_rbm("m.npz", SMALL)
    np.save("rows.npy", exact_samples(SMALL, 20)[0])
    words = ("--steps", 30, "--schedule", "linear", "--conservative", *PLAIN)
    status, out, err = run(capsys, "likelihood", "m.npz", "rows.npy", *words, "--json", "--quiet")
    assert (status, err) == (0, "")
    below = json.loads(out)["conservative"]
    assert (below["num_examples"], below["num_chains"]) == (20, 10)
    status, out, _ = run(capsys, "likelihood", "m.npz", "rows.npy", *words)
    assert status == 0
    assert "20 examples, 10 chains each" in out


def test_a_base_that_has_seen_the_data_flatters(seed: int):
    """The data are the mode that the model hardly has: annealing from there ends there too often.

    From the uniform base it does so less; and where it does, a message says that nothing is bounded.
    """
    _, model = SLOW
    data, exact = np.ones((4, 6), np.float32), exact_log_z(model)
    given = {"num_chains": 500, "seed": seed}
    seen = conservative_log_z(
        model, data, linear(6), base=BernoulliBase.from_means(np.full(6, 0.95)), **given
    )
    unseen = conservative_log_z(model, data, linear(6), **given)
    assert seen.log_z + 4 * seen.std_err < exact
    assert seen.log_z < unseen.log_z - 0.5
    np.testing.assert_allclose(unseen.log_z0, 10 * np.log(2), rtol=1e-6)
    forward = estimate_log_z(
        model, base="uniform", schedule=linear(200), num_chains=100, seed=seed, second_opinion=False
    )
    words = "bounds nothing here"
    assert words in repr(Likelihood("data", seen.log_densities, forward, seen))


def test_a_schedule_of_one_step_is_importance_sampling():
    """One move at beta = 1, one weight."""
    one = conservative_log_z(
        SMALL, STATES[:20], Schedule(np.array([0.0, 1.0])), num_chains=10, seed=1
    )
    assert one.run.num_steps == 1
    assert np.isfinite(one.log_z)


@pytest.mark.parametrize(("above", "is_said"), [(1.5, False), (2.5, True)])
def test_a_bound_on_the_wrong_side_of_the_exact_value_is_none(above, is_said):
    """Whatever the estimate says: the exact log Z is known here."""
    result = log_likelihood(
        SMALL,
        STATES,
        estimate=estimate_log_z(
            SMALL,
            base="uniform",
            schedule="linear",
            num_steps=30,
            num_chains=50,
            second_opinion=False,
            exact_log_z=exact_log_z(SMALL),
        ),
        conservative=True,
    )
    assert result.conservative is not None
    gap = result.conservative.log_z - exact_log_z(SMALL) + above * result.conservative.std_err
    moved = dataclasses.replace(
        result.conservative, log_weights=result.conservative.log_weights + gap
    )
    other = dataclasses.replace(result, conservative=moved)
    assert any("bounds nothing here" in one for one in other.messages) is is_said
