"""The geometric path of the Ising model on a square lattice, with one of its two colours summed out.

With units of 0 and 1 for spins down and up (`models/ising.py`) the model is an RBM whose layers are the
colours, and its path that of `geometric.py`. Products with its weights are sums over four neighbours
(`annealz.paths.lattice_product`).
"""

from annealz.core.arrays import on_device
from annealz.paths.lattice_product import LatticeProduct
from annealz.paths.layers import AbstractBinaryLayerPath


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
