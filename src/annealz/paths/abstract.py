"""A path of unnormalised distributions p*_beta, beta from 0 (tractable) to 1 (the target).

Every quantity is per chain: a state `x` has the chain axis first, and what comes back has it too.
"""

import abc
import math
from typing import Self

import equinox as eqx
import jax
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.products import BinaryProduct
from annealz.core.random import Bits


class AbstractPath(eqx.Module):
    """beta -> p*_beta.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = random_rbm(4, 6).path(annealz.BernoulliBase.uniform(6))
    >>> isinstance(path, annealz.AbstractPath), round(path.log_z0, 4)
    (True, 6.9315)
    """

    base: eqx.AbstractVar[AbstractBase]

    @property
    def is_binary(self) -> bool:
        """Whether states are zeros and ones that are stored as bits; then `num_units` says how many."""
        return False

    @property
    def num_units(self) -> int:
        """Of a state."""
        raise ValueError(f"{type(self).__name__} does not know how many units a state has.")

    @property
    @abc.abstractmethod
    def log_z0(self) -> float:
        """log of the normaliser of p*_0, exact."""

    @abc.abstractmethod
    def sample(self, bits: Bits) -> Float[Array, "chains ..."]:
        """Exact draws from p_0, one for every chain of `bits`."""

    @abc.abstractmethod
    def log_density(self, x, beta) -> Float[Array, " chains"]:
        """log p*_beta(x)."""

    @abc.abstractmethod
    def log_ratio(self, x, beta0, beta1) -> Float[Array, " chains"]:
        """log p*_beta1(x) - log p*_beta0(x), never formed as a difference of large numbers."""

    def log_target(self, x) -> Float[Array, " chains"]:
        """log p*_1 of the annealed variables, without what a kernel carries beside them."""
        return self.log_density(x, 1.0)

    def latent_entropy(self, x) -> Float[Array, " chains"]:
        """The entropy at beta = 1 of the variables that were summed out, given the states.

        Zero if there are none; a path that sums variables out must define it for models that count them.
        """
        return jax.numpy.zeros(x.shape[0])

    def unnamed(self) -> Self:
        """The same as programs take it: its base without a name, so that bases of one kind share compiled
        programs, and matrices in the form that is multiplied fastest.
        """

        def is_part(part) -> bool:
            return isinstance(part, AbstractBase | BinaryProduct)

        def taken(part):
            if isinstance(part, BinaryProduct):
                return part.widened()
            return part.unnamed() if isinstance(part, AbstractBase) else part

        return jax.tree.map(taken, self, is_leaf=is_part)

    @property
    def sweep_size(self) -> float:
        """About how many numbers are computed per chain and sweep; many where that is not known."""
        return math.inf

    @property
    def sweep_bytes(self) -> int:
        """About how much memory a sweep takes per chain, beside the states; 0 where that is little."""
        return 0

    @property
    def is_cheap_to_record(self) -> bool:
        """Whether statistics of a state cost little beside a step, and need share nothing with it."""
        return False

    def position(self, x):
        """What a state stands for: the model's own variables, which observers see."""
        return x

    def state(self, bits: Bits, position) -> Float[Array, "chains ..."]:
        """The state that stands for these values of the model's variables, one per chain.

        Of what the model does not know, such as momenta, `bits` give a draw.
        """
        return position

    def pack(self, x):
        """The states as they are carried from step to step: smaller where that loses nothing."""
        return x

    def unpack(self, packed):
        """The states that were packed."""
        return packed

    def store(self, x):
        """The states as they are kept between chunks of steps and on disk: as small as they can be."""
        return x

    def restore(self, stored):
        """The states that were stored."""
        return stored

    def slope(self, x, beta) -> Float[Array, " chains"]:
        """U_beta(x) = d/dbeta log p*_beta(x)."""
        beta = jax.numpy.asarray(beta, jax.numpy.float32)
        one = jax.numpy.ones_like(beta)
        return jax.jvp(lambda b: self.log_density(x, b), (beta,), (one,))[1]


class AbstractLatentPath(AbstractPath):
    """A path over states with a latent layer: each can be drawn given the other."""

    @abc.abstractmethod
    def draw_latent(self, bits: Bits, x, beta) -> Float[Array, "chains latent"]:
        """The latent layer given the states, at beta: draw 0."""

    @abc.abstractmethod
    def draw_state(self, bits: Bits, latent, beta) -> Float[Array, "chains units"]:
        """The states given the latent layer, at beta: draw 1."""


class AbstractBipartitePath(AbstractLatentPath):
    """A path over binary states with a latent layer: each layer is independent given the other.

    Stored states are bits, eight units a byte.
    """

    @property
    def is_binary(self) -> bool:
        return True

    def store(self, x):
        return jax.numpy.packbits(x.astype(jax.numpy.uint8), axis=-1)

    def restore(self, stored):
        bits = jax.numpy.unpackbits(stored, axis=-1, count=self.num_units)
        return bits.astype(jax.numpy.float32)

    @abc.abstractmethod
    def latent_logits(self, x, beta) -> Float[Array, "chains latent"]:
        """logit p_beta(latent unit is 1 | state)."""

    @abc.abstractmethod
    def state_logits(self, latent, beta) -> Float[Array, "chains units"]:
        """logit p_beta(state unit is 1 | latent)."""

    def draw_latent(self, bits: Bits, x, beta):
        return bits.bernoulli(self.latent_logits(x, beta), draw=0)

    def draw_state(self, bits: Bits, latent, beta):
        return bits.bernoulli(self.state_logits(latent, beta), draw=1)
