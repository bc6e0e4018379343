"""Model files."""

from annealz.models.formats.load import load_model as load_model
from annealz.models.formats.load import load_trajectory as load_trajectory
from annealz.models.formats.load import model_record as model_record
from annealz.models.formats.npz import save_model as save_model
from annealz.models.formats.npz import save_rbm as save_rbm
