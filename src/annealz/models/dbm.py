"""The deep Boltzmann machine: binary layers v = x_0, x_1, … x_L, each coupled to the next one.

    log p*(x) = sum_l b_l.x_l + sum_l x_{l+1}.W_l x_l,     W_l (units of layer l + 1, units of layer l)

Layers of even number are coupled to layers of odd number only, so that a DBM is an RBM whose visible layer
is x_0, x_2, … side by side and whose hidden layer is x_1, x_3, …; pairs of layers that are not neighbours
have weights of zero. One set of layers is annealed and the other one summed out:

    hidden    x_1, x_3, … annealed; the visible layer and x_2, x_4, … are summed out (the default: of two
              hidden layers this leaves the fewest units)
    visible   x_0, x_2, … annealed
"""

from itertools import pairwise
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from annealz.core.arrays import on_device, real_array
from annealz.models.abstract import AbstractEquivalent
from annealz.models.layered import AbstractVisibleLayer
from annealz.models.rbm import RBM, check_means
from annealz.paths.geometric import GeometricPath


class DBM(AbstractEquivalent, AbstractVisibleLayer):
    """A deep Boltzmann machine.

    Parameters
    ----------
    weights : between neighbouring layers, (upper, lower), from the visible layer up
    biases : of every layer, from the visible one up
    visible_means : of the data, where they are known; for the base rate only

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> weights = [np.zeros((5, 6)), np.zeros((3, 5))]  # (upper, lower)
    >>> model = annealz.DBM(weights, biases=[np.zeros(6), np.zeros(5), np.zeros(3)])
    >>> model.name, round(annealz.exact_log_z(model), 4)  # 14 log 2
    ('dbm-6x5x3', 9.7041)
    """

    weights: tuple[Float[Array, "upper lower"], ...]
    biases: tuple[Float[Array, " units"], ...]
    visible_means: Float[Array, " visible"] | None

    marginals: ClassVar[tuple[str, ...]] = ("hidden", "visible")
    sums_out_own: ClassVar[bool] = True

    def __init__(self, weights, biases, visible_means: ArrayLike | None = None):
        self.weights = tuple(on_device(real_array("weights", w)) for w in weights)
        self.biases = tuple(on_device(real_array("biases", b)) for b in biases)
        means = None if visible_means is None else real_array("visible_means", visible_means)
        self.visible_means = None if means is None else on_device(means)
        self.check()

    def check(self) -> None:
        if len(self.biases) != len(self.weights) + 1 or len(self.weights) < 1:
            raise ValueError(
                f"a DBM has one more layer of biases than matrices of weights, got {len(self.biases)} "
                f"and {len(self.weights)}."
            )
        for i, (weights, (lower, upper)) in enumerate(
            zip(self.weights, pairwise(self.biases), strict=True)
        ):
            wanted = (*upper.shape, *lower.shape)
            if weights.shape != wanted or len(wanted) != 2 or 0 in wanted:
                raise ValueError(
                    f"weights {i} must be (upper, lower), here of shape {wanted} by the biases, got "
                    f"{weights.shape}."
                )
            real_array(f"weights {i}", weights)
        for i, bias in enumerate(self.biases):
            real_array(f"biases {i}", bias)
        if self.visible_means is not None and self.visible_means.shape != self.visible_bias.shape:
            raise ValueError(
                f"visible_means must have shape {self.visible_bias.shape}, got "
                f"{self.visible_means.shape}."
            )
        check_means(self.visible_means)

    @property
    def visible_bias(self) -> Float[Array, " visible"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.biases[0]

    @property
    def name(self) -> str:
        return "dbm-" + "x".join(str(len(bias)) for bias in self.biases)

    def as_rbm(self) -> RBM:
        """The RBM of the even layers, side by side, and the odd ones: the same log Z."""
        rows = [
            [self._between(upper, lower) for lower in range(0, len(self.biases), 2)]
            for upper in range(1, len(self.biases), 2)
        ]
        biases = (jnp.concatenate(self.biases[first::2]) for first in (1, 0))
        return RBM(jnp.block(rows), *biases)

    def _between(self, odd: int, even: int):
        if even == odd - 1:
            return self.weights[even]
        if even == odd + 1:
            return self.weights[odd].T
        return jnp.zeros((len(self.biases[odd]), len(self.biases[even])))

    def product_path(self, base: Any, marginal: str):
        self.check_base(base)
        rbm = self.as_rbm()
        upper = jnp.zeros(rbm.num_visible - self.num_visible)
        logits = jnp.concatenate([base.logits, upper]), jnp.zeros(rbm.num_hidden)
        return GeometricPath(base, rbm, marginal, logits=logits)

    def equivalent(self) -> tuple[RBM, float]:
        return self.as_rbm(), 0.0
