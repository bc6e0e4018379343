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
from typing import Any

import equinox as eqx
import jax
import optax

from annealz.core.errors import InputError
from annealz.core.names import ALGORITHMS
from annealz.core.random import check_seed
from annealz.models.rbm import RBM
from annealz.training.contrastive import Algorithm

__all__ = ["Settings"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that decides a training, besides the data."""

    num_hidden: int
    algorithm: Algorithm = "pcd"
    gibbs_steps: int = 1
    num_updates: int = 250_000
    learning_rate: float = 0.01
    final_learning_rate: float | None = None
    weight_decay: float = 0.0
    batch_size: int = 100
    seed: int = 0

    def __post_init__(self):
        if self.algorithm not in ALGORITHMS:
            raise InputError("algorithm", "must be cd or pcd", self.algorithm)
        for name in ("gibbs_steps", "num_updates", "num_hidden", "batch_size"):
            count = getattr(self, name)
            if not isinstance(count, numbers.Integral) or count < 1:
                raise InputError(name, "must be at least 1", count)
        if self.num_updates * self.gibbs_steps >= 2**31:  # what 32-bit counters distinguish
            raise InputError(
                "",
                "{num_updates} x {gibbs_steps} must be under 2^31, got "
                f"{self.num_updates:,} x {self.gibbs_steps:,}",
            )
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError("learning_rate", "must be positive", self.learning_rate)
        for name in ("final_learning_rate", "weight_decay"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(name, "must be zero or positive", value)
        check_seed(self.seed)

    def optimiser(self) -> optax.GradientTransformation:
        """The rule above, for the gradient of the negative log-likelihood."""
        rate = self.learning_rate
        if self.final_learning_rate is not None:
            rate = optax.linear_schedule(
                self.learning_rate, self.final_learning_rate, max(self.num_updates - 1, 1)
            )
        descent = optax.sgd(rate)
        if self.weight_decay == 0:
            return descent
        return optax.chain(optax.add_decayed_weights(self.weight_decay, _only_weights), descent)

    def to_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return dataclasses.asdict(self)


def _only_weights(parameters: RBM) -> RBM:
    nothing = jax.tree.map(lambda _: False, parameters)
    return eqx.tree_at(lambda model: model.weights, nothing, True)
