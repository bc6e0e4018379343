"""Tractable distributions to start from: exact samples and exact log Z."""

from typing import TYPE_CHECKING

from annealz.core.later import later

if TYPE_CHECKING:
    from annealz.paths.bases.abstract import AbstractBase as AbstractBase
    from annealz.paths.bases.bernoulli import BernoulliBase as BernoulliBase
    from annealz.paths.bases.categorical import CategoricalBase as CategoricalBase
    from annealz.paths.bases.choose import choose_base as choose_base
    from annealz.paths.bases.gaussian import GaussianBase as GaussianBase
    from annealz.paths.bases.gaussian_mixture import GaussianMixtureBase as GaussianMixtureBase
    from annealz.paths.bases.mixture import MixtureBase as MixtureBase
    from annealz.paths.bases.prior import PriorBase as PriorBase
else:
    __getattr__ = later(
        __name__,
        {
            "abstract": "AbstractBase",
            "bernoulli": "BernoulliBase",
            "categorical": "CategoricalBase",
            "choose": "choose_base",
            "gaussian": "GaussianBase",
            "gaussian_mixture": "GaussianMixtureBase",
            "mixture": "MixtureBase",
            "prior": "PriorBase",
        },
    )
