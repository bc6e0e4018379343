"""The geometric path of an RBM, with one layer summed out.

With states s, latent units summed out, W (latent, state) and biases that move linearly,

    log p*_beta(s) = c_beta.s + sum_l softplus(z_l),     c_beta = (1-beta) c_A + beta c_B
                                                         z      = alpha + beta e(s)
                                                         e(s)   = W s + a_B - alpha

this is p_A^(1-beta) p_B^beta on the joint space, at whose start the layers are independent.
Weights come from either marginal:

    visible   s = v, latent h:  c_A = b_A, c_B = b,  alpha = 0,    a_B = a
    hidden    s = h, latent v:  c_A = 0,   c_B = a,  alpha = b_A,  a_B = b,   W transposed

Either way log Z_A = sum_l softplus(alpha_l) + sum_s softplus(c_A): in this convention each hidden
unit is worth log 2 at beta = 0, and log Z_B is the model's own log Z.

    U_beta(s)  = (c_B - c_A).s + sum_l e_l sigmoid(z_l)
    log ratio  = (beta1-beta0) (c_B - c_A).s + sum_l [softplus(z_l(beta1)) - softplus(z_l(beta0))]

`to_latent` holds W with c_B - c_A as one more row, so that one product gives e(s) and (c_B - c_A).s,
the increment, the slope and the conditional of the latent layer: XLA merges the equal products of
one step, and a step costs two matrix products (counted in a test).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase
from annealz.models.rbm import RBM
from annealz.numerics import softplus_difference
from annealz.paths.abstract import AbstractBipartitePath
from annealz.products import BinaryProduct, matmul
from annealz.random import Bits

__all__ = ["MARGINALS", "GeometricPath"]

MARGINALS = ("visible", "hidden")


class GeometricPath(AbstractBipartitePath):
    """From a product of Bernoullis to an RBM.

    Parameters
    ----------
    base : distribution of the visible units at beta = 0
    model : the RBM at beta = 1
    marginal : the layer whose states are annealed; the other one is summed out of the weights
    """

    base: AbstractBase
    to_latent: BinaryProduct
    to_state: BinaryProduct
    state_bias: Float[Array, " units"]
    state_bias_change: Float[Array, " units"]
    latent_bias: Float[Array, " latent"]
    latent_bias_change: Float[Array, " latent"]

    def __init__(self, base: BernoulliBase, model: RBM, marginal: str = "visible"):
        if marginal not in MARGINALS:
            raise ValueError(f"marginal must be one of {', '.join(MARGINALS)}, got {marginal!r}.")
        if base.num_units != model.num_visible:
            raise ValueError(
                f"the base has {base.num_units} units and the model {model.num_visible} visible units."
            )
        self.base = base
        still = jnp.zeros_like(model.hidden_bias)
        if marginal == "visible":
            weights = model.weights
            (state0, state1), (latent0, latent1) = (
                (base.logits, model.visible_bias),
                (still, model.hidden_bias),
            )
        else:
            weights = model.weights.T
            (state0, state1), (latent0, latent1) = (
                (still, model.hidden_bias),
                (base.logits, model.visible_bias),
            )
        self.state_bias, self.state_bias_change = state0, state1 - state0
        self.latent_bias, self.latent_bias_change = latent0, latent1 - latent0
        self.to_latent = BinaryProduct(jnp.concatenate([weights, self.state_bias_change[None]]).T)
        self.to_state = BinaryProduct(weights)

    @property
    def num_units(self) -> int:
        return self.state_bias.shape[0]

    @property
    def log_z0(self) -> float:
        biases = np.concatenate([self.state_bias, self.latent_bias]).astype(np.float64)
        return float(np.logaddexp(0, biases).sum())

    def sample(self, bits: Bits) -> Float[Array, "chains units"]:
        shape = (bits.num_chains, self.num_units)
        return bits.bernoulli(jnp.broadcast_to(self.state_bias, shape), draw=0)

    def pack(self, x):
        return x.astype(self.to_latent.state_dtype)

    def unpack(self, packed):
        return packed.astype(jnp.float32)

    def log_density(self, x, beta):
        fields, drive = self._fields(x)
        logits = self.latent_bias + beta * fields
        return matmul(x, self.state_bias) + beta * drive + jax.nn.softplus(logits).sum(-1)

    def log_ratio(self, x, beta0, beta1):
        fields, drive = self._fields(x)
        step = beta1 - beta0
        low = self.latent_bias + beta0 * fields
        return step * drive + softplus_difference(low, step * fields).sum(-1)

    def slope(self, x, beta):
        fields, drive = self._fields(x)
        return drive + (fields * jax.nn.sigmoid(self.latent_bias + beta * fields)).sum(-1)

    def latent_logits(self, x, beta):
        return self.latent_bias + beta * self._fields(x)[0]

    def state_logits(self, latent, beta):
        return self.state_bias + beta * (self.state_bias_change + self.to_state(latent))

    def _fields(self, x):
        product = self.to_latent(x)  # (chains, latent + 1)
        return product[..., :-1] + self.latent_bias_change, product[..., -1]
