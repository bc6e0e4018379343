"""Contrastive divergence (CD-k) and its persistent form (PCD-k).

The gradient of the log-likelihood is a difference of expectations of d log p*(v),

    grad = E_data[d log p*(v)] - E_model[d log p*(v)]

and both algorithms replace the second by the end of a short chain: CD-k starts it again from the
minibatch, PCD-k continues where the last update left it. Data are intensities in [0, 1], taken
as Bernoulli probabilities and sampled again for every minibatch. Rows are drawn with replacement.

All randomness is a function of (seed, update, row): an update needs no generator state.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from annealz.core.random import Bits, Stream
from annealz.models.rbm import RBM

__all__ = ["Algorithm", "TrainingState", "initial_state", "update"]

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
    intensities = data[jnp.minimum(rows, len(data) - 1)]
    is_one = (bits.uniforms(num_visible, draw=1) < intensities) | (intensities == 1)  # u may be 1
    batch = is_one.astype(jnp.float32)
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


def _sweep(model: RBM, bits: Bits, v, sweep, num_sweeps):
    """One Gibbs sweep; each sweep of an update has a step number of its own."""
    step = bits.step * jnp.uint32(num_sweeps) + sweep.astype(jnp.uint32)
    own = Bits(bits.stream, bits.chains, step)
    h = own.bernoulli(model.hidden_logits(v), draw=2)
    return own.bernoulli(model.visible_logits(h), draw=3)


def _parameters(model: RBM) -> RBM:
    """Which leaves are trained: all but the record of the data's means."""
    trained = jax.tree.map(lambda _: True, model)
    return eqx.tree_at(lambda m: m.visible_means, trained, False)
