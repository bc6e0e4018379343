"""Data sets to train on."""

from annealz.data.array import read_data as read_data
from annealz.data.binarise import binarise as binarise
from annealz.data.idx import read_idx as read_idx
from annealz.data.mnist import load_mnist as load_mnist
from annealz.data.source import DataSource as DataSource
