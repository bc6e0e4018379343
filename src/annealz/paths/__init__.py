"""Paths from a tractable distribution to the target."""

from annealz.paths.abstract import AbstractBipartitePath as AbstractBipartitePath
from annealz.paths.abstract import AbstractPath as AbstractPath
from annealz.paths.geometric import MARGINALS as MARGINALS
from annealz.paths.geometric import GeometricPath as GeometricPath
from annealz.paths.phase import PhasePath as PhasePath
from annealz.paths.tempered import TemperedPath as TemperedPath
