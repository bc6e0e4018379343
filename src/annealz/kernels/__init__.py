"""Transitions that leave p_beta invariant."""

from typing import TYPE_CHECKING

from annealz.core.lazy_imports import later, listed_imports

if TYPE_CHECKING:
    from annealz.kernels.abstract import AbstractKernel as AbstractKernel
    from annealz.kernels.clusters import Clusters as Clusters
    from annealz.kernels.colours import ColourGibbs as ColourGibbs
    from annealz.kernels.gibbs import BlockGibbs as BlockGibbs
    from annealz.kernels.hmc import HAIS as HAIS
    from annealz.kernels.hmc import HMC as HMC
    from annealz.kernels.hmc import MALA as MALA
    from annealz.kernels.hmc import RandomWalk as RandomWalk
    from annealz.kernels.unit_gibbs import GradientGibbs as GradientGibbs
    from annealz.kernels.unit_gibbs import UnitGibbs as UnitGibbs
else:
    __getattr__ = later(__name__, listed_imports(__file__))
