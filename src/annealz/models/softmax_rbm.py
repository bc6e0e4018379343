"""The RBM with softmax (categorical) visible units of q states, also called Potts-Bernoulli RBM.

    log p*(v, h) = sum_j b[j, v_j] + a.h + sum_ij h_i W[i, j, v_j],      v_j in 0 .. q - 1,  h in {0, 1}^M

    log p*(v) = sum_j b[j, v_j] + sum_i softplus(a_i + sum_j W[i, j, v_j])
    log p*(h) = a.h + sum_j log sum_k exp(b[j, k] + sum_i h_i W[i, j, k])

Shapes: `weights` (hidden, visible, states), `visible_bias` (visible, states).
"""

from typing import Any

from jaxtyping import Array, ArrayLike, Float

from annealz.bases.categorical import CategoricalBase
from annealz.core.arrays import on_device
from annealz.core.units import SoftmaxUnits
from annealz.models.layered import AbstractLayered
from annealz.models.rbm import real_array


class SoftmaxRBM(AbstractLayered):
    """Visible units of q states, binary hidden units.

    Parameters
    ----------
    weights : (hidden, visible, states)
    hidden_bias : (hidden,)
    visible_bias : (visible, states)

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> model = annealz.SoftmaxRBM(
    ...     generator.normal(0, 0.5, (3, 4, 5)), np.zeros(3), np.zeros((4, 5))
    ... )
    >>> model.name, round(annealz.exact_log_z(model), 4)
    ('softmax-rbm-3x4x5', 9.2096)
    """

    weights: Float[Array, "hidden visible states"]
    hidden_bias: Float[Array, " hidden"]
    visible_bias: Float[Array, "visible states"]

    def __init__(self, weights: ArrayLike, hidden_bias: ArrayLike, visible_bias: ArrayLike):
        self.weights = on_device(real_array("weights", weights))
        self.hidden_bias = on_device(real_array("hidden_bias", hidden_bias))
        self.visible_bias = on_device(real_array("visible_bias", visible_bias))
        self.check()

    def check(self) -> None:
        wanted = (*self.hidden_bias.shape, *self.visible_bias.shape)
        if self.weights.shape != wanted or len(wanted) != 3 or 0 in wanted:
            raise ValueError(
                f"weights must be (hidden, visible, states), here of shape {wanted} by the biases, got "
                f"shape {self.weights.shape}."
            )
        for name in ("weights", "hidden_bias", "visible_bias"):
            real_array(name, getattr(self, name))

    @property
    def num_visible(self) -> int:
        return self.visible_bias.shape[0]

    @property
    def num_states(self) -> int:
        return self.visible_bias.shape[1]

    @property
    def name(self) -> str:
        return f"softmax-rbm-{self.num_hidden}x{self.num_visible}x{self.num_states}"

    @property
    def units(self) -> SoftmaxUnits:
        return SoftmaxUnits(self.num_states)

    @property
    def natural(self):
        return self.weights.reshape(self.num_hidden, -1), self.visible_bias.ravel(), 0.0

    def start(self, base: CategoricalBase):
        return base.logits.ravel()

    @property
    def takes_data(self) -> bool:
        return True

    def flat_base(self):
        return CategoricalBase.uniform(self.num_visible, self.num_states)

    def named_bases(self):
        return {
            "uniform": self.flat_base,
            "visible-bias": lambda: CategoricalBase.from_logits(self.visible_bias),
        }

    def choose_base(self, base: Any = "auto", data: Any = None):
        """visible-bias (also auto), uniform, or base-rate, from data (rows, visible) of states."""
        from annealz.bases.choose import choose_named

        if data is not None and isinstance(base, str) and base in ("auto", "base-rate"):
            chosen, data = CategoricalBase.from_data(data, self.num_states), None
        elif isinstance(base, str) and base == "base-rate":
            raise ValueError("the base-rate base needs data (rows, visible): give data.")
        else:
            chosen = base
        options = {
            "visible-bias": lambda: CategoricalBase.from_logits(self.visible_bias),
            "uniform": lambda: CategoricalBase.uniform(self.num_visible, self.num_states),
        }
        return choose_named(options, chosen, data, CategoricalBase, self.num_visible)
