"""Models of a layer of visible units of any kind and hidden ones: their bases, and models of two layers.

log p*(v, h) = b.e(v) + r(v) + a.h + r(h) + h.W e(v) + f         e and r as in `annealz.core.units`

Hidden units are 0 and 1 except in `layered_rbm.py`. Of a layer with few values all states are enumerated.
"""

import abc
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase, smoothed_means, smoothed_rates
from annealz.bases.categorical import CategoricalBase
from annealz.bases.gaussian import GaussianBase
from annealz.core.arrays import indices, on_device, real_array
from annealz.core.random import Stream
from annealz.core.units import AbstractUnits, BernoulliUnits, GaussianUnits, SoftmaxUnits
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.abstract import AbstractUnitModel
from annealz.models.enumeration import MAX_UNITS, Enumeration
from annealz.paths.layers import AbstractLayerPath, LayerPath

_CHEAP = 2**22  # fields that nobody waits for
_TABLE = 2**20  # fields at a time


class AbstractVisibleLayer(AbstractUnitModel):
    """A model with a layer of visible units, and the bases that such a layer has."""

    visible_bias: eqx.AbstractVar[Float[Array, " visible"] | Float[Array, "visible states"]]

    marginals: ClassVar[tuple[str, ...]] = ("visible", "hidden")
    takes_data: ClassVar[bool] = True

    @property
    def units(self) -> AbstractUnits:
        """The kind of the visible units."""
        return BernoulliUnits()

    @property
    def num_visible(self) -> int:
        return self.visible_bias.shape[0]

    def flat_base(self) -> Any:
        """The base that prefers no state: of real units around zero, with the model's scale."""
        units = self.units
        if isinstance(units, SoftmaxUnits):
            return CategoricalBase.uniform(self.num_visible, units.num_states)
        if isinstance(units, GaussianUnits):
            return GaussianBase(on_device(np.zeros(self.num_visible)), units.scale, "zero")
        return BernoulliBase.uniform(self.num_visible)

    def base(self) -> AbstractBase:
        """The visible units as they are where nothing couples them."""
        units = self.units
        if isinstance(units, SoftmaxUnits):
            return CategoricalBase.from_logits(self.visible_bias)
        if isinstance(units, GaussianUnits):
            mean = self.visible_bias * units.scale**2
            return GaussianBase(mean, units.scale, "visible-bias")
        return BernoulliBase.from_logits(np.asarray(self.visible_bias))

    def named_bases(self) -> Mapping[str, Callable[[], AbstractBase]]:
        flat = "zero" if self.units.is_real else "uniform"
        return {flat: self.flat_base, "visible-bias": self.base}

    def check_base(self, base: AbstractBase) -> None:
        super().check_base(base)
        units = self.units
        if not isinstance(base, GaussianBase) or not isinstance(units, GaussianUnits):
            return
        if not np.array_equal(base.scale, units.scale):
            raise ValueError(
                f"a base of {self.name} must have its scale, the standard deviations of the visible "
                "units given the hidden ones, got another: leave base out, or build it with them."
            )

    def rate_base(self, data: Any = None) -> AbstractBase | None:
        """Return the base of rows of data (rows, visible), or of means: of the data, or of the model."""
        given, units = getattr(self, "visible_means", None) if data is None else data, self.units
        if given is None:
            return None
        if isinstance(units, SoftmaxUnits):
            size = self.num_visible, units.num_states
            return CategoricalBase.from_rows_or_frequencies(given, *size)
        array = np.asarray(given, np.float64)
        if array.shape[-1:] != (self.num_visible,):
            raise ValueError(
                f"data for a model of {self.num_visible} visible units must have shape "
                f"(rows, {self.num_visible}) or ({self.num_visible},), got {array.shape}."
            )
        if isinstance(units, GaussianUnits):
            mean = real_array("data", given).reshape(-1, self.num_visible).mean(0)
            return GaussianBase(on_device(mean), units.scale, "base-rate")
        means = smoothed_rates(array) if array.ndim == 1 else smoothed_means(array)
        return BernoulliBase.from_means(means)

    def kernel(self) -> BlockGibbs:
        return BlockGibbs()


