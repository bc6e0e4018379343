"""The restricted Boltzmann machine with binary units.

    E(h, v) = -h.W v - a.h - b.v,     v in {0,1}^D, h in {0,1}^M
    log p*(v) = b.v + sum_i softplus((W v + a)_i)              hidden units summed out
    log p*(h) = a.h + sum_j softplus((W^T h + b)_j)            visible units summed out

Shapes: `weights` W is (hidden, visible), `hidden_bias` a is (hidden,), `visible_bias` b is
(visible,). States carry any leading axes: (..., visible) or (..., hidden).
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Self

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.mixture import MixtureBase, check_units
from annealz.core.arrays import on_device, real_array
from annealz.core.numerics import log_sum
from annealz.core.products import matmul
from annealz.models.contraction import (
    Factors,
    Tables,
    contracted_log_z,
    contracted_log_z_if_cheap,
)
from annealz.models.enumeration import MAX_UNITS
from annealz.models.layered import AbstractVisibleLayer
from annealz.paths.geometric import GeometricPath

_CHEAP = 2**24  # terms of an exact sum that nobody waits for
_SPARSE = 4  # weights per unit
_NAMES = ("weights", "hidden_bias", "visible_bias")


class RBM(AbstractVisibleLayer):
    """A Bernoulli restricted Boltzmann machine.

    Parameters
    ----------
    weights : (hidden, visible)
    hidden_bias : (hidden,)
    visible_bias : (visible,)
    visible_means : (visible,), optional
        Mean of each visible unit over the training data, where it is known. It is not part of
        the distribution: the base rate base is built from it.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> weights = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, 0.5]])
    >>> model = annealz.RBM(weights, hidden_bias=[0.0, -1.0], visible_bias=[0.5, 0.0, 0.0])
    >>> model.name, round(annealz.exact_log_z(model), 4)
    ('rbm-2x3', 4.3819)
    """

    weights: Float[Array, "hidden visible"]
    hidden_bias: Float[Array, " hidden"]
    visible_bias: Float[Array, " visible"]
    visible_means: Float[Array, " visible"] | None

    def __init__(
        self,
        weights: ArrayLike,
        hidden_bias: ArrayLike,
        visible_bias: ArrayLike,
        visible_means: ArrayLike | None = None,
    ):
        self.weights = on_device(weights)
        self.hidden_bias = on_device(hidden_bias)
        self.visible_bias = on_device(visible_bias)
        self.visible_means = None if visible_means is None else on_device(visible_means)
        self._check_shapes()

    @classmethod
    def checked(cls, weights, hidden_bias, visible_bias, visible_means=None) -> Self:
        """The RBM of these arrays; a ValueError names what is wrong with them."""
        arrays = {"weights": weights, "hidden_bias": hidden_bias, "visible_bias": visible_bias}
        if visible_means is not None:
            arrays["visible_means"] = visible_means
        model = cls(**{name: real_array(name, array) for name, array in arrays.items()})
        check_means(model.visible_means)
        return model

    @classmethod
    def from_sklearn(cls, estimator: Any) -> Self:
        """The distribution of a fitted `sklearn.neural_network.BernoulliRBM`."""
        names = ("components_", "intercept_hidden_", "intercept_visible_")
        missing = [name for name in names if not hasattr(estimator, name)]
        if missing:
            raise ValueError(
                f"estimator must be a fitted BernoulliRBM of scikit-learn, got a "
                f"{type(estimator).__name__} without {', '.join(missing)}: fit it first."
            )
        return cls.checked(*(getattr(estimator, name) for name in names))

    @classmethod
    def from_state_dict(
        cls,
        state_dict: Mapping[str, Any],
        keys: Mapping[str, str] | None = None,
        transpose: bool | None = None,
    ) -> Self:
        """The RBM of arrays by name, such as the `state_dict()` of a PyTorch module.

        Parameters
        ----------
        state_dict : arrays or CPU tensors by name
        keys : what "weights", "hidden_bias" and "visible_bias" are called there, and "visible_means", if
            they are known
        transpose : whether the weights are (visible, hidden) there; it can be left out where the biases
            show it
        """
        named = {name: (keys or {}).get(name, name) for name in _NAMES}
        missing = [key for name, key in named.items() if key not in state_dict]
        if missing:
            held = ", ".join(f"{key} {tuple(np.shape(one))}" for key, one in state_dict.items())
            raise ValueError(
                f"state_dict lacks {', '.join(missing)}: say by keys={{...}} what weights, hidden_bias and "
                f"visible_bias are called; it holds {held or 'nothing'}."
            )
        arrays = {name: real_array(name, state_dict[key]) for name, key in named.items()}
        if keys and "visible_means" in keys:
            arrays["visible_means"] = real_array("visible_means", state_dict[keys["visible_means"]])
        turned = arrays["hidden_bias"].shape + arrays["visible_bias"].shape
        shape = arrays["weights"].shape
        if transpose is None:
            if shape == turned[::-1] and len({*turned}) < 2:
                raise ValueError(
                    f"weights of shape {shape} may be (hidden, visible) or (visible, hidden): give "
                    "transpose=False or transpose=True."
                )
            transpose = shape == turned[::-1]
        if transpose:
            arrays["weights"] = arrays["weights"].T
        return cls.checked(**arrays)

    def _check_shapes(self) -> None:
        """Refuse what does not belong together."""
        shape = self.weights.shape
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"weights must be a (hidden, visible) matrix, got shape {shape}.")
        for name, axis in (("hidden_bias", 0), ("visible_bias", 1), ("visible_means", 1)):
            array = getattr(self, name)
            if array is not None and array.shape != (shape[axis],):
                raise ValueError(
                    f"weights of shape {shape} (hidden, visible) need {name} of shape "
                    f"({shape[axis]},), got shape {array.shape}."
                )

    @property
    def num_hidden(self) -> int:
        return self.weights.shape[0]

    def hidden_logits(self, v: Float[Array, "*batch visible"]) -> Float[Array, "*batch hidden"]:
        """logit p(h_i = 1 | v) = (W v + a)_i."""
        return matmul(v, self.weights.T) + self.hidden_bias

    def visible_logits(self, h: Float[Array, "*batch hidden"]) -> Float[Array, "*batch visible"]:
        """logit p(v_j = 1 | h) = (W^T h + b)_j."""
        return matmul(h, self.weights) + self.visible_bias

    def log_density(self, v: Float[Array, "*batch visible"]) -> Float[Array, "*batch"]:
        """log p*(v), hidden units summed out."""
        return matmul(v, self.visible_bias) + jax.nn.softplus(self.hidden_logits(v)).sum(-1)

    def log_density_hidden(self, h: Float[Array, "*batch hidden"]) -> Float[Array, "*batch"]:
        """log p*(h), visible units summed out."""
        return matmul(h, self.hidden_bias) + jax.nn.softplus(self.visible_logits(h)).sum(-1)

    @property
    def name(self) -> str:
        """What to call a model that came without a name."""
        return f"rbm-{self.num_hidden}x{self.num_visible}"

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of shape and parameters: the identity of the distribution."""
        hasher = hashlib.sha256(f"rbm {self.num_hidden} {self.num_visible}".encode())
        for array in (self.weights, self.hidden_bias, self.visible_bias):
            hasher.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
        return hasher.hexdigest()

    # --- how it is annealed ---

    def check(self) -> None:
        type(self).checked(self.weights, self.hidden_bias, self.visible_bias, self.visible_means)

    def product_path(self, base: Any, marginal: str):
        return GeometricPath(base, self, marginal)

    def mixture_path(self, base: MixtureBase, marginal: str):
        if base.num_components > 1:
            return super().mixture_path(base, marginal)
        flat = GeometricPath(self.flat_base(), self, marginal)
        check_units(base, flat.state_units, flat.num_units, self.name)
        zeros = on_device(np.zeros(self.num_visible)), on_device(np.zeros(self.num_hidden))
        is_visible = marginal == "visible"  # a product: the plain path, which is faster
        logits = (base.logits[0], zeros[1]) if is_visible else (zeros[0], base.logits[0])
        return GeometricPath(base, self, marginal, logits=logits)

    # --- exact answers (`exact.py` enumerates a layer of the model) ---

    @property
    def has_exact_draws(self) -> bool:
        """Whether a layer is small enough to enumerate."""
        return min(self.num_hidden, self.num_visible) <= MAX_UNITS

    @property
    def _is_sparse(self) -> bool:
        """Whether so few weights are there that an order of contraction may be cheaper than enumeration."""
        units = self.num_hidden + self.num_visible
        return int(np.count_nonzero(np.asarray(self.weights))) <= _SPARSE * units

    def exact_log_z_if_cheap(self) -> float | None:
        small, other = sorted((self.num_hidden, self.num_visible))
        if self.has_exact_draws and 2**small * other <= _CHEAP:
            return self.exact_log_z()
        return contracted_log_z_if_cheap(self.factors()) if self._is_sparse else None

    def exact_log_z(self, progress: Callable[[float], None] | None = None) -> float:
        """log Z by enumeration of a layer, or by contraction."""
        from annealz.models.exact import log_weights

        if not self.has_exact_draws and self._is_sparse:
            return contracted_log_z(self.factors())
        return log_sum(log_weights(self, progress))

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        from annealz.models.exact import exact_samples

        return exact_samples(self, num_draws, seed)[self.marginals.index(marginal)]

    def factors(self) -> Factors:
        """Visible units first, then hidden ones; weights of 0 couple nothing."""
        weights, hidden_bias, visible_bias = (
            np.asarray(array, np.float64)
            for array in (self.weights, self.hidden_bias, self.visible_bias)
        )
        biases = np.concatenate([visible_bias, hidden_bias])
        held: Tables = [((i,), np.array([0.0, bias])) for i, bias in enumerate(biases.tolist())]
        for hidden, visible in np.argwhere(weights).tolist():
            table = np.array([[0.0, 0.0], [0.0, weights[hidden, visible]]])
            held.append(((visible, self.num_visible + hidden), table))
        return (2,) * biases.size, held


def check_means(means: ArrayLike | None) -> None:
    """Refuse what cannot be means of units of 0 and 1."""
    array = np.zeros(0) if means is None else np.asarray(means)
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        raise ValueError(
            f"visible_means must lie between 0 and 1, got {array[wrong][0]:g} ({int(wrong.sum())} of "
            f"{array.size}): they are means of units of 0 and 1."
        )
