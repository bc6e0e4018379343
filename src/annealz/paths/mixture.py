"""The path from a mixture of products to a model.

Take the model's own path from the flat base, whose states are free at beta = 0: p*_flat,beta(s). The
component k is one more latent variable, of which the target knows nothing (1 / C each). The geometric
path of both together, with l_k(s) = log pi_k + lambda_k.e(s) - A(lambda_k), is

    log p*_beta(s, k) = log p*_flat,beta(s) + (1 - beta) l_k(s) - beta log C
    log p*_beta(s)    = log p*_flat,beta(s) + logsumexp_k [(1 - beta) l_k(s)] - beta log C
    U_beta(s)         = U_flat,beta(s) - sum_k q_k l_k(s) - log C,     q = softmax_k [(1 - beta) l_k(s)]
    log ratio         = that of flat + logsumexp [(1-beta1) l] - logsumexp [(1-beta0) l]
                        - (beta1-beta0) log C

At beta = 0 this is the mixture times what the summed-out layer holds there, so log Z_A is that of the
summed-out layer alone; at beta = 1 it is the model. A difference of two logsumexp keeps its digits as

    (beta0-beta1) m + log1p(sum_k q_k expm1((beta0-beta1) (l_k - m))),       m = max_k l_k

A sweep draws k and the latent layer given the state, then the state given both: the fields of the states
gain (1 - beta) lambda_k. It costs two more products, with C columns and with C rows.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.mixture import MixtureBase, check_units, draw_one_of
from annealz.core.products import BinaryProduct, matmul
from annealz.core.random import Bits
from annealz.core.units import AbstractUnits
from annealz.paths.abstract import AbstractLatentPath, AbstractPath
from annealz.paths.factors import FactorPath
from annealz.paths.layers import AbstractLayerPath
from annealz.paths.pairs import AbstractUnitPath

_SMALL = 0.5  # a step of the terms, up to which log1p keeps more digits than the log of the sum


def mixture_path(base: MixtureBase, flat: AbstractPath, what: str) -> AbstractPath:
    """The path from a mixture to where the path from the flat base leads; `what` names the model."""
    if isinstance(flat, AbstractLayerPath):
        check_units(base, flat.state_units, flat.state_bias.shape[0], what)
        return MixtureLayerPath(base, flat, _Components(base))
    if isinstance(flat, AbstractUnitPath):
        check_units(base, flat.units, flat.start.size, what)
        return MixturePairPath(base, flat, _Components(base))
    raise ValueError(f"{what} cannot start from a mixture: give another base.")


class _Components(eqx.Module):
    """l_k(s) and what follows from it."""

    product: BinaryProduct
    constants: Float[Array, " components"]

    def __init__(self, base: MixtureBase):
        self.product = BinaryProduct(base.logits.T, is_split=False if base.units.is_real else None)
        self.constants = base.constants

    @property
    def log_number(self) -> float:
        return float(np.log(self.constants.shape[0]))

    def terms(self, encoded) -> Float[Array, "chains components"]:
        """l_k(s), (chains, components)."""
        return self.product(encoded) + self.constants

    def log_density(self, encoded, beta):
        terms = (1 - beta) * self.terms(encoded)
        return jax.nn.logsumexp(terms, axis=-1) - beta * self.log_number

    def log_ratio(self, encoded, beta0, beta1):
        terms, step = self.terms(encoded), beta1 - beta0
        largest = terms.max(-1)
        shares = jax.nn.softmax((1 - beta0) * terms, axis=-1)
        change = -step * (terms - largest[..., None])
        small = jnp.log1p((shares * jnp.expm1(change)).sum(-1))
        large = jax.nn.logsumexp(jax.nn.log_softmax((1 - beta0) * terms, axis=-1) + change, axis=-1)
        rest = jnp.where(jnp.abs(change).max(-1) < _SMALL, small, large)
        return rest - step * (largest + self.log_number)

    def slope(self, encoded, beta):
        terms = self.terms(encoded)
        shares = jax.nn.softmax((1 - beta) * terms, axis=-1)
        return -(shares * terms).sum(-1) - self.log_number

    def draw(self, bits: Bits, encoded, beta):
        return draw_one_of(bits, (1 - beta) * self.terms(encoded))


class AbstractMixturePath(AbstractPath):
    """What both kinds share: densities, and how states are kept."""

    base: Any
    flat: Any
    components: _Components

    @property
    def units(self) -> AbstractUnits:
        """The kind of the annealed units."""
        return self.base.units

    @property
    def is_binary(self) -> bool:
        return self.flat.is_binary

    @property
    def num_units(self) -> int:
        return self.base.num_units

    @property
    def sweep_bytes(self) -> int:
        return self.flat.sweep_bytes

    def sample(self, bits: Bits):
        return self.base.sample(bits)

    def pack(self, x):
        return self.flat.pack(x)

    def unpack(self, packed):
        return self.flat.unpack(packed)

    def store(self, x):
        return self.flat.store(x)

    def restore(self, stored):
        return self.flat.restore(stored)

    def log_density(self, x, beta):
        return self.flat.log_density(x, beta) + self.components.log_density(self._encoded(x), beta)

    def log_target(self, x):
        return self.flat.log_target(x)

    def latent_entropy(self, x):
        return self.flat.latent_entropy(x)

    def log_ratio(self, x, beta0, beta1):
        rest = self.components.log_ratio(self._encoded(x), beta0, beta1)
        return self.flat.log_ratio(x, beta0, beta1) + rest

    def slope(self, x, beta):
        return self.flat.slope(x, beta) + self.components.slope(self._encoded(x), beta)

    def _encoded(self, x):
        return self.units.encode(x)


class MixtureLayerPath(AbstractMixturePath, AbstractLatentPath):
    """From a mixture over the states of one layer, another one summed out."""

    @property
    def log_z0(self) -> float:
        latent = np.asarray(self.flat.latent_bias, np.float64)
        return float(self.flat.latent_units.exact_log_z(latent))

    def draw_latent(self, bits: Bits, x, beta):
        """The latent layer, with the component after it."""
        latent = self.flat.draw_latent(bits, x, beta)
        component = self.components.draw(bits, self._encoded(x), beta)
        return jnp.concatenate([latent, component], axis=-1)

    def draw_state(self, bits: Bits, latent, beta):
        number = self.base.num_components
        latent, component = latent[..., :-number], latent[..., -number:]
        fields = self.flat.state_logits(latent, beta)
        fields = fields + (1 - beta) * matmul(component, self.base.logits)
        return self.flat.state_units.sample(bits, fields, 1)


class MixturePairPath(AbstractMixturePath):
    """From a mixture to units coupled in pairs or by factors, all of them annealed."""

    @property
    def log_z0(self) -> float:
        return float(self.flat.constant) if isinstance(self.flat, FactorPath) else 0.0

    def conditioned(self, bits: Bits, x, beta) -> "_Conditioned":
        """The path given a component, drawn for this sweep."""
        component = self.components.draw(bits, self._encoded(x), beta)
        start = matmul(component, self.base.logits).reshape(*x.shape, -1)
        return _Conditioned(self.flat.conditioned(bits, x, beta), start)


@dataclasses.dataclass(frozen=True)
class _Conditioned:
    """Units coupled in pairs, from other logits in every chain."""

    flat: Any
    start: Any  # (chains, units, states)

    @property
    def units(self):
        return self.flat.units

    def site_logits(self, x, sites, beta):
        return self.flat.site_logits(x, sites, beta) + (1 - beta) * self.start[:, sites]
