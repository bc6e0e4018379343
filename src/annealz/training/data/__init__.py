"""Data sets to train on."""

from annealz.training.data.array import read_data as read_data
from annealz.training.data.array import read_idx as read_idx
from annealz.training.data.fasta import read_fasta as read_fasta
from annealz.training.data.mnist import load_mnist as load_mnist
from annealz.training.data.source import DataSource as DataSource
from annealz.training.data.source import binarise as binarise
