"""The loop of training: one seed one model, whatever the pieces; the rule of the rate and the decay."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from annealz.engine.checkpoint import Checkpoint, Saver
from annealz.models.rbm import RBM
from annealz.training.contrastive import Settings
from annealz.training.data import check_rows
from annealz.training.train import DivergenceError, TrainingProgress, train
from annealz.training.train import fit as fit_settings
from support.training import DATA, NUM_HIDDEN, NUM_VISIBLE, fit


def assert_equal_bits(one: RBM, two: RBM) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


# --- one seed, one model ----------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["cd", "pcd"])
def test_a_seed_gives_one_model(algorithm: str):
    options = {"algorithm": algorithm, "num_updates": 40}
    model = fit(**options)
    assert_equal_bits(model, fit(**options))
    assert not np.array_equal(model.weights, fit(**{**options, "seed": 2}).weights)


@pytest.mark.parametrize("algorithm", ["cd", "pcd"])
@pytest.mark.parametrize("chunk_updates", [1, 7, 40, 1000])
def test_pieces_change_no_bit(algorithm: str, chunk_updates: int):
    options = {"algorithm": algorithm, "num_updates": 40, "final_learning_rate": 0.01}
    assert_equal_bits(fit(**options), fit(**options, chunk_updates=chunk_updates))


def test_reports_change_no_bit_and_stay_valid():
    """How often one looks is not how one trains; what was looked at can be kept."""
    seen: list[tuple[int, RBM]] = []
    model = fit(num_updates=40, report=lambda n, m: seen.append((n, m)), report_every=15)
    assert [count for count, _ in seen] == [15, 30, 40]
    assert_equal_bits(model, fit(num_updates=40))
    assert_equal_bits(seen[0][1], fit(num_updates=15))


def test_progress_changes_no_bit_and_reaches_the_end():
    seen: list[TrainingProgress] = []
    model = fit(num_updates=40, on_progress=seen.append, chunk_updates=16)
    assert [now.num_done for now in seen] == [16, 32, 40]
    assert {now.num_updates for now in seen} == {40}
    assert np.isnan(seen[0].updates_per_second)
    assert seen[1].updates_per_second > 0
    assert np.isfinite([now.fitness for now in seen]).all()
    assert_equal_bits(model, fit(num_updates=40))


def test_the_data_means_are_kept_and_not_trained():
    model = fit(num_updates=40)
    np.testing.assert_allclose(model.visible_means, (DATA.sum(0) + 1) / 4, rtol=1e-6)


def test_one_update_and_a_batch_larger_than_the_data():
    """Two rows, a batch of fifty, one update: what the rule of the rate divides by is not zero."""
    once = fit(num_updates=1)
    assert_equal_bits(
        once, fit(num_updates=1, final_learning_rate=0.0)
    )  # the first rate, not the last
    assert np.isfinite(once.weights).all()
    assert once.weights.shape == (NUM_HIDDEN, NUM_VISIBLE)


def test_further_axes_are_flattened():
    options = {"num_hidden": 2, "num_updates": 5, "batch_size": 3}
    assert_equal_bits(train(DATA.reshape(2, 2, 3), **options), train(DATA, **options))


# --- checkpoints ------------------------------------------------------------------------------

SETTINGS = Settings(num_hidden=NUM_HIDDEN, num_updates=60, batch_size=10, final_learning_rate=0.001)


class Interruption(Exception):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("stop", [1, 30, 60])
def test_a_checkpoint_is_continued_to_the_same_bits(tmp_path: Path, stop: int):
    """Stopped in a report; what was being reported is reported again."""
    data, seen = check_rows(DATA), []

    def interrupt(num_done: int, model: RBM) -> None:
        if num_done == stop:
            raise Interruption

    checkpoint = Checkpoint(tmp_path / "c.npz", "digest")
    with pytest.raises(Interruption):
        fit_settings(
            data, SETTINGS, report=interrupt, report_every=stop, saver=Saver(checkpoint, 15)
        )
    found = fit_settings(
        data,
        SETTINGS,
        report=lambda n, _: seen.append(n),
        report_every=stop,
        saver=Saver(checkpoint, 15),
    )
    assert seen == list(range(stop, 61, stop))
    assert_equal_bits(found.model, fit_settings(data, SETTINGS).model)


def test_a_disk_that_refuses_checkpoints_is_mentioned_once(tmp_path: Path):
    checkpoint = Checkpoint(tmp_path / "nowhere" / "c.npz", "digest")
    found = fit_settings(check_rows(DATA), SETTINGS, saver=Saver(checkpoint, 0), chunk_updates=5)
    assert len(found.messages) == 1
    assert "could not write the checkpoint" in found.messages[0]
    assert_equal_bits(found.model, fit_settings(check_rows(DATA), SETTINGS).model)


# --- the rule ---------------------------------------------------------------------------------

ZERO = RBM(np.ones((2, 3)), np.ones(2), np.ones(3), np.full(3, 0.5))


def steps(settings: Settings, gradient: float, count: int) -> list[RBM]:
    """The steps of the optimiser for a constant gradient, the parameters being one."""
    optimiser = settings.optimiser()
    parameters = RBM(ZERO.weights, ZERO.hidden_bias, ZERO.visible_bias)
    state, found = optimiser.init(parameters), []
    for _ in range(count):
        constant = jax.tree.map(lambda a: jnp.full_like(a, gradient), parameters)
        step, state = optimiser.update(constant, state, parameters)
        found.append(step)
    return found


def test_the_rate_goes_linearly_from_the_first_update_to_the_last():
    settings = Settings(num_hidden=1, num_updates=5, learning_rate=0.5, final_learning_rate=0.1)
    rates = [-float(step.weights[0, 0]) for step in steps(settings, 1.0, 5)]
    np.testing.assert_allclose(rates, [0.5, 0.4, 0.3, 0.2, 0.1], rtol=1e-6)


def test_without_a_final_rate_it_is_fixed():
    settings = Settings(num_hidden=1, num_updates=5, learning_rate=0.5)
    assert [float(step.hidden_bias[0]) for step in steps(settings, 1.0, 5)] == [-0.5] * 5


def test_decay_pulls_at_the_weights_alone_and_is_scaled_by_the_rate():
    settings = Settings(num_hidden=1, num_updates=5, learning_rate=0.5, weight_decay=0.2)
    (step,) = steps(settings, 0.0, 1)
    np.testing.assert_allclose(step.weights, -0.5 * 0.2)
    assert not np.any(step.hidden_bias)
    assert not np.any(step.visible_bias)


def test_weight_decay_shrinks_the_weights_and_spares_the_biases():
    """The biases go on to learn what the shrunk weights no longer can."""
    plain, decayed = fit(), fit(weight_decay=1.0)
    assert np.abs(decayed.weights).max() < 0.3 * np.abs(plain.weights).max()
    means = DATA.mean(0)
    np.testing.assert_allclose(decayed.visible_bias, np.log(means / (1 - means)), atol=0.5)


def test_parameters_that_leave_the_numbers_stop_the_training():
    with pytest.raises(DivergenceError, match="NaN by update .*: take a smaller learning rate"):
        fit(learning_rate=10.0, weight_decay=1.0, num_updates=100)  # W times -9, an update


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "cd25"}, "algorithm must be cd or pcd, got 'cd25'"),
        ({"gibbs_steps": 0}, "gibbs_steps must be at least 1, got 0"),
        ({"num_updates": 0}, "num_updates must be at least 1"),
        ({"num_updates": 10.5}, "num_updates must be at least 1, got 10.5"),
        ({"num_updates": 2**30, "gibbs_steps": 2}, "times gibbs_steps must be under 2^31"),
        ({"num_hidden": 0}, "num_hidden must be at least 1"),
        ({"batch_size": -1}, "batch_size must be at least 1, got -1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ({"learning_rate": np.nan}, "learning_rate must be positive, got nan"),
        ({"final_learning_rate": -0.1}, "final_learning_rate must be zero or positive, got -0.1"),
        ({"weight_decay": np.inf}, "weight_decay must be zero or positive, got inf"),
        ({"seed": -1}, "seed must be an integer from 0"),
        ({"report_every": 0}, "report_every must be at least 1"),
        ({"chunk_updates": 0}, "chunk_updates must be at least 1"),
    ],
)
def test_refusals(options: dict, words: str):
    with pytest.raises(ValueError, match=words.replace("^", r"\^")):
        fit(**options)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (255 * DATA, "data must lie in .0, 1., got values from 12.75 to 242.25"),
        (-DATA, "data must lie in"),
        (DATA[0], "must hold rows of units, at least one of each, got shape .6,"),
        (DATA[:0], "must hold rows of units"),
        (DATA[:, :0], "must hold rows of units"),
        (np.where(DATA > 0.9, np.nan, DATA), "must be finite, got 2 NaN or infinite of 12"),
        (np.array([["a", "b"]]), "must hold real numbers, got dtype <U1"),
    ],
    ids=["bytes", "negative", "one row", "no rows", "no units", "nan", "text"],
)
def test_bad_data(data: np.ndarray, words: str):
    with pytest.raises(ValueError, match=words):
        train(data, num_hidden=2, num_updates=1)
