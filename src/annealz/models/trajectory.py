"""A path through several RBMs: geometric from each to the next, such as the checkpoints of a training.

RBMs theta_0 … theta_T of equal sizes at knots 0 = k_0 < … < k_T = 1, theta_0 without weights. Between two
of them, on the joint space of both layers, p_beta is the geometric path, whose parameters move linearly:

    theta(beta) = (1 - t) theta_i + t theta_{i+1},     t = (beta - k_i) / (k_{i+1} - k_i)

    log p*_beta(v) = b_beta.v + sum_l softplus(z_l),   z = W_beta v + a_beta
    log ratio      = (b_1 - b_0).v + sum_l [softplus(z_l + d_l) - softplus(z_l)]
    d              = (W_1 - W_0) v + a_1 - a_0

where 0 and 1 are the parameters at two betas. Differences are taken of parameters, of which neighbouring
ones have an exact difference in floating point, and not of fields. A step costs two products more than on
a straight path. Where the training began in a model of small weights, its checkpoints lead gently to modes
that a straight path meets all at once (Béreux, Decelle, Furtlehner, Rosset & Seoane 2025).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase
from annealz.core.arrays import on_device
from annealz.core.numerics import softplus_difference
from annealz.core.products import matmul
from annealz.core.random import Bits
from annealz.models.rbm import RBM
from annealz.paths.abstract import AbstractBipartitePath


class TrajectoryPath(AbstractBipartitePath):
    """From a product of Bernoullis through RBMs to the last of them; visible units are annealed.

    Parameters
    ----------
    base : distribution of the visible units at beta = 0
    models : RBMs of equal sizes, in the order of the path; the last one is the target
    knots : the betas of the models, rising to 1; at equal distances by default

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> stages = [random_rbm(4, 6, scale) for scale in (0.3, 0.6, 1.0)]
    >>> path = annealz.TrajectoryPath(annealz.BernoulliBase.uniform(6), stages)
    >>> path.num_units, round(path.log_z0, 4)  # 6 + 4 units: 10 log 2
    (6, 6.9315)
    """

    base: AbstractBase
    weights: Float[Array, "knots hidden visible"]
    hidden_biases: Float[Array, "knots hidden"]
    visible_biases: Float[Array, "knots visible"]
    knots: Float[Array, " knots"]

    def __init__(self, base: BernoulliBase, models: Sequence[RBM], knots=None):
        if not models:
            raise ValueError("models must be one RBM at least, got none.")
        shapes = {model.weights.shape for model in models}
        if len(shapes) > 1 or next(iter(shapes))[1] != base.num_units:
            raise ValueError(
                f"models must be RBMs of one shape with {base.num_units} visible units like the base, got "
                f"weights of shape {', '.join(map(str, sorted(shapes)))}."
            )
        given = np.arange(1, len(models) + 1) / len(models) if knots is None else np.asarray(knots)
        betas = np.concatenate([[0.0], given])
        if betas.shape != (len(models) + 1,) or betas[-1] != 1 or (np.diff(betas) <= 0).any():
            raise ValueError(
                f"knots must be {len(models)} betas that rise from above 0 to 1, got {np.asarray(given)}."
            )
        last = models[-1]
        first = RBM(np.zeros(last.weights.shape), np.zeros(last.num_hidden), base.logits)
        stages = [first, *models]
        self.base, self.knots = base, on_device(betas)
        self.weights = jnp.stack([model.weights for model in stages])
        self.hidden_biases = jnp.stack([model.hidden_bias for model in stages])
        self.visible_biases = jnp.stack([model.visible_bias for model in stages])

    @property
    def num_units(self) -> int:
        return self.visible_biases.shape[1]

    @property
    def log_z0(self) -> float:
        biases = np.concatenate([self.visible_biases[0], self.hidden_biases[0]]).astype(np.float64)
        return float(np.logaddexp(0, biases).sum())

    def sample(self, bits: Bits) -> Float[Array, "chains units"]:
        shape = (bits.num_chains, self.num_units)
        return bits.bernoulli(jnp.broadcast_to(self.visible_biases[0], shape), draw=0)

    def model_at(self, beta) -> RBM:
        """Return theta(beta)."""
        last = self.knots.shape[0] - 2
        i = jnp.clip(jnp.searchsorted(self.knots, beta, side="right") - 1, 0, last)
        t = (beta - self.knots[i]) / (self.knots[i + 1] - self.knots[i])
        stages = self.weights, self.hidden_biases, self.visible_biases
        return RBM(*((1 - t) * stage[i] + t * stage[i + 1] for stage in stages))

    def log_density(self, x, beta):
        return self.model_at(beta).log_density(x)

    def log_ratio(self, x, beta0, beta1):
        low, high = self.model_at(beta0), self.model_at(beta1)
        step = jax.tree.map(jnp.subtract, high, low)
        fields = softplus_difference(low.hidden_logits(x), step.hidden_logits(x))
        return matmul(x, step.visible_bias) + fields.sum(-1)

    def latent_logits(self, x, beta):
        return self.model_at(beta).hidden_logits(x)

    def state_logits(self, latent, beta):
        return self.model_at(beta).visible_logits(latent)
