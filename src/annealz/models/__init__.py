"""Unnormalised distributions."""

from typing import TYPE_CHECKING

from annealz.core.lazy_imports import later, listed_imports

if TYPE_CHECKING:
    from annealz.models.abstract import AbstractModel as AbstractModel
    from annealz.models.binary_quadratic import BinaryQuadratic as BinaryQuadratic
    from annealz.models.binary_quadratic import from_dimod as from_dimod
    from annealz.models.dbm import DBM as DBM
    from annealz.models.discrete_density import DiscreteDensity as DiscreteDensity
    from annealz.models.exact import exact_log_z as exact_log_z
    from annealz.models.exact import exact_marginals as exact_marginals
    from annealz.models.exact import exact_samples as exact_samples
    from annealz.models.factor_graph import FactorGraph as FactorGraph
    from annealz.models.ising import Ising as Ising
    from annealz.models.ising_lattice import CRITICAL_COUPLING as CRITICAL_COUPLING
    from annealz.models.ising_lattice import SquareIsing as SquareIsing
    from annealz.models.ising_lattice import square_ising_log_z as square_ising_log_z
    from annealz.models.layered import GaussianRBM as GaussianRBM
    from annealz.models.layered import SoftmaxRBM as SoftmaxRBM
    from annealz.models.layered_rbm import LayeredRBM as LayeredRBM
    from annealz.models.log_density import LogDensity as LogDensity
    from annealz.models.potts import Potts as Potts
    from annealz.models.rbm import RBM as RBM
else:
    __getattr__ = later(__name__, listed_imports(__file__))
