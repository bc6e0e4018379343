"""Tractable distributions to start from: exact samples and exact log Z."""

from typing import TYPE_CHECKING

from annealz.core.lazy_imports import later, listed_imports

if TYPE_CHECKING:
    from annealz.bases.abstract import AbstractBase as AbstractBase
    from annealz.bases.bernoulli import BernoulliBase as BernoulliBase
    from annealz.bases.categorical import CategoricalBase as CategoricalBase
    from annealz.bases.gaussian import GaussianBase as GaussianBase
    from annealz.bases.gaussian_mixture import GaussianMixtureBase as GaussianMixtureBase
    from annealz.bases.mixture import MixtureBase as MixtureBase
    from annealz.bases.prior import PriorBase as PriorBase
else:
    __getattr__ = later(__name__, listed_imports(__file__))
