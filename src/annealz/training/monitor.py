"""How well an RBM fits a fixed sample of the data, cheaply: what to look at while it trains.

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

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from annealz.core.arrays import on_device
from annealz.core.random import derive_seed
from annealz.models.rbm import RBM
from annealz.training.data.source import binarise

_ROWS, _UNITS = 512, 8


class Fitness(NamedTuple):
    """What a monitor sees in a model."""

    reconstruction_error: float
    pseudo_log_likelihood: float


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
    """Mean squared difference, a unit, between v and its mean-field reconstruction."""
    back = jax.nn.sigmoid(model.visible_logits(jax.nn.sigmoid(model.hidden_logits(v))))
    return ((v - back) ** 2).mean()


def pseudo_log_likelihood(
    model: RBM, v: Float[Array, "rows visible"], units: Integer[Array, "rows units"]
) -> Float[Array, ""]:
    """D times the mean of log p(v_j | v_-j) over the rows and their units j, in nats."""
    turn = 1 - 2 * jnp.take_along_axis(v, units, axis=1)  # (rows, units): v'_j - v_j
    logits = model.hidden_logits(v)[:, None, :]  # (rows, 1, hidden)
    turned = logits + turn[:, :, None] * model.weights.T[units]  # (rows, units, hidden)
    gain = turn * model.visible_bias[units]
    gain += (jax.nn.softplus(turned) - jax.nn.softplus(logits)).sum(-1)
    return v.shape[1] * jax.nn.log_sigmoid(-gain).mean()


@eqx.filter_jit
def _look(model: RBM, v, units):
    return reconstruction_error(model, v), pseudo_log_likelihood(model, v, units)
