"""Model files."""

from annealz.formats.load import load_model as load_model
from annealz.formats.load import load_trajectory as load_trajectory
from annealz.formats.npz import load_rbm as load_rbm
from annealz.formats.npz import save_model as save_model
from annealz.formats.npz import save_rbm as save_rbm
