"""The geometric path of a model of two binary layers, with one of them summed out: that of an RBM.

The algebra is that of `layers.py` with Bernoulli units: e(s) = s, A(z) = sum_l softplus(z_l). Weights come
from either marginal:

    visible   s = v, latent h:  c_A = b_A, c_B = b,  alpha = 0,    a_B = a
    hidden    s = h, latent v:  c_A = 0,   c_B = a,  alpha = b_A,  a_B = b,   W transposed

Either way log Z_A = sum_l softplus(alpha_l) + sum_s softplus(c_A): in this convention each hidden
unit is worth log 2 at beta = 0, and log Z_B is the model's own log Z.

    U_beta(s)  = (c_B - c_A).s + sum_l g_l sigmoid(z_l)
    log ratio  = (beta1-beta0) (c_B - c_A).s + sum_l [softplus(z_l(beta1)) - softplus(z_l(beta0))]

XLA merges the equal products of one step, and a step costs two matrix products (counted in a test).
"""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.mixture import MixtureBase
from annealz.core.arrays import on_device
from annealz.core.devices import platform
from annealz.core.names import MARGINALS
from annealz.core.products import BinaryProduct
from annealz.core.programs import Recent
from annealz.paths.layers import AbstractBinaryLayerPath

if TYPE_CHECKING:
    from annealz.models.rbm import RBM

_to_state = Recent(2)  # products that all paths of a model share


class GeometricPath(AbstractBinaryLayerPath):
    """From a product of Bernoullis to an RBM.

    Parameters
    ----------
    base : distribution of the visible units at beta = 0
    model : the RBM at beta = 1
    marginal : the layer whose states are annealed; the other one is summed out of the weights
    logits : of visible and hidden units at beta = 0; by default those of the base, and zeros
    offset : a constant of log p* at beta = 1, for models that are an RBM plus a constant

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> round(path.log_z0, 4)  # 10 log 2: at beta = 0 the hidden units count too
    6.9315
    """

    to_latent: BinaryProduct
    to_state: BinaryProduct

    def __init__(
        self,
        base: BernoulliBase | MixtureBase,
        model: "RBM",
        marginal: str = "visible",
        *,
        logits: tuple[Float[Array, " visible"], Float[Array, " hidden"]] | None = None,
        offset: float | None = None,
    ):
        if marginal not in MARGINALS:
            raise ValueError(f"marginal must be one of {', '.join(MARGINALS)}, got {marginal!r}.")
        if logits is None:
            if base.num_units != model.num_visible:
                raise ValueError(
                    f"the base has {base.num_units} units and the model {model.num_visible} visible units."
                )
            logits = base.logits, on_device(np.zeros(model.num_hidden))
        weights = np.asarray(model.weights, np.float32)
        state, latent = zip(logits, (model.visible_bias, model.hidden_bias), strict=True)
        if marginal == "hidden":
            state, latent, weights = latent, state, weights.T
        super().__init__(base, state, latent, offset)
        change = np.asarray(self.state_bias_change)
        of = model.weights, marginal, platform()
        self.to_state = _to_state.get(of, lambda: BinaryProduct(weights))
        self.to_latent = self.to_state.transposed(weights, change)

    def pack(self, x):
        return x.astype(self.to_latent.state_dtype)

    def unpack(self, packed):
        return packed.astype(jnp.float32)
