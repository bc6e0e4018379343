"""The loop over updates, and how well a model fits meanwhile.

The loop runs on the device in pieces of about a quarter of a second, so that the host can report, save and
be interrupted in between. A state is a function of (data, settings, number of updates): pieces,
reports and resumes change no bit of it.

Reconstruction error, v -> E[h | v] -> E[v | h] with nothing sampled on the way, a unit:

    mean over rows and units of (v_j - sigmoid(W^T sigmoid(W v + a) + b)_j)^2

Pseudo-log-likelihood, in nats per example, with v' = v except that its unit j is flipped:

    PL(v) = sum_j log p(v_j | v_-j) = D E_j[log sigmoid(log p*(v) - log p*(v'))]

estimated without bias by D times the mean over a few units j drawn at random for every row. Turning
one unit over changes the hidden logits by one column of W, so that no further product is needed.

Rows, their binarisation and the units are drawn once from the seed, by streams of their own: reports
are comparable with each other and touch nothing of the training. PL does not bound the
log-likelihood and is biased in no known direction: it shows progress, not quality.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from annealz.bases.bernoulli import smoothed_means
from annealz.core.arrays import on_device
from annealz.core.errors import InputError
from annealz.core.interrupts import Pace
from annealz.core.random import Stream, derive_seed
from annealz.engine.checkpoint import RunState, Saver
from annealz.models.rbm import RBM
from annealz.training.contrastive import (
    Algorithm,
    Settings,
    TrainingState,
    initial_state,
    update,
)
from annealz.training.data import binarise, check_rows

_ROWS, _UNITS = 512, 8  # looked at
Report = Callable[[int, RBM], None]


class DivergenceError(ValueError):
    """Parameters that left the real numbers."""


class Fitness(NamedTuple):
    """What a monitor sees in a model."""

    reconstruction_error: float
    pseudo_log_likelihood: float


class TrainingProgress(NamedTuple):
    """Where a training stands."""

    num_done: int
    num_updates: int
    updates_per_second: float
    """nan until there is something to measure."""
    fitness: Fitness


class Fit(NamedTuple):
    """What a training ends in."""

    model: RBM
    fitness: Fitness
    seconds: float
    messages: tuple[str, ...]


def train(
    data: Float[np.ndarray, "rows visible"],
    *,
    num_hidden: int,
    algorithm: Algorithm = "pcd",
    gibbs_steps: int = 1,
    num_updates: int = 250_000,
    learning_rate: float = 0.01,
    final_learning_rate: float | None = None,
    weight_decay: float = 0.0,
    batch_size: int = 100,
    seed: int = 0,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    report: Report | None = None,
    report_every: int = 5_000,
    chunk_updates: int | None = None,
) -> RBM:
    """Return an RBM fitted to data (rows, visible) in [0, 1]; further axes are flattened.

    Parameters
    ----------
    algorithm : "pcd", chains that go on from update to update, or "cd", chains from the minibatch
    gibbs_steps : sweeps of these chains per update
    final_learning_rate : where given, the rate goes linearly from `learning_rate` at the first
        update to it at the last
    weight_decay : L2 decay of the weights (not of the biases), per unit of the rate
    batch_size : rows drawn, with replacement, per update; and chains
    on_progress : called a few times a second
    report : called with (updates, model) every `report_every` updates and after the last
    chunk_updates : updates between returns to the host; by default chosen by the clock. It changes
        no bit of the result.
    """
    options = dict(locals())
    ways = ("on_progress", "report", "report_every", "chunk_updates")
    how = {name: options.pop(name) for name in ways}
    return fit(check_rows(options.pop("data")), Settings(**options), **how).model


def fit(
    data: Float[np.ndarray, "rows visible"],
    settings: Settings,
    *,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    report: Report | None = None,
    report_every: int = 5_000,
    chunk_updates: int | None = None,
    saver: Saver | None = None,
) -> Fit:
    """Train with these settings; `data` as `check_rows` returns them.

    `saver` keeps it as it goes, and has it continue from where it was left.
    """
    for name, count in (("report_every", report_every), ("chunk_updates", chunk_updates)):
        if count is not None and count < 1:
            raise InputError(name, "must be at least 1", count)
    saver = saver or Saver(None, 0)
    begun = initial_state(
        smoothed_means(data),
        settings.num_hidden,
        settings.optimiser(),
        settings.batch_size,
        settings.seed,
    )
    start = RunState(0, [begun], [])
    now = saver.load(lambda: start) or start
    stream, rule = Stream(settings.seed, "training"), dataclasses.replace(settings, seed=0)
    rows, monitor = jnp.asarray(data), Monitor(data, settings.seed)
    pace, total, first = Pace(chunk_updates), settings.num_updates, None
    with saver.keeping(lambda: now):
        while True:
            is_due = now.step > 0 and (now.step % report_every == 0 or now.step == total)
            if report is not None and is_due:  # of the state it resumed from, too
                report(now.step, now.blocks[0].model)
            if now.step == total:
                break
            limit = total - now.step if report is None else report_every - now.step % report_every
            count = pace.take(min(limit, total - now.step))
            with pace:
                state = _advance(rows, now.blocks[0], stream, jnp.int32(count), rule)
                is_finite = bool(_is_finite(state.model))  # waits for the device
            if not is_finite:
                raise DivergenceError(
                    f"the parameters became infinite or NaN by update {now.step + count:,} of "
                    f"{total:,}: take a smaller learning rate."
                )
            now = RunState(now.step + count, [state], [])  # in one go: an interrupt may come
            if on_progress is not None:
                clock, speed = time.monotonic(), np.nan
                if first is None:  # what was compiled before does not count
                    first = now.step, clock
                else:
                    speed = (now.step - first[0]) / max(clock - first[1], 1e-9)
                on_progress(TrainingProgress(now.step, total, speed, monitor(state.model)))
            saver.save_if_due()
    model = now.blocks[0].model
    return Fit(model, monitor(model), saver.seconds, tuple(saver.messages))


@eqx.filter_jit  # no donation: `report` may keep the model it was given
def _advance(data, state: TrainingState, stream: Stream, count: Array, rule: Settings):
    optimiser = rule.optimiser()

    def body(_, state):
        return update(state, data, optimiser, stream, rule.algorithm, rule.gibbs_steps)

    return jax.lax.fori_loop(0, count, body, state)


@eqx.filter_jit
def _is_finite(model: RBM) -> Array:
    parameters = (model.weights, model.hidden_bias, model.visible_bias)
    return jnp.stack([jnp.isfinite(array).all() for array in parameters]).all()


class Monitor:
    """A fixed sample of data (rows, visible) in [0, 1] to look at models with."""

    def __init__(self, data: np.ndarray, seed: int):
        generator = np.random.default_rng(derive_seed(seed, "monitor"))
        rows = np.sort(generator.permutation(len(data))[:_ROWS])
        self.rows = on_device(binarise(data[rows], derive_seed(seed, "monitor", "rows")))
        self.units = on_device(
            generator.integers(data.shape[1], size=(len(rows), _UNITS)), np.int32
        )

    def __call__(self, model: RBM) -> Fitness:
        error, likelihood = _look(model, self.rows, self.units)
        return Fitness(float(error), float(likelihood))


def reconstruction_error(model: RBM, v: Float[Array, "rows visible"]) -> Float[Array, ""]:
    """Return the mean squared difference per unit between v and its mean-field reconstruction."""
    back = jax.nn.sigmoid(model.visible_logits(jax.nn.sigmoid(model.hidden_logits(v))))
    return ((v - back) ** 2).mean()


def pseudo_log_likelihood(
    model: RBM, v: Float[Array, "rows visible"], units: Integer[Array, "rows units"]
) -> Float[Array, ""]:
    """Return D times the mean of log p(v_j | v_-j) over the rows and their units j, in nats."""
    turn = 1 - 2 * jnp.take_along_axis(v, units, axis=1)  # (rows, units): v'_j - v_j
    logits = model.hidden_logits(v)[:, None, :]  # (rows, 1, hidden)
    turned = logits + turn[:, :, None] * model.weights.T[units]  # (rows, units, hidden)
    gain = turn * model.visible_bias[units]
    gain += (jax.nn.softplus(turned) - jax.nn.softplus(logits)).sum(-1)
    return v.shape[1] * jax.nn.log_sigmoid(-gain).mean()


@eqx.filter_jit
def _look(model: RBM, v, units):
    return reconstruction_error(model, v), pseudo_log_likelihood(model, v, units)
