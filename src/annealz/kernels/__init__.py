"""Transitions that leave p_beta invariant."""

from annealz.kernels.abstract import AbstractKernel as AbstractKernel
from annealz.kernels.gibbs import BlockGibbs as BlockGibbs
