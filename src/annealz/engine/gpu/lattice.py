"""Steps of the Ising model on a square lattice, one colour summed out (`paths/lattice.py`).

    fields of the odd sites, their draw, and their part of log w and of the slope
    fields of the even sites, and their draw

Sites of a colour are distributed over the threads of a block, row by row; neighbours are found by their
numbers (`paths/lattice_product.py`).
"""

from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from annealz.core.arrays import on_device
from annealz.engine.gpu.chain_steps import ChainSteps, Launch, num_threads
from annealz.kernels.gibbs import BlockGibbs
from annealz.paths.lattice import LatticePath


class LatticeSteps(ChainSteps):
    """Both colours of a lattice."""

    name: ClassVar[str] = "lattice"

    scalars: Float[Array, " 4"]
    """Weights along rows and columns, the constant, and more than any field can be."""
    latent_bias: Float[Array, " sites"]
    latent_change: Float[Array, " sites"]
    state_bias: Float[Array, " sites"]
    state_change: Float[Array, " sites"]
    sides: tuple[int, int] = eqx.field(static=True)

    @classmethod
    def of(cls, path, kernel):
        if type(path) is not LatticePath or type(kernel) is not BlockGibbs:
            return None
        product = path.to_latent
        weights = [float(product.horizontal), float(product.vertical)]
        offset = 0.0 if path.offset is None else float(path.offset)
        largest = float(np.abs(path.latent_bias_change).max()) + 2 * float(np.abs(weights).sum())
        return cls(
            on_device([*weights, offset, largest]),
            path.latent_bias,
            path.latent_bias_change,
            path.state_bias,
            path.state_bias_change,
            (product.height, product.width),
        )

    @property
    def arrays(self):
        of_latent = self.latent_bias, self.latent_change
        return self.scalars, *of_latent, self.state_bias, self.state_change

    @property
    def launch(self):
        height, width = self.sides
        sites = height * width // 2
        constants = {"SITES": sites, "HALF": width // 2, "HEIGHT": height}
        return Launch(constants, 2, num_threads(sites), 2 * sites)
