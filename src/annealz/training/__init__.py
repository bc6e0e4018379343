"""Training of RBMs by contrastive divergence."""

from annealz.models.formats.load import load_series as load_series
from annealz.training.train import train as train
