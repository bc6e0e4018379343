"""Contestant "annealz" on an RBM, from its visible bias.

Up to 1000 steps every one is recorded, the more expensive case: that is what races.
"""

from annealz.bases.bernoulli import BernoulliBase
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from contestants import Annealing

__all__ = ["engine_on", "path_of"]


def path_of(model: RBM) -> GeometricPath:
    """From the model's visible bias to the model."""
    return GeometricPath(BernoulliBase.from_logits(model.visible_bias), model)


def engine_on(model: RBM, num_chains: int) -> Annealing:
    """annealz on one model."""
    return Annealing(path_of(model), BlockGibbs(), num_chains)
