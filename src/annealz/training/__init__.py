"""Training of RBMs by contrastive divergence."""

from annealz.training.contrastive import train as train
