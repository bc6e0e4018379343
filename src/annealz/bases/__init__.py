"""Tractable distributions to start from: exact samples and exact log Z."""

from annealz.bases.abstract import AbstractBase as AbstractBase
from annealz.bases.bernoulli import BernoulliBase as BernoulliBase
from annealz.bases.categorical import CategoricalBase as CategoricalBase
from annealz.bases.choose import choose_base as choose_base
from annealz.bases.gaussian import GaussianBase as GaussianBase
from annealz.bases.mixture import MixtureBase as MixtureBase
