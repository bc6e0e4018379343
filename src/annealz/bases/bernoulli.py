"""The product of independent Bernoullis: p_A(v) = exp(b_A.v) / prod_j (1 + e^{b_Aj}).

Exact samples, exact log Z = sum_j softplus(b_Aj). Three ways to choose its logits b_A:

    uniform        b_A = 0
    visible bias   b_A = b, the model's own
    base rate      b_A = logit(m), m the visible means of the data (Salakhutdinov & Murray 2008)

Base rates are smoothed so that none is 0 or 1: from n data rows with counts c_j,
m_j = (c_j + s) / (n + 2 s) with s pseudo-counts (default 1, Laplace's rule).
"""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.arrays import on_device
from annealz.core.products import matmul
from annealz.core.random import Bits

ROWS_OF_MEANS = 1000
"""As many rows means stand for that come without them."""


class BernoulliBase(AbstractBase):
    """Independent binary units with these logits.

    Examples
    --------
    >>> import annealz
    >>> base = annealz.BernoulliBase.from_data([[1, 0], [1, 1], [1, 0]])
    >>> base.name, round(float(base.logits[0]), 4)  # log 4: no mean is 0 or 1 after smoothing
    ('base-rate', 1.3863)
    >>> round(annealz.BernoulliBase.uniform(10).log_z, 4)  # 10 log 2
    6.9315
    """

    logits: Float[Array, " units"]
    name: str = eqx.field(static=True)

    @classmethod
    def uniform(cls, num_units: int) -> Self:
        """Every state equally likely."""
        return cls(on_device(np.zeros(num_units)), "uniform")

    @classmethod
    def from_logits(cls, logits: ArrayLike, name: str = "visible-bias") -> Self:
        """Units with these logits, such as a model's visible bias."""
        array = np.asarray(logits, np.float32)
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError(f"base logits must be a finite vector, got shape {array.shape}.")
        return cls(on_device(array), name)

    @classmethod
    def from_means(cls, means: ArrayLike, name: str = "base-rate") -> Self:
        """Units with these means, each strictly between 0 and 1."""
        array = np.asarray(means, np.float64)
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"base means must be a vector, got shape {array.shape}.")
        wrong = ~((array > 0) & (array < 1))
        if wrong.any():
            raise ValueError(
                f"base means must lie strictly between 0 and 1, got {array[wrong][0]:g} at unit "
                f"{int(np.argmax(wrong))} ({int(wrong.sum())} of {array.size}): smooth them, or "
                "give the data themselves."
            )
        return cls(on_device(np.log(array) - np.log1p(-array)), name)

    @classmethod
    def from_data(
        cls, data: ArrayLike, pseudo_counts: float = 1.0, name: str = "base-rate"
    ) -> Self:
        """The smoothed visible means of data (rows, units) with values in [0, 1]."""
        return cls.from_means(smoothed_means(data, pseudo_counts), name)

    @property
    def num_units(self) -> int:
        return self.logits.shape[0]

    @property
    def log_z(self) -> float:
        """sum_j softplus(b_Aj), in float64."""
        return float(np.logaddexp(0, np.asarray(self.logits, np.float64)).sum())

    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains units"]:
        """One exact draw for every chain of `bits`."""
        return bits.bernoulli(
            jnp.broadcast_to(self.logits, (bits.num_chains, self.num_units)), draw
        )

    def log_density(self, x: Float[Array, "*batch units"]) -> Float[Array, "*batch"]:
        """b_A.x"""
        return matmul(x, self.logits)


def smoothed_rates(means: np.ndarray, pseudo_counts: float = 1.0) -> np.ndarray:
    """Means of data without their rows: where any is 0 or 1, all are smoothed as those of so many rows."""
    if not ((means == 0) | (means == 1)).any():
        return means
    return (means * ROWS_OF_MEANS + pseudo_counts) / (ROWS_OF_MEANS + 2 * pseudo_counts)


def smoothed_means(data: ArrayLike, pseudo_counts: float = 1.0) -> np.ndarray:
    """(c_j + s) / (n + 2 s) of data (rows, units) in [0, 1]: strictly between 0 and 1."""
    array = np.asarray(data)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"data must be a (rows, units) matrix, got shape {array.shape}.")
    if not pseudo_counts > 0:
        raise ValueError(f"pseudo_counts must be positive, got {pseudo_counts}.")
    if not (np.min(array) >= 0 and np.max(array) <= 1):
        raise ValueError("data must lie in [0, 1].")
    counts = array.sum(0, dtype=np.float64)
    return (counts + pseudo_counts) / (len(array) + 2 * pseudo_counts)
