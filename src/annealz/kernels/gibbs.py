"""Block Gibbs: draw the latent layer given the state, then the state given the latent layer.

Both draws are exact conditionals of the joint p(s, l) at beta, so the marginal p(s) is invariant. On
states, with the latent layer forgotten, the flow

    p(s) T(t | s) = sum_l p(s, l) p(t | l) = sum_l p(s, l) p(t, l) / p(l)

is the same from s to t as from t to s: the kernel is its own reversal.
"""

from jaxtyping import Array, Float

from annealz.core.random import Bits
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractLatentPath


class BlockGibbs(AbstractKernel):
    """One sweep over both layers.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> estimate = annealz.estimate_log_z(random_rbm(4, 6), kernel=annealz.BlockGibbs())
    >>> estimate.status.value
    'ok'
    """

    def step(self, bits: Bits, x, path: AbstractLatentPath, beta) -> Float[Array, "chains ..."]:
        return path.draw_state(bits, path.draw_latent(bits, x, beta), beta)

    def reversed(self) -> "BlockGibbs":
        return self
