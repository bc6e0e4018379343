"""A small set of training data, and a fit to it."""

import numpy as np

from annealz.models.rbm import RBM
from annealz.training import train

NUM_HIDDEN, NUM_VISIBLE = 3, 6
# Two kinds of rows with dependent units, as intensities: what independent units cannot express.
DATA = np.array([[0.95, 0.9, 0.9, 0.05, 0.1, 0.1], [0.1, 0.05, 0.1, 0.9, 0.95, 0.8]])


def fit(**options) -> RBM:
    settings = {"num_hidden": NUM_HIDDEN, "num_updates": 1500, "learning_rate": 0.1, "seed": 1}
    return train(DATA, **{**settings, "batch_size": 50, **options})
