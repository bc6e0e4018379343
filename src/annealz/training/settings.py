"""What a training is given, and the rule of its updates.

    theta <- theta + rate_u (grad - weight_decay W),      u = 0 .. num_updates - 1
    rate_u = learning_rate + (final_learning_rate - learning_rate) u / (num_updates - 1)

The L2 weight decay acts on the weights W only, never on the biases; it is the gradient of the penalty
weight_decay |W|^2 / 2, so that it is scaled by the rate. Without `final_learning_rate` the rate is
fixed.
"""

import dataclasses
import math
import numbers
from typing import Annotated, ClassVar

import equinox as eqx
import jax
import optax

from annealz.core.errors import InputError
from annealz.core.names import ALGORITHMS
from annealz.core.random import check_seed
from annealz.io.records import TypedRecord, finite, optional, text, whole
from annealz.models.rbm import RBM
from annealz.training.contrastive import Algorithm

__all__ = ["Settings"]


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
