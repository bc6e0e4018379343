"""The geometric path of the Ising model on a square lattice, with one of its two colours summed out.

With units of 0 and 1 for spins down and up (`models/ising.py`) the model is an RBM whose layers are the
colours, and its path that of `geometric.py`. Products with its weights are sums over the four neighbours of
a site, by shifts of the two halves.

A periodic lattice of even sides has two colours, like a checkerboard, and neighbours of a site have the
other colour. Row i holds width / 2 sites of each: of the even colour the columns 2c + (i mod 2), of the odd
colour the others. Sites of a row are neighbours of those at the same place c in the rows above and below,
and in their own row of those at c and at c + 1 or c - 1:

    sum at odd sites of row i      even half: c and c + 1 where i is even, c - 1 and c where it is odd
    sum at even sites of row i     odd half:  c - 1 and c where i is even, c and c + 1 where it is odd

That costs a few additions a site, where a product with the matrix of couplings costs as many as there are
sites.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.paths.layers import AbstractBinaryLayerPath


class LatticeProduct(eqx.Module):
    """x -> x M for states x (chains, sites of one colour), M the couplings to the other colour.

    Parameters
    ----------
    horizontal, vertical : the coupling along a row and along a column
    height, width : even sides of the lattice
    from_even : whether x are the sites of the even colour
    drive : (sites,), one more column of M, if any
    """

    horizontal: Float[Array, ""]
    vertical: Float[Array, ""]
    drive: Float[Array, " sites"] | None
    height: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    from_even: bool = eqx.field(static=True)

    def __call__(self, x: Float[Array, "chains sites"]) -> Float[Array, "chains outputs"]:
        half = _settled(x.reshape(-1, self.height, self.width // 2))
        around = _settled(jnp.pad(half, ((0, 0), (1, 1), (1, 1)), mode="wrap"))
        columns = around[:, :-2, 1:-1] + around[:, 2:, 1:-1]
        is_right = (jnp.arange(self.height)[:, None] % 2 == 0) == self.from_even
        rows = half + jnp.where(is_right, around[:, 1:-1, 2:], around[:, 1:-1, :-2])
        sums = (self.horizontal * rows + self.vertical * columns).reshape(x.shape[0], -1)
        if self.drive is None:
            return sums
        return jnp.concatenate([sums, (x * self.drive).sum(-1, keepdims=True)], -1)


def _settled(x):
    """The same, computed before it is used: else XLA draws every spin again for each neighbour."""
    return jax.lax.optimization_barrier(x)


class LatticePath(AbstractBinaryLayerPath):
    """From independent spins to an Ising lattice; the states are the spins of the even colour.

    Parameters
    ----------
    base : independent units, all of them
    state_biases, latent_biases : of even and of odd sites, at beta = 0 and at beta = 1
    weights : between neighbours, along a row and along a column
    offset : a constant of log p* at beta = 1
    """

    to_latent: LatticeProduct
    to_state: LatticeProduct

    def __init__(
        self, base, sides: tuple[int, int], state_biases, latent_biases, weights, offset: float
    ):
        super().__init__(base, state_biases, latent_biases, offset)
        across, down = (on_device(weight) for weight in weights)
        height, width = sides
        drive = self.state_bias_change
        self.to_latent = LatticeProduct(across, down, drive, height, width, from_even=True)
        self.to_state = LatticeProduct(across, down, None, height, width, from_even=False)


def colour_sites(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the even and of the odd sites, row by row, in the order of the halves."""
    rows, columns = np.divmod(np.arange(height * width), width)
    is_even = (rows + columns) % 2 == 0
    return np.flatnonzero(is_even), np.flatnonzero(~is_even)
