"""annealz: log partition functions by annealed importance sampling.

A name is imported when it is first asked for, so that `annealz --help` does not wait for JAX: from the
modules that the imports below name, which type checkers read.
"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annealz.api import estimate_log_z as estimate_log_z
    from annealz.api import resume as resume
    from annealz.bases.abstract import AbstractBase as AbstractBase
    from annealz.bases.bernoulli import BernoulliBase as BernoulliBase
    from annealz.bases.categorical import CategoricalBase as CategoricalBase
    from annealz.bases.gaussian import GaussianBase as GaussianBase
    from annealz.bases.gaussian_mixture import GaussianMixtureBase as GaussianMixtureBase
    from annealz.bases.mixture import MixtureBase as MixtureBase
    from annealz.bases.prior import PriorBase as PriorBase
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
    from annealz.kernels.abstract import AbstractKernel as AbstractKernel
    from annealz.kernels.clusters import Clusters as Clusters
    from annealz.kernels.colours import ColourGibbs as ColourGibbs
    from annealz.kernels.gibbs import BlockGibbs as BlockGibbs
    from annealz.kernels.hmc import HAIS as HAIS
    from annealz.kernels.hmc import HMC as HMC
    from annealz.kernels.hmc import MALA as MALA
    from annealz.kernels.hmc import RandomWalk as RandomWalk
    from annealz.kernels.unit_gibbs import GradientGibbs as GradientGibbs
    from annealz.kernels.unit_gibbs import UnitGibbs as UnitGibbs
    from annealz.methods.annealing.estimate import Estimate as Estimate
    from annealz.methods.exchange.estimate import ExchangeEstimate as ExchangeEstimate
    from annealz.methods.exchange.exchange import exchange as exchange
    from annealz.methods.exchange.result import Exchange as Exchange
    from annealz.methods.method import AbstractMethod as AbstractMethod
    from annealz.methods.nested.estimate import NestedEstimate as NestedEstimate
    from annealz.methods.posterior import Mean as Mean
    from annealz.methods.posterior import Posterior as Posterior
    from annealz.models.abstract import AbstractModel as AbstractModel
    from annealz.models.binary_quadratic import BinaryQuadratic as BinaryQuadratic
    from annealz.models.binary_quadratic import from_dimod as from_dimod
    from annealz.models.dbm import DBM as DBM
    from annealz.models.discrete_density import DiscreteDensity as DiscreteDensity
    from annealz.models.exact import exact_log_z as exact_log_z
    from annealz.models.exact import exact_marginals as exact_marginals
    from annealz.models.exact import exact_samples as exact_samples
    from annealz.models.factor_graph import FactorGraph as FactorGraph
    from annealz.models.formats.load import load_model as load_model
    from annealz.models.formats.load import load_trajectory as load_trajectory
    from annealz.models.formats.load import model_record as model_record
    from annealz.models.formats.npz import save_model as save_model
    from annealz.models.formats.npz import save_rbm as save_rbm
    from annealz.models.from_numpyro import from_numpyro as from_numpyro
    from annealz.models.from_prior import from_prior as from_prior
    from annealz.models.from_pymc import from_pymc as from_pymc
    from annealz.models.ising import Ising as Ising
    from annealz.models.ising_lattice import SquareIsing as SquareIsing
    from annealz.models.ising_lattice import square_ising_log_z as square_ising_log_z
    from annealz.models.layered import GaussianRBM as GaussianRBM
    from annealz.models.layered import SoftmaxRBM as SoftmaxRBM
    from annealz.models.layered_rbm import LayeredRBM as LayeredRBM
    from annealz.models.log_density import LogDensity as LogDensity
    from annealz.models.potts import Potts as Potts
    from annealz.models.rbm import RBM as RBM
    from annealz.models.trajectory import TrajectoryPath as TrajectoryPath
    from annealz.paths.abstract import AbstractPath as AbstractPath
    from annealz.paths.geometric import GeometricPath as GeometricPath
    from annealz.paths.tempered import TemperedPath as TemperedPath
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
    from annealz.schedules.rules import gms13 as gms13
    from annealz.schedules.rules import linear as linear
    from annealz.schedules.rules import mixing as mixing
    from annealz.schedules.rules import sm08 as sm08
    from annealz.schedules.rules import varopt as varopt
    from annealz.schedules.schedule import Schedule as Schedule
    from annealz.schedules.steps import decelerate as decelerate
    from annealz.schedules.terrain import Terrain as Terrain

    __version__: str
else:
    _IMPORT = re.compile(r"^    from (\S+) import \w+ as (\w+)$", re.MULTILINE)
    _HOMES = {name: home for home, name in _IMPORT.findall(Path(__file__).read_text("utf-8"))}
    _MODULES = {"data": "training.data", "plots": "views.plots"}
    __all__ = ["__version__", *_HOMES]

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            value = version("annealz")
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        elif name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        else:
            try:
                value = import_module(f"{__name__}.{_MODULES.get(name, name)}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)

    if "IPython" in sys.modules:  # a notebook, perhaps
        from annealz.views.html import show_figures_inline

        show_figures_inline()
