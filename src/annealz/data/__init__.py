"""Data sets to train on."""

from annealz.data.idx import read_idx as read_idx
from annealz.data.mnist import load_mnist as load_mnist
