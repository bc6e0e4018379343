"""Transitions that leave p_beta invariant."""

from typing import TYPE_CHECKING

from annealz.core.later import later

if TYPE_CHECKING:
    from annealz.kernels.abstract import AbstractKernel as AbstractKernel
    from annealz.kernels.colours import ColourGibbs as ColourGibbs
    from annealz.kernels.gibbs import BlockGibbs as BlockGibbs
    from annealz.kernels.hais import HAIS as HAIS
    from annealz.kernels.hmc import HMC as HMC
    from annealz.kernels.hmc import MALA as MALA
    from annealz.kernels.metropolis import RandomWalk as RandomWalk
    from annealz.kernels.metropolised import Metropolised as Metropolised
else:
    __getattr__ = later(
        __name__,
        {
            "abstract": "AbstractKernel",
            "colours": "ColourGibbs",
            "gibbs": "BlockGibbs",
            "hais": "HAIS",
            "hmc": "HMC MALA",
            "metropolis": "RandomWalk",
            "metropolised": "Metropolised",
        },
    )
