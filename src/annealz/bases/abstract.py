"""A tractable distribution to start from: exact draws, and log Z exact in float64.

p_A(x) = exp(log_density(x) - log_z)
"""

import abc
import dataclasses
import hashlib
from typing import TYPE_CHECKING, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.core.random import Bits


class AbstractBase(eqx.Module):
    """What a path is at beta = 0.

    Examples
    --------
    >>> import annealz
    >>> base = annealz.BernoulliBase.uniform(6)
    >>> isinstance(base, annealz.AbstractBase), base.name, round(base.log_z, 4)
    (True, 'uniform', 4.1589)
    """

    if not TYPE_CHECKING:  # where a field of a parent would come first in every __init__
        name: eqx.AbstractVar[str]  # how results call it

    @property
    @abc.abstractmethod
    def log_z(self) -> float:
        """log of the normaliser of `log_density`."""

    @abc.abstractmethod
    def sample(self, bits: Bits, draw: int = 0) -> Float[Array, "chains ..."]:
        """One exact draw for every chain of `bits`."""

    @abc.abstractmethod
    def log_density(self, x) -> Float[Array, " chains"]:
        """log p*_A(x), unnormalised."""

    def unnamed(self) -> Self:
        """Return the same without a name: programs are compiled again for another one, not for arrays."""
        other = object.__new__(type(self))
        for field in dataclasses.fields(self):
            value = "" if field.name == "name" else getattr(self, field.name)
            object.__setattr__(other, field.name, value)
        return other

    def with_offset(self, offset: float | None) -> Self:
        """Return the same with what a path subtracts from the log density that it leads to.

        A base without a field `offset` carries none (`paths/tempered.py`).
        """
        if offset is None or not hasattr(self, "offset"):
            return self
        return dataclasses.replace(self, offset=on_device(np.float32(offset)))

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of its arrays."""
        leaves = jax.tree.leaves(self)
        return hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()
