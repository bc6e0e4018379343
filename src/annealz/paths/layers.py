"""The algebra of a path between two layers, one of which is summed out.

States s see the latent units l through fields that are linear in e(s), what units of their kind multiply
(`core/units.py`), and parameters that move linearly with beta. On the joint space that is the geometric
path p_A^(1-beta) p_B^beta from layers that are independent at its start. With W (latent, state),

    log p*_beta(s) = c_beta.e(s) + r(s) + A(z) + beta f,    c_beta = (1-beta) c_A + beta c_B
                                                            z      = alpha + beta g(s)
                                                            g(s)   = W e(s) + a_B - alpha
    U_beta(s)  = (c_B - c_A).e(s) + f + g.E[e(l) | z]
    log ratio  = (beta1-beta0) ((c_B - c_A).e(s) + f) + A(z(beta1)) - A(z(beta0))

A and E are those of the latent units, r that of the states' kind, which is the same along the path. f is a
constant of the model, for families whose energy has one. log Z_A = A(alpha) + A'(c_A), A' of the states'
kind.

`to_latent` holds W with c_B - c_A as one more row, so that one product gives W e(s) and (c_B - c_A).e(s),
the increment, the slope and the conditional of the latent layer.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.core.products import BinaryProduct, matmul
from annealz.core.random import Bits
from annealz.core.units import AbstractUnits, BernoulliUnits
from annealz.paths.abstract import AbstractBipartitePath, AbstractLatentPath


class AbstractLayerPath(AbstractLatentPath):
    """A path over the states of one layer, another one summed out.

    Parameters
    ----------
    base : the distribution at beta = 0
    state_units, latent_units : the kinds of units
    state_biases, latent_biases : at the start and at the end of the path
    offset : f, a constant of log p* at the end
    """

    base: Any
    to_latent: Any
    to_state: Any
    state_bias: Float[Array, " state"]
    state_bias_change: Float[Array, " state"]
    latent_bias: Float[Array, " latent"]
    latent_bias_change: Float[Array, " latent"]
    offset: Float[Array, ""] | None
    state_units: AbstractUnits
    latent_units: AbstractUnits

    def __init__(self, base, state_units, latent_units, state_biases, latent_biases, offset=None):
        self.base, self.offset = base, None if offset is None else on_device(offset)
        self.state_units, self.latent_units = state_units, latent_units
        # NumPy: every operation of JAX would be a program to compile
        (state0, state1), (latent0, latent1) = (
            [np.asarray(bias, np.float32) for bias in biases]
            for biases in (state_biases, latent_biases)
        )
        self.state_bias, self.state_bias_change = on_device(state0), on_device(state1 - state0)
        self.latent_bias, self.latent_bias_change = on_device(latent0), on_device(latent1 - latent0)

    @property
    def log_z0(self) -> float:
        state, latent = (np.asarray(a, np.float64) for a in (self.state_bias, self.latent_bias))
        return float(self.state_units.exact_log_z(state) + self.latent_units.exact_log_z(latent))

    def sample(self, bits: Bits) -> Float[Array, "chains units"]:
        fields = jnp.broadcast_to(self.state_bias, (bits.num_chains, self.state_bias.shape[0]))
        return self.state_units.sample(bits, fields, 0)

    def log_density(self, x, beta):
        fields, drive = self._fields(x)
        start = matmul(self.state_units.encode(x), self.state_bias) + self.state_units.reference(x)
        latent = self.latent_units.log_z(self.latent_bias + beta * fields)
        return start + beta * drive + latent

    def log_ratio(self, x, beta0, beta1):
        fields, drive = self._fields(x)
        step = beta1 - beta0
        low = self.latent_bias + beta0 * fields
        return step * drive + self.latent_units.log_z_difference(low, step * fields)

    def slope(self, x, beta):
        fields, drive = self._fields(x)
        return drive + (fields * self.latent_units.mean(self.latent_bias + beta * fields)).sum(-1)

    def latent_logits(self, x, beta):
        """z, the fields of the latent units."""
        return self.latent_bias + beta * self._fields(x)[0]

    def state_logits(self, latent, beta):
        """The fields of the states given the latent units."""
        product = self.to_state(self.latent_units.encode(latent))
        return self.state_bias + beta * (self.state_bias_change + product)

    def latent_entropy(self, x):
        return self.latent_units.entropy(self.latent_logits(x, 1.0))

    def draw_latent(self, bits: Bits, x, beta):
        return self.latent_units.sample(bits, self.latent_logits(x, beta), 0)

    def draw_state(self, bits: Bits, latent, beta):
        return self.state_units.sample(bits, self.state_logits(latent, beta), 1)

    def _fields(self, x):
        """g(s), and the part of U that is linear in the state."""
        product = self.to_latent(self.state_units.encode(x))  # (chains, latent + 1)
        drive = product[..., -1]
        if self.offset is not None:
            drive = drive + self.offset
        return product[..., :-1] + self.latent_bias_change, drive


class LayerPath(AbstractLayerPath):
    """Units of any kinds: from a product measure to a model of two layers.

    Parameters
    ----------
    weights : (latent, state), between what the units multiply
    others : as `AbstractLayerPath` takes them
    """

    def __init__(self, base, weights, *others):
        super().__init__(base, *others)
        weights, change = np.asarray(weights, np.float32), np.asarray(self.state_bias_change)
        rows = np.concatenate([weights, change[None]])
        self.to_latent = BinaryProduct(rows.T, is_split=_is_split(self.state_units))
        self.to_state = BinaryProduct(weights, is_split=_is_split(self.latent_units))


class AbstractBinaryLayerPath(AbstractLayerPath, AbstractBipartitePath):
    """A path over zeros and ones, a layer of zeros and ones summed out."""

    def __init__(self, base, state_biases, latent_biases, offset: float | None):
        units = BernoulliUnits()
        super().__init__(base, units, units, state_biases, latent_biases, offset)

    @property
    def num_units(self) -> int:
        return self.state_bias.shape[0]


def _is_split(units: AbstractUnits) -> bool | None:
    """Split products are exact for zeros and ones only."""
    return False if units.is_real else None
