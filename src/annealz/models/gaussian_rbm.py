"""The Gaussian-Bernoulli RBM: real visible units, binary hidden ones (Hinton 2010).

    log p*(v, h) = -sum_j (v_j - b_j)^2 / (2 s_j^2) + a.h + sum_ij h_i W_ij v_j / s_j

Given h the visible units are N(b_j + s_j (W^T h)_j, s_j^2); summed out they leave

    log p*(h) = a.h + sum_j [ (W^T h)_j^2 / 2 + (b_j / s_j) (W^T h)_j + log(s_j sqrt(2 pi)) ]

In the form of `layered.py`: weights W_ij / s_j, visible bias b_j / s_j^2, and the constant
-sum_j b_j^2 / (2 s_j^2).
The base has the standard deviations of the model, which are those of the visible units given h.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.gaussian import GaussianBase
from annealz.bases.mixture import MixtureBase
from annealz.core.arrays import on_device
from annealz.core.units import GaussianUnits
from annealz.models.layered import AbstractLayered
from annealz.models.rbm import real_array


class GaussianRBM(AbstractLayered):
    """Real visible units, binary hidden units.

    Parameters
    ----------
    weights : (hidden, visible)
    hidden_bias : (hidden,)
    visible_bias : (visible,), the mean of the visible units where no hidden one is on
    scale : standard deviation of the visible units given the hidden ones, one or (visible,)

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> model = annealz.GaussianRBM(
    ...     np.eye(2, 3), hidden_bias=[0.0, -1.0], visible_bias=np.zeros(3), scale=0.5
    ... )
    >>> model.name, round(annealz.exact_log_z(model), 4)
    ('gaussian-rbm-2x3', 2.1255)
    """

    weights: Float[Array, "hidden visible"]
    hidden_bias: Float[Array, " hidden"]
    visible_bias: Float[Array, " visible"]
    scale: Float[Array, " visible"]

    def __init__(
        self,
        weights: ArrayLike,
        hidden_bias: ArrayLike,
        visible_bias: ArrayLike,
        scale: ArrayLike = 1.0,
    ):
        self.weights = on_device(real_array("weights", weights))
        self.hidden_bias = on_device(real_array("hidden_bias", hidden_bias))
        self.visible_bias = on_device(real_array("visible_bias", visible_bias))
        widths = real_array("scale", scale)
        self.scale = on_device(np.broadcast_to(widths, widths.shape or self.visible_bias.shape))
        self.check()

    def check(self) -> None:
        wanted = (*self.hidden_bias.shape, *self.visible_bias.shape)
        if self.weights.shape != wanted or len(wanted) != 2 or 0 in wanted:
            raise ValueError(
                f"weights must be (hidden, visible), here of shape {wanted} by the biases, got shape "
                f"{self.weights.shape}."
            )
        if self.scale.shape != self.visible_bias.shape or not bool((self.scale > 0).all()):
            least = float(self.scale.min(initial=jnp.inf))
            raise ValueError(
                f"scale must be one positive number, or one for each of {self.num_visible} visible units, "
                f"got shape {self.scale.shape} with the least {least:g}."
            )
        for name in ("weights", "hidden_bias", "visible_bias", "scale"):
            real_array(name, getattr(self, name))

    @property
    def num_visible(self) -> int:
        return self.visible_bias.shape[0]

    @property
    def name(self) -> str:
        return f"gaussian-rbm-{self.num_hidden}x{self.num_visible}"

    @property
    def units(self) -> GaussianUnits:
        return GaussianUnits(self.scale)

    @property
    def natural(self):
        bias = self.visible_bias / self.scale**2
        offset = -float(np.sum(np.float64(self.visible_bias) * np.float64(bias)) / 2)
        return self.weights / self.scale, bias, offset

    def start(self, base: GaussianBase):
        return base.mean / base.scale**2

    @property
    def takes_data(self) -> bool:
        return True

    def flat_base(self):
        """Around zero, with the model's scale: the nearest to flat that real units have."""
        return GaussianBase(jnp.zeros_like(self.visible_bias), self.scale, "zero")

    def named_bases(self):
        return {
            "zero": self.flat_base,
            "visible-bias": lambda: GaussianBase(self.visible_bias, self.scale, "visible-bias"),
        }

    def choose_base(self, base: Any = "auto", data: Any = None):
        """visible-bias (also auto): around the visible bias; base-rate: around the means of the data."""
        own = GaussianBase(self.visible_bias, self.scale, "visible-bias")
        return choose_gaussian(self, own, base, data)


def choose_gaussian(model: Any, own: GaussianBase, base: Any, data: Any) -> Any:
    """A base of real visible units: `own`, around the visible bias, or another of its scale."""
    if isinstance(base, MixtureBase):
        if data is not None:
            raise ValueError(
                "data serve to build a base, and a base is given: leave one of them out."
            )
        return base
    if isinstance(base, GaussianBase):
        if base.dim != own.dim or not np.array_equal(base.scale, own.scale):
            raise ValueError(
                f"a base of {model.name} must have its scale, the standard deviations of the visible "
                f"units given the hidden ones, got another: leave base out, or build it with them."
            )
        return base
    if base not in ("auto", "visible-bias", "base-rate"):
        raise ValueError(
            f"base must be a GaussianBase or one of auto, visible-bias, base-rate, got {base!r}."
        )
    if data is None and base == "base-rate":
        raise ValueError("the base-rate base needs data (rows, visible) or their means: give data.")
    if data is not None and base == "visible-bias":
        raise ValueError(f"data serve the base-rate base only, got base {base!r}.")
    mean, name = np.asarray(own.mean), own.name
    if data is not None:
        rows = real_array("data", data)
        mean, name = rows.reshape(-1, rows.shape[-1]).mean(0), "base-rate"
        if mean.shape != (own.dim,):
            raise ValueError(f"data must have {own.dim} columns, got shape {rows.shape}.")
    return GaussianBase(on_device(mean), own.scale, name)