class AbstractLayered(AbstractVisibleLayer):
    """A visible and a hidden layer of some kinds of units."""

    weights: Float[Array, "hidden visible"] | Float[Array, "hidden visible states"]
    hidden_bias: Float[Array, " hidden"]
    visible_bias: Float[Array, " visible"] | Float[Array, "visible states"]

    def __init__(self, weights: ArrayLike, hidden_bias: ArrayLike, visible_bias: ArrayLike):
        self.weights = on_device(real_array("weights", weights))
        self.hidden_bias = on_device(real_array("hidden_bias", hidden_bias))
        self.visible_bias = on_device(real_array("visible_bias", visible_bias))

    def __check_init__(self):
        self.check()

    @property
    def of_hidden(self) -> AbstractUnits:
        """The kind of the hidden units."""
        return BernoulliUnits()

    @property
    @abc.abstractmethod
    def natural(self) -> tuple[Any, Any, Any, float]:
        """W (hidden, fields), a (hidden,), b (fields,) and f of the form above."""

    @property
    def num_hidden(self) -> int:
        return self.hidden_bias.shape[0]

    def check(self) -> None:
        wanted = (*self.hidden_bias.shape, *self.visible_bias.shape)
        axes = 3 if isinstance(self.units, SoftmaxUnits) else 2
        if self.weights.shape != wanted or len(wanted) != axes or 0 in wanted:
            what = "(hidden, visible, states)" if axes == 3 else "(hidden, visible)"
            raise ValueError(
                f"weights must be {what}, here of shape {wanted} by the biases, got shape "
                f"{self.weights.shape}."
            )
        for name in ("weights", "hidden_bias", "visible_bias"):
            real_array(name, getattr(self, name))

    def product_path(self, base: Any, marginal: str) -> AbstractLayerPath:
        weights, hidden_bias, visible_bias, constant = self.natural
        is_real = isinstance(base, GaussianBase)
        start = base.mean / base.scale**2 if is_real else base.logits.ravel()
        visible, hidden = (start, visible_bias), (np.zeros(self.num_hidden), hidden_bias)
        units, of_hidden, offset = self.units, self.of_hidden, constant or None
        if marginal == "visible":
            return LayerPath(base, weights, units, of_hidden, visible, hidden, offset)
        return LayerPath(base, weights.T, of_hidden, units, hidden, visible, offset)

    # --- exact answers ---

    @property
    def _num_bits(self) -> float:
        """log2 of the number of states that are enumerated: infinite of real units."""
        if isinstance(self.of_hidden, BernoulliUnits):
            return self.num_hidden
        if isinstance(self.units, SoftmaxUnits):
            return self.num_visible * math.log2(self.units.num_states)
        return math.inf if self.units.is_real else self.num_visible

    def exact_log_z_if_cheap(self) -> float | None:
        is_hidden = isinstance(self.of_hidden, BernoulliUnits)
        others = self.visible_bias.size if is_hidden else self.num_hidden
        is_cheap = self.has_exact_draws and 2**self._num_bits * others <= _CHEAP
        return self.exact_log_z() if is_cheap else None

    def exact_log_z(self) -> float:
        """log Z by enumerating the hidden units, or the visible ones where those are real."""
        return self._enumeration().log_sum() + self.natural[3]

    @property
    def has_exact_draws(self) -> bool:
        return self._num_bits <= MAX_UNITS

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        states = self._enumeration().draw(num_draws, seed)
        if (marginal == "hidden") == isinstance(self.of_hidden, BernoulliUnits):
            return states
        weights, _, other_bias, units, others = self._layers_by_role()
        fields = other_bias + _encode(units, states) @ weights
        bits = Stream(seed, "exact draws").at(0, indices(num_draws))
        return np.asarray(others.sample(bits, on_device(fields), 0))

    def _enumeration(self) -> Enumeration:
        weights, bias, other_bias, units, others = self._layers_by_role()

        def log_weights(states: np.ndarray) -> np.ndarray:
            encoded = _encode(units, states)
            return encoded @ bias + others.exact_log_z(other_bias + encoded @ weights)

        rows = max(1, _TABLE // max(len(other_bias), len(bias)))
        if isinstance(units, SoftmaxUnits):
            return Enumeration(self.num_visible, units.num_states, log_weights, rows)
        return Enumeration(len(bias), 2, log_weights, rows)

    def _layers_by_role(self) -> tuple[Any, Any, Any, AbstractUnits, AbstractUnits]:
        """W from the layer to enumerate to the one to sum out, the biases of both, and their kinds."""
        weights, hidden, visible = (np.asarray(a, np.float64) for a in self.natural[:3])
        if isinstance(self.of_hidden, BernoulliUnits):
            return weights, hidden, visible, self.of_hidden, self.units
        if self.units.is_real:
            raise ValueError(
                f"no way is known to compute log Z of {self.name} exactly: both layers are real."
            )
        return weights.T, visible, hidden, self.units, self.of_hidden


def _encode(units: AbstractUnits, states: np.ndarray) -> np.ndarray:
    """e(s) in float64, of units of few values."""
    if not isinstance(units, SoftmaxUnits):
        return states.astype(np.float64)
    hot = states[..., None] == np.arange(units.num_states)
    return hot.reshape(len(states), -1).astype(np.float64)


class GaussianRBM(AbstractLayered):
    """Real visible units, binary hidden units: the Gaussian-Bernoulli RBM (Hinton 2010).

        log p*(v, h) = -sum_j (v_j - b_j)^2 / (2 s_j^2) + a.h + sum_ij h_i W_ij v_j / s_j

    Given h the visible units are N(b_j + s_j (W^T h)_j, s_j^2); summed out they leave

        log p*(h) = a.h + sum_j [ (W^T h)_j^2 / 2 + (b_j / s_j) (W^T h)_j + log(s_j sqrt(2 pi)) ]

    In the form above its weights are W_ij / s_j, its visible bias b_j / s_j^2, and its constant
    -sum_j b_j^2 / (2 s_j^2). The base has the standard deviations of the model, which are those of the
    visible units given h.

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
    >>> model = annealz.GaussianRBM(np.eye(2, 3), [0.0, -1.0], np.zeros(3), scale=0.5)
    >>> model.name, round(annealz.exact_log_z(model), 4)
    ('gaussian-rbm-2x3', 2.1255)
    """

    scale: Float[Array, " visible"]

    def __init__(
        self,
        weights: ArrayLike,
        hidden_bias: ArrayLike,
        visible_bias: ArrayLike,
        scale: ArrayLike = 1.0,
    ):
        super().__init__(weights, hidden_bias, visible_bias)
        widths = real_array("scale", scale)
        self.scale = on_device(np.broadcast_to(widths, widths.shape or self.visible_bias.shape))

    def check(self) -> None:
        super().check()
        if self.scale.shape != self.visible_bias.shape or not bool((self.scale > 0).all()):
            least = float(self.scale.min(initial=jnp.inf))
            raise ValueError(
                f"scale must be one positive number, or one for each of {self.num_visible} visible units, "
                f"got shape {self.scale.shape} with the least {least:g}."
            )
        real_array("scale", self.scale)

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
        return self.weights / self.scale, self.hidden_bias, bias, offset

    def base(self) -> GaussianBase:
        """Around the visible bias."""
        return GaussianBase(self.visible_bias, self.scale, "visible-bias")


class SoftmaxRBM(AbstractLayered):
    """Visible units of q states, binary hidden units: the Potts-Bernoulli RBM.

        log p*(v, h) = sum_j b[j, v_j] + a.h + sum_ij h_i W[i, j, v_j],   v_j in 0 .. q - 1,  h in {0, 1}^M

        log p*(v) = sum_j b[j, v_j] + sum_i softplus(a_i + sum_j W[i, j, v_j])
        log p*(h) = a.h + sum_j log sum_k exp(b[j, k] + sum_i h_i W[i, j, k])

    Parameters
    ----------
    weights : (hidden, visible, states)
    hidden_bias : (hidden,)
    visible_bias : (visible, states)

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> model = annealz.SoftmaxRBM(np.zeros((3, 4, 5)), np.zeros(3), np.zeros((4, 5)))
    >>> model.name, round(annealz.exact_log_z(model), 4)  # 3 log 2 + 4 log 5
    ('softmax-rbm-3x4x5', 8.5172)
    """

    def __init__(self, weights: ArrayLike, hidden_bias: ArrayLike, visible_bias: ArrayLike):
        super().__init__(weights, hidden_bias, visible_bias)

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
        weights = self.weights.reshape(self.num_hidden, -1)
        return weights, self.hidden_bias, self.visible_bias.ravel(), 0.0
