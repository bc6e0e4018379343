"""Unnormalised distributions."""

from annealz.models.abstract import AbstractModel as AbstractModel
from annealz.models.exact import exact_log_z as exact_log_z
from annealz.models.exact import exact_marginals as exact_marginals
from annealz.models.exact import exact_samples as exact_samples
from annealz.models.from_numpyro import from_numpyro as from_numpyro
from annealz.models.log_density import LogDensity as LogDensity
from annealz.models.rbm import RBM as RBM
