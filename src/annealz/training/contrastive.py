"""Contrastive divergence (CD-k) and its persistent form (PCD-k).

The gradient of the log-likelihood is a difference of expectations of d log p*(v),

    grad = E_data[d log p*(v)] - E_model[d log p*(v)]

and both algorithms replace the second by the end of a short chain: CD-k starts it again from the
minibatch, PCD-k continues where the last update left it. Data are intensities in [0, 1], taken
as Bernoulli probabilities and sampled again for every minibatch. Rows are drawn with replacement.

All randomness is a function of (seed, update, row): an update needs no generator state. The rule is

    theta <- theta + rate_u (grad - weight_decay W),      u = 0 .. num_updates - 1
    rate_u = learning_rate + (final_learning_rate - learning_rate) u / (num_updates - 1)

The L2 weight decay acts on the weights W only, never on the biases; it is the gradient of the penalty
weight_decay |W|^2 / 2, so that it is scaled by the rate. Without `final_learning_rate` the rate is
fixed.
"""

import dataclasses
import math
import numbers
from typing import Annotated, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from annealz.core.errors import InputError
from annealz.core.names import ALGORITHMS
from annealz.core.random import Bits, Stream, check_seed
from annealz.io.records import TypedRecord, finite, optional, text, whole
from annealz.models.rbm import RBM

Algorithm = Literal["cd", "pcd"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(TypedRecord):
    """All that decides a training, besides the data."""

    what: ClassVar[str] = "the settings of a training"

    num_hidden: Annotated[int, whole]
    algorithm: Annotated[Algorithm, text] = "pcd"
    gibbs_steps: Annotated[int, whole] = 1
    num_updates: Annotated[int, whole] = 250_000
    learning_rate: Annotated[float, finite] = 0.01
    final_learning_rate: Annotated[float | None, optional(finite)] = None
    weight_decay: Annotated[float, finite] = 0.0
    batch_size: Annotated[int, whole] = 100
    seed: Annotated[int, whole] = 0

    def __post_init__(self):
        if self.algorithm not in ALGORITHMS:
            raise InputError("algorithm", f"must be {' or '.join(ALGORITHMS)}", self.algorithm)
        for name in ("gibbs_steps", "num_updates", "num_hidden", "batch_size"):
            count = getattr(self, name)
            if not isinstance(count, numbers.Integral) or count < 1:
                raise InputError(name, "must be at least 1", count)
        if self.num_updates * self.gibbs_steps >= 2**31:  # what 32-bit counters distinguish
            product = f"{self.num_updates:,} x {self.gibbs_steps:,}"
            raise InputError(
                "num_updates", f"times {{gibbs_steps}} must be under 2^31, got {product}"
            )
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError("learning_rate", "must be positive", self.learning_rate)
        for name in ("final_learning_rate", "weight_decay"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(name, "must be zero or positive", value)
        check_seed(self.seed)

    def optimiser(self) -> optax.GradientTransformation:
        """Return the rule above, for the gradient of the negative log-likelihood."""
        rate = self.learning_rate
        if self.final_learning_rate is not None:
            rate = optax.linear_schedule(
                self.learning_rate, self.final_learning_rate, max(self.num_updates - 1, 1)
            )
        descent = optax.sgd(rate)
        if self.weight_decay == 0:
            return descent
        return optax.chain(optax.add_decayed_weights(self.weight_decay, _only_weights), descent)


def _only_weights(parameters: RBM) -> RBM:
    nothing = jax.tree.map(lambda _: False, parameters)
    return eqx.tree_at(lambda model: model.weights, nothing, True)


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
    """Return weights N(0, 0.01^2), hidden bias 0, visible bias and chains at the data's base rate."""
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
    """Return the state after one parameter update."""
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
    """Run one Gibbs sweep; each sweep of an update has a step number of its own."""
    step = bits.step * jnp.uint32(num_sweeps) + sweep.astype(jnp.uint32)
    own = Bits(bits.stream, bits.chains, step)
    h = own.bernoulli(model.hidden_logits(v), draw=2)
    return own.bernoulli(model.visible_logits(h), draw=3)


def _parameters(model: RBM) -> RBM:
    """Return which leaves are trained: all but the record of the data's means."""
    trained = jax.tree.map(lambda _: True, model)
    return eqx.tree_at(lambda m: m.visible_means, trained, False)
