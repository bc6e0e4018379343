"""The product of independent units of q states: p_A(x) = prod_i exp(b_A[i, x_i]) / sum_k exp(b_A[i, k]).

States are the numbers 0 .. q - 1, as floats. Exact samples, exact log Z = sum_i log sum_k exp(b_A[i, k]).
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import ROWS_OF_MEANS
from annealz.core.arrays import on_device
from annealz.core.random import Bits
from annealz.core.units import SoftmaxUnits

_SUM_TOLERANCE = 1e-3  # of frequencies as others round them


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

    @classmethod
    def from_frequencies(cls, frequencies: ArrayLike, name: str = "base-rate") -> Self:
        """Units with these frequencies (units, states) of their states.

        Where any is zero all are smoothed as those of so many rows as `BernoulliBase` takes means for.
        """
        array = check_frequencies(frequencies)
        if (array == 0).any():
            array = (array * ROWS_OF_MEANS + 1) / (ROWS_OF_MEANS + array.shape[1])
        return cls(on_device(np.log(array)), name)

    @classmethod
    def from_rows_or_frequencies(cls, data: ArrayLike, num_units: int, num_states: int) -> Self:
        """From data (rows, units) of states, or from the frequencies (units, states) of their states.

        Rows hold whole numbers, and what is neither is refused.
        """
        array = np.asarray(data)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"data must be numbers, got dtype {array.dtype}.")
        if array.ndim == 2 and array.shape == (num_units, num_states):
            is_rows = num_units == num_states and bool((array == np.round(array)).all())
            if not is_rows:
                return cls.from_frequencies(array)
        if array.ndim != 2 or array.shape[1] != num_units:
            raise ValueError(
                f"data for a model of {num_units} units of {num_states} states must be rows of states "
                f"(rows, {num_units}) or frequencies ({num_units}, {num_states}), got shape {array.shape}."
            )
        if array.dtype.kind == "f" and 0 < array.max(initial=0) < 1:
            raise ValueError(
                f"data must be states 0 to {num_states - 1}, got values up to {array.max():g}: a file of "
                "bytes is read as intensities, write states as int32."
            )
        return cls.from_data(array, num_states)

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


def check_frequencies(frequencies: ArrayLike, wanted: tuple[int, int] | None = None) -> np.ndarray:
    """The frequencies (units, states) of the states of each unit, scaled to sum to one exactly."""
    array = np.asarray(frequencies, np.float64)
    if array.ndim != 2 or 0 in array.shape or (wanted is not None and array.shape != wanted):
        shape = "(units, states)" if wanted is None else f"(units, states) = {wanted}"
        raise ValueError(f"frequencies must be {shape}, got shape {array.shape}.")
    sums = array.sum(-1)
    if not ((array >= 0).all() and (np.abs(sums - 1) < _SUM_TOLERANCE).all()):
        worst = int(np.abs(np.nan_to_num(sums, nan=np.inf) - 1).argmax())
        raise ValueError(
            "frequencies must not be negative and sum to one for every unit, got the sum "
            f"{sums[worst]:g} at unit {worst} and the least {array.min():g}."
        )
    return array / sums[:, None]
