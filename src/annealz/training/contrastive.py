"""Contrastive divergence (CD-k) and its persistent form (PCD-k).

The gradient of the log-likelihood is a difference of expectations of d log p*(v),

    grad = E_data[d log p*(v)] - E_model[d log p*(v)]

and both algorithms replace the second by the end of a short chain: CD-k starts it anew from the
minibatch, PCD-k goes on from where the last update left it. Data are intensities in [0, 1], taken
as Bernoulli probabilities and sampled anew for every minibatch. Rows are drawn with replacement.

All randomness is a function of (seed, update, row): an update needs no generator state.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from annealz.bases.bernoulli import smoothed_means
from annealz.models.rbm import RBM
from annealz.random import Bits, Stream

__all__ = ["TrainingState", "initial_state", "train", "update"]

Algorithm = Literal["cd", "pcd"]


class TrainingState(eqx.Module):
    """Everything an update reads and writes."""

    model: RBM
    optimiser: optax.OptState
    chains: Float[Array, "batch visible"]
    num_updates: Array


def initial_state(
    means: Float[np.ndarray, " visible"],
    num_hidden: int,
    optimiser: optax.GradientTransformation,
    batch_size: int,
    seed: int,
) -> TrainingState:
    """Weights N(0, 0.01^2), hidden bias 0, visible bias and chains at the data's base rate."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(0, 0.01, (num_hidden, len(means)))
    bias = np.log(means) - np.log1p(-means)
    model = RBM(weights, np.zeros(num_hidden), bias, means)
    chains = (generator.random((batch_size, len(means))) < means).astype(np.float32)
    return TrainingState(
        model,
        optimiser.init(eqx.filter(model, _parameters(model))),
        jnp.asarray(chains),
        jnp.uint32(0),
    )


def update(
    state: TrainingState,
    data: Float[Array, "rows visible"],
    optimiser: optax.GradientTransformation,
    stream: Stream,
    algorithm: Algorithm,
    gibbs_steps: int,
) -> TrainingState:
    """One parameter update."""
    batch_size, num_visible = state.chains.shape
    model = state.model
    bits = stream.at(state.num_updates, jnp.arange(batch_size))
    rows = (bits.uniforms(1, draw=0)[:, 0] * len(data)).astype(jnp.int32)
    batch = (bits.uniforms(num_visible, draw=1) < data[jnp.minimum(rows, len(data) - 1)]).astype(
        jnp.float32
    )
    start = batch if algorithm == "cd" else state.chains
    chains = jax.lax.fori_loop(
        0, gibbs_steps, lambda i, v: _sweep(model, bits, v, i, gibbs_steps), start
    )

    def loss(model):
        return model.log_density(chains).mean() - model.log_density(batch).mean()

    parameters, rest = eqx.partition(model, _parameters(model))
    gradient = eqx.filter(eqx.filter_grad(loss)(model), _parameters(model))
    step, new_optimiser = optimiser.update(gradient, state.optimiser, parameters)
    model = eqx.combine(eqx.apply_updates(parameters, step), rest)
    return TrainingState(model, new_optimiser, chains, state.num_updates + 1)


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
    report: Callable[[int, RBM], None] | None = None,
    report_every: int = 5_000,
) -> RBM:
    """An RBM fitted to data (rows, visible) in [0, 1].

    With `final_learning_rate` the rate goes linearly from `learning_rate` at the first update to it
    at the last. `report(updates, model)` is called every `report_every` updates.
    """
    if algorithm not in ("cd", "pcd"):
        raise ValueError(f"algorithm must be cd or pcd, got {algorithm!r}.")
    for name, count in (
        ("gibbs_steps", gibbs_steps),
        ("num_updates", num_updates),
        ("num_hidden", num_hidden),
        ("batch_size", batch_size),
    ):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")
    rate = (
        learning_rate
        if final_learning_rate is None
        else optax.linear_schedule(learning_rate, final_learning_rate, max(num_updates - 1, 1))
    )
    optimiser = optax.chain(optax.add_decayed_weights(weight_decay), optax.sgd(rate))
    state = initial_state(smoothed_means(data), num_hidden, optimiser, batch_size, seed)
    stream = Stream(seed, "training")
    on_device = jnp.asarray(data, jnp.float32)

    @eqx.filter_jit  # no donation: `report` may keep the model it was given
    def advance(data, state, count):
        return jax.lax.fori_loop(
            0, count, lambda _, s: update(s, data, optimiser, stream, algorithm, gibbs_steps), state
        )

    for done in range(0, num_updates, report_every):
        count = min(report_every, num_updates - done)
        state = advance(on_device, state, jnp.int32(count))
        if report is not None:
            report(done + count, state.model)
    return state.model


def _sweep(model: RBM, bits: Bits, v, sweep, num_sweeps):
    """One Gibbs sweep; each sweep of an update has a step number of its own."""
    own = Bits(bits.key, bits.chains, bits.step * jnp.uint32(num_sweeps) + sweep.astype(jnp.uint32))
    h = own.bernoulli(model.hidden_logits(v), draw=2)
    return own.bernoulli(model.visible_logits(h), draw=3)


def _parameters(model: RBM) -> RBM:
    """Which leaves are trained: all but the record of the data's means."""
    trained = jax.tree.map(lambda _: True, model)
    return eqx.tree_at(lambda m: m.visible_means, trained, False)
