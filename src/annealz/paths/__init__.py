"""Paths from a tractable distribution to the target."""

from typing import TYPE_CHECKING

from annealz.core.lazy_imports import later, listed_imports

if TYPE_CHECKING:
    from annealz.paths.abstract import AbstractBipartitePath as AbstractBipartitePath
    from annealz.paths.abstract import AbstractLatentPath as AbstractLatentPath
    from annealz.paths.abstract import AbstractPath as AbstractPath
    from annealz.paths.discrete import DiscretePath as DiscretePath
    from annealz.paths.geometric import GeometricPath as GeometricPath
    from annealz.paths.lattice import LatticePath as LatticePath
    from annealz.paths.layers import AbstractLayerPath as AbstractLayerPath
    from annealz.paths.layers import LayerPath as LayerPath
    from annealz.paths.pairs import PairPath as PairPath
    from annealz.paths.pairs import PairTablePath as PairTablePath
    from annealz.paths.tempered import PhasePath as PhasePath
    from annealz.paths.tempered import TemperedPath as TemperedPath
else:
    __getattr__ = later(__name__, listed_imports(__file__))
