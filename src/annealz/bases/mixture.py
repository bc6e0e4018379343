"""A mixture of products: p_A(x) = sum_k pi_k prod_i p(x_i | k), with exact draws and log Z = 0.

Each component is a product of independent units of one kind (`annealz.core.units`), given by its natural
parameters lambda_k:

    log p_A(x) = logsumexp_k [log pi_k + lambda_k.e(x) - A(lambda_k)] + r(x)

    Bernoulli      lambda = logit of the mean
    categorical    lambda = log of the frequencies
    Gaussian       lambda = mean / s^2, of the model's own s

A target with several modes is far from every single product. A mixture with a component at each mode is
near all of them, so that no chain has to cross between modes on its way (`paths/mixture.py`).
"""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.arrays import on_device
from annealz.core.mixed_units import MixedUnits
from annealz.core.products import matmul
from annealz.core.random import Bits
from annealz.core.units import (
    AbstractStateUnits,
    AbstractUnits,
    BernoulliUnits,
    GaussianUnits,
    SoftmaxUnits,
)

COMPONENT_DRAW = 2**32 - 2  # of the bits of a step: no kernel takes so many draws
_SUM_TOLERANCE = 1e-6


class MixtureBase(AbstractBase):
    """A mixture of products of Bernoullis or of categoricals, over the units that are annealed.

    Of an RBM these are the visible units, or the hidden ones with `marginal="hidden"`.

    Examples
    --------
    >>> import annealz
    >>> means = [[0.1, 0.1, 0.2], [0.9, 0.8, 0.9]]  # two components of three units
    >>> base = annealz.MixtureBase.from_means(means, weights=[0.3, 0.7])
    >>> base.num_components, base.num_units, base.name, base.log_z
    (2, 3, 'mixture', 0.0)
    """

    log_weights: Float[Array, " components"]
    logits: Float[Array, "components fields"]
    units: AbstractUnits
    name: str = eqx.field(static=True, default="mixture")

    @classmethod
    def from_means(
        cls, means: ArrayLike, weights: ArrayLike | None = None, name: str = "mixture"
    ) -> Self:
        """The mixture with these means (components, units) of binary units, or these frequencies
        (components, units, states) of units of several states, and these weights, equal by default.
        """
        array = _numbers(means)
        if array is None or array.ndim not in (2, 3) or 0 in array.shape:
            got = "rows of unequal size" if array is None else f"shape {array.shape}"
            raise ValueError(
                "the means of a mixture must be numbers (components, units), or (components, units, "
                f"states), got {got}: components must all have the same size."
            )
        wrong = ~((array > 0) & (array < 1))
        if wrong.any():
            raise ValueError(
                f"the means of a mixture must lie strictly between 0 and 1, got {array[wrong][0]:g} in "
                f"component {int(np.argwhere(wrong)[0][0])} ({int(wrong.sum())} of {array.size}): move "
                "them inwards, to 0.01 and 0.99 say."
            )
        if array.ndim == 2:
            logits, units = np.log(array) - np.log1p(-array), BernoulliUnits()
        else:
            sums = array.sum(-1)
            if not np.allclose(sums, 1, atol=_SUM_TOLERANCE):
                raise ValueError(
                    "the frequencies of every unit of a mixture must sum to one, got "
                    f"{sums.flat[np.abs(sums - 1).argmax()]:g}."
                )
            logits = np.log(array).reshape(array.shape[0], -1)
            units = SoftmaxUnits(array.shape[2])
        return cls.of_units(units, logits, weights, name)

    @classmethod
    def of_units(
        cls,
        units: AbstractUnits,
        logits: ArrayLike,
        weights: ArrayLike | None = None,
        name: str = "mixture",
    ) -> Self:
        """The mixture of products of such units with these natural parameters (components, fields)."""
        array = _numbers(logits)
        if array is None or array.ndim != 2 or not np.isfinite(array).all():
            got = "rows of unequal size" if array is None else f"shape {array.shape}"
            raise ValueError(f"the parameters of a mixture must be a finite matrix, got {got}.")
        count = array.shape[0]
        shares = np.full(count, 1 / count) if weights is None else _numbers(weights)
        if shares is None or shares.shape != (count,):
            got = "something else" if shares is None else f"shape {shares.shape}"
            raise ValueError(f"a mixture of {count} components needs {count} weights, got {got}.")
        if not ((shares > 0).all() and abs(shares.sum() - 1) < _SUM_TOLERANCE):
            raise ValueError(
                "the weights of a mixture must be positive and sum to one, got the least "
                f"{shares.min():g} and the sum {shares.sum():g}: divide them by their sum."
            )
        log_shares = np.log(shares / shares.sum())
        return cls(on_device(log_shares), on_device(array), units, name)

    @property
    def num_components(self) -> int:
        return self.logits.shape[0]

    @property
    def num_units(self) -> int:
        fields = self.logits.shape[1]
        if isinstance(self.units, AbstractStateUnits):
            return fields // self.units.num_states
        return fields

    @property
    def log_z(self) -> float:
        """0: the mixture is normalised."""
        return 0.0

    @property
    def means(self) -> np.ndarray:
        """(components, units), or the frequencies (components, units, states); of Gaussians the means."""
        values = np.asarray(self.units.mean(self.logits), np.float64)
        if isinstance(self.units, AbstractStateUnits):
            return values.reshape(self.num_components, self.num_units, -1)
        return values

    @property
    def weights(self) -> np.ndarray:
        """(components,), summing to one."""
        return np.exp(np.asarray(self.log_weights, np.float64))

    @property
    def constants(self) -> Float[Array, " components"]:
        """log pi_k - A(lambda_k), from float64."""
        free = self.units.exact_log_z(np.asarray(self.logits, np.float64))
        return on_device(np.asarray(self.log_weights, np.float64) - free)

    def draw_components(self, bits: Bits) -> Any:
        """One of the components for every chain, as rows of zeros and a one."""
        logits = jnp.broadcast_to(self.log_weights, (bits.num_chains, self.num_components))
        return draw_one_of(bits, logits)

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains units"]:
        fields = matmul(self.draw_components(bits), self.logits)
        return self.units.sample(bits, fields, draw)

    def log_density(self, x: Float[Array, "*batch units"]) -> Float[Array, "*batch"]:
        terms = matmul(self.units.encode(x), self.logits.T) + self.constants
        return jax.nn.logsumexp(terms, axis=-1) + self.units.reference(x)


