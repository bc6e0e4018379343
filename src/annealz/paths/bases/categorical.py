"""The product of independent units of q states: p_A(x) = prod_i exp(b_A[i, x_i]) / sum_k exp(b_A[i, k]).

States are the numbers 0 .. q - 1, as floats. Exact samples, exact log Z = sum_i log sum_k exp(b_A[i, k]).
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.core.units import SoftmaxUnits
from annealz.paths.bases.abstract import AbstractBase

__all__ = ["CategoricalBase"]


class CategoricalBase(AbstractBase):
    """Independent units with these logits.

    Examples
    --------
    >>> import annealz
    >>> annealz.CategoricalBase.uniform(num_units=5, num_states=3).num_states
    3
    >>> base = annealz.CategoricalBase.from_data([[0, 2], [1, 2]], num_states=3)
    >>> base.name, base.num_units, round(abs(base.log_z), 3)  # frequencies sum to 1
    ('base-rate', 2, 0.0)
    """

    logits: Float[Array, "units states"]
    name: str = eqx.field(static=True)

    @classmethod
    def uniform(cls, num_units: int, num_states: int) -> Self:
        """Every state equally likely."""
        return cls(on_device(np.zeros((num_units, num_states))), "uniform")

    @classmethod
    def from_logits(cls, logits: ArrayLike, name: str = "visible-bias") -> Self:
        """Units with these logits, such as a model's visible bias."""
        array = np.asarray(logits, np.float32)
        if array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError(
                f"base logits must be a finite (units, states) matrix, got shape {array.shape}."
            )
        return cls(on_device(array), name)

    @classmethod
    def from_data(
        cls, data: ArrayLike, num_states: int, pseudo_counts: float = 1.0, name: str = "base-rate"
    ) -> Self:
        """The smoothed frequencies (c + s) / (n + q s) of the states in data (rows, units)."""
        array = np.asarray(data)
        if array.ndim != 2 or 0 in array.shape or not np.isin(array, np.arange(num_states)).all():
            raise ValueError(
                f"data must be a (rows, units) matrix of states 0 to {num_states - 1}, got shape "
                f"{array.shape} with values from {array.min(initial=0):g} to {array.max(initial=0):g}."
            )
        if not pseudo_counts > 0:
            raise ValueError(f"pseudo_counts must be positive, got {pseudo_counts}.")
        counts = (array[..., None] == np.arange(num_states)).sum(0) + pseudo_counts
        return cls(on_device(np.log(counts / counts.sum(-1, keepdims=True))), name)

    @property
    def num_units(self) -> int:
        return self.logits.shape[0]

    @property
    def num_states(self) -> int:
        return self.logits.shape[1]

    @property
    def units(self) -> SoftmaxUnits:
        return SoftmaxUnits(self.num_states)

    @property
    def log_z(self) -> float:
        return float(self.units.exact_log_z(np.asarray(self.logits, np.float64).ravel()))

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains units"]:
        fields = jnp.broadcast_to(self.logits.ravel(), (bits.num_chains, self.logits.size))
        return self.units.sample(bits, fields, draw)

    def log_density(self, x: Float[Array, "*batch units"]) -> Float[Array, "*batch"]:
        return (self.units.encode(x) * self.logits.ravel()).sum(-1)
