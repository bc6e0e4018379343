"""The geometric path of the Ising model on a square lattice, with one of its two colours summed out.

With units of 0 and 1 for spins down and up (`models/ising.py`) the model is an RBM whose layers are the
colours, and its path that of `geometric.py`. Products with its weights are sums over four neighbours
(`annealz.paths.lattice_product`).
"""

from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.arrays import on_device
from annealz.core.units import BernoulliUnits
from annealz.paths.abstract import AbstractBipartitePath
from annealz.paths.lattice_product import LatticeProduct
from annealz.paths.layers import AbstractLayerPath


class LatticePath(AbstractLayerPath, AbstractBipartitePath):
    """From independent spins to an Ising lattice; the states are the spins of the even colour.

    Parameters
    ----------
    base : independent units, all of them
    biases : of even and of odd sites at beta = 0, and at beta = 1
    weights : between neighbours, along a row and along a column
    offset : a constant of log p* at beta = 1
    """

    base: AbstractBase
    to_latent: LatticeProduct
    to_state: LatticeProduct
    state_bias: Float[Array, " units"]
    state_bias_change: Float[Array, " units"]
    latent_bias: Float[Array, " latent"]
    latent_bias_change: Float[Array, " latent"]
    offset: Float[Array, ""] | None

    def __init__(self, base, sides: tuple[int, int], start, end, weights, offset: float):
        self.base, self.offset = base, on_device(offset)
        self.state_bias, self.state_bias_change = start[0], end[0] - start[0]
        self.latent_bias, self.latent_bias_change = start[1], end[1] - start[1]
        across, down = (on_device(weight) for weight in weights)
        height, width = sides
        drive = self.state_bias_change
        self.to_latent = LatticeProduct(across, down, drive, height, width, from_even=True)
        self.to_state = LatticeProduct(across, down, None, height, width, from_even=False)

    @property
    def num_units(self) -> int:
        return self.state_bias.shape[0]

    @property
    def state_units(self) -> BernoulliUnits:
        return BernoulliUnits()

    @property
    def latent_units(self) -> BernoulliUnits:
        return BernoulliUnits()