def _numbers(values: ArrayLike) -> np.ndarray | None:
    """As float64; None where they make no array of numbers."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return None


def draw_one_of(bits: Bits, logits: Float[Array, "chains options"]) -> Float[Array, "..."]:
    """One option for every chain, with these logits: a row of zeros and a one."""
    number = logits.shape[-1]
    units = SoftmaxUnits(number)
    return units.encode(units.sample(bits, logits, COMPONENT_DRAW))


def check_units(base: MixtureBase, units: AbstractUnits, num_fields: int, what: str) -> None:
    """Refuse a mixture over other units than those that are annealed."""
    if base.logits.shape[1] == num_fields and bool(eqx.tree_equal(base.units, units)):
        return
    states = units.num_states if isinstance(units, AbstractStateUnits) else 1
    own = base.units.num_states if isinstance(base.units, AbstractStateUnits) else 1
    wanted = f" of {states} states" if states > 1 else ""
    if isinstance(units, GaussianUnits | MixedUnits):
        wanted = f" of the model's {'scale' if units.is_real else 'own states'}"
    kind = type(base.units).__name__.removesuffix("Units")
    given = f" of {own} states" if own > 1 else ""
    raise ValueError(
        f"a mixture base of {what} must be over the {num_fields // states} units{wanted} that are "
        f"annealed, got one over {base.num_units} {kind} units{given}."
    )
