"""Training of RBMs by contrastive divergence."""

from annealz.models.formats.load import load_series as load_series
from annealz.training.contrastive import Settings as Settings
from annealz.training.job import Outcome as Outcome
from annealz.training.job import resume_training as resume_training
from annealz.training.job import train_to_file as train_to_file
from annealz.training.train import TrainingProgress as TrainingProgress
from annealz.training.train import train as train
