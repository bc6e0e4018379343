"""Model files."""

from annealz.formats.npz import load_rbm as load_rbm
from annealz.formats.npz import save_rbm as save_rbm
