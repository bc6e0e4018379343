"""annealz: log partition functions by annealed importance sampling.

A name is imported when it is first asked for, so that `annealz --help` does not wait for JAX.
"""

import sys
from typing import TYPE_CHECKING, Any

from annealz.core.lazy_imports import later, listed_imports

if TYPE_CHECKING:
    from annealz.api import estimate_log_z as estimate_log_z
    from annealz.api import resume as resume
    from annealz.bases import AbstractBase as AbstractBase
    from annealz.bases import BernoulliBase as BernoulliBase
    from annealz.bases import CategoricalBase as CategoricalBase
    from annealz.bases import GaussianBase as GaussianBase
    from annealz.bases import GaussianMixtureBase as GaussianMixtureBase
    from annealz.bases import MixtureBase as MixtureBase
    from annealz.bases import PriorBase as PriorBase
    from annealz.core.rectified_units import DReLUUnits as DReLUUnits
    from annealz.core.rectified_units import ReLUUnits as ReLUUnits
    from annealz.core.units import GaussianUnits as GaussianUnits
    from annealz.diagnostics.along import log_z_along as log_z_along
    from annealz.diagnostics.diagnostics import judge_islands as judge_islands
    from annealz.diagnostics.status import Status as Status
    from annealz.diagnostics.two_sided import TwoSided as TwoSided
    from annealz.diagnostics.two_sided import judge_two_sided as judge_two_sided
    from annealz.engine.anneal import anneal as anneal
    from annealz.engine.cluster import LostCluster as LostCluster
    from annealz.engine.observers import AbstractObserver as AbstractObserver
    from annealz.engine.observers import Expectation as Expectation
    from annealz.engine.observers import Slope as Slope
    from annealz.engine.progress import Progress as Progress
    from annealz.engine.run import Run as Run
    from annealz.io.formats import FileFormat as FileFormat
    from annealz.io.schedules import ScheduleRule as ScheduleRule
    from annealz.kernels import HAIS as HAIS
    from annealz.kernels import HMC as HMC
    from annealz.kernels import MALA as MALA
    from annealz.kernels import AbstractKernel as AbstractKernel
    from annealz.kernels import BlockGibbs as BlockGibbs
    from annealz.kernels import Clusters as Clusters
    from annealz.kernels import ColourGibbs as ColourGibbs
    from annealz.kernels import GradientGibbs as GradientGibbs
    from annealz.kernels import RandomWalk as RandomWalk
    from annealz.kernels import UnitGibbs as UnitGibbs
    from annealz.methods.annealing.estimate import Estimate as Estimate
    from annealz.methods.exchange.estimate import ExchangeEstimate as ExchangeEstimate
    from annealz.methods.exchange.exchange import exchange as exchange
    from annealz.methods.exchange.result import Exchange as Exchange
    from annealz.methods.method import AbstractMethod as AbstractMethod
    from annealz.methods.nested.estimate import NestedEstimate as NestedEstimate
    from annealz.methods.posterior import Mean as Mean
    from annealz.methods.posterior import Posterior as Posterior
    from annealz.models import DBM as DBM
    from annealz.models import RBM as RBM
    from annealz.models import AbstractModel as AbstractModel
    from annealz.models import BinaryQuadratic as BinaryQuadratic
    from annealz.models import DiscreteDensity as DiscreteDensity
    from annealz.models import FactorGraph as FactorGraph
    from annealz.models import GaussianRBM as GaussianRBM
    from annealz.models import Ising as Ising
    from annealz.models import LayeredRBM as LayeredRBM
    from annealz.models import LogDensity as LogDensity
    from annealz.models import Potts as Potts
    from annealz.models import SoftmaxRBM as SoftmaxRBM
    from annealz.models import SquareIsing as SquareIsing
    from annealz.models import exact_log_z as exact_log_z
    from annealz.models import exact_marginals as exact_marginals
    from annealz.models import exact_samples as exact_samples
    from annealz.models import from_dimod as from_dimod
    from annealz.models import square_ising_log_z as square_ising_log_z
    from annealz.models.formats import load_model as load_model
    from annealz.models.formats import load_trajectory as load_trajectory
    from annealz.models.formats import model_record as model_record
    from annealz.models.formats import save_model as save_model
    from annealz.models.formats import save_rbm as save_rbm
    from annealz.models.from_numpyro import from_numpyro as from_numpyro
    from annealz.models.from_prior import from_prior as from_prior
    from annealz.models.from_pymc import from_pymc as from_pymc
    from annealz.models.trajectory import TrajectoryPath as TrajectoryPath
    from annealz.paths import AbstractPath as AbstractPath
    from annealz.paths import GeometricPath as GeometricPath
    from annealz.paths import TemperedPath as TemperedPath
    from annealz.pilots.draws import approximate_draws as approximate_draws
    from annealz.pilots.moment import fit_moment_path as fit_moment_path
    from annealz.pilots.plan import plan_schedule as plan_schedule
    from annealz.pilots.plan import survey as survey
    from annealz.pilots.plan import survey_knots as survey_knots
    from annealz.pilots.survey_mixing import survey_mixing as survey_mixing
    from annealz.results.compare import compare_schedules as compare_schedules
    from annealz.results.conservative import Conservative as Conservative
    from annealz.results.conservative import conservative_log_z as conservative_log_z
    from annealz.results.entropy import Entropy as Entropy
    from annealz.results.likelihood import Likelihood as Likelihood
    from annealz.results.likelihood import log_likelihood as log_likelihood
    from annealz.results.models import BayesFactor as BayesFactor
    from annealz.results.models import ModelTable as ModelTable
    from annealz.results.models import compare_models as compare_models
    from annealz.results.models import log_bayes_factor as log_bayes_factor
    from annealz.schedules import Schedule as Schedule
    from annealz.schedules import decelerate as decelerate
    from annealz.schedules import gms13 as gms13
    from annealz.schedules import linear as linear
    from annealz.schedules import mixing as mixing
    from annealz.schedules import sm08 as sm08
    from annealz.schedules import varopt as varopt
    from annealz.schedules.terrain import Terrain as Terrain

    __version__: str
else:
    _HOMES = listed_imports(__file__)
    _attribute = later(__name__, _HOMES, {"data": "training.data", "plots": "views.plots"})
    __all__ = ["__version__", *_HOMES]

    def __getattr__(name: str) -> Any:
        if name != "__version__":
            return _attribute(name)
        from importlib.metadata import version

        return globals().setdefault(name, version("annealz"))

    def __dir__() -> list[str]:
        return sorted(__all__)

    if "IPython" in sys.modules:  # a notebook, perhaps
        from annealz.views.html import show_figures_inline

        show_figures_inline()
