"""annealz: log partition functions by annealed importance sampling."""

from importlib.metadata import version as _version

from annealz.along import log_z_along as log_z_along
from annealz.anneal import Progress as Progress
from annealz.anneal import anneal as anneal
from annealz.bases import AbstractBase as AbstractBase
from annealz.bases import BernoulliBase as BernoulliBase
from annealz.compare import compare_schedules as compare_schedules
from annealz.conservative import Conservative as Conservative
from annealz.conservative import conservative_log_z as conservative_log_z
from annealz.draws import approximate_draws as approximate_draws
from annealz.estimate import Estimate as Estimate
from annealz.formats import load_model as load_model
from annealz.formats import save_rbm as save_rbm
from annealz.islands import judge_islands as judge_islands
from annealz.kernels import AbstractKernel as AbstractKernel
from annealz.kernels import BlockGibbs as BlockGibbs
from annealz.likelihood import Likelihood as Likelihood
from annealz.likelihood import log_likelihood as log_likelihood
from annealz.log_z import estimate_log_z as estimate_log_z
from annealz.log_z import resume as resume
from annealz.models import RBM as RBM
from annealz.models import AbstractModel as AbstractModel
from annealz.models import exact_log_z as exact_log_z
from annealz.models import exact_marginals as exact_marginals
from annealz.models import exact_samples as exact_samples
from annealz.observers import AbstractObserver as AbstractObserver
from annealz.observers import Expectation as Expectation
from annealz.observers import Slope as Slope
from annealz.paths import AbstractPath as AbstractPath
from annealz.paths import GeometricPath as GeometricPath
from annealz.plan import plan_schedule as plan_schedule
from annealz.run import Run as Run
from annealz.schedules import Schedule as Schedule
from annealz.schedules import decelerate as decelerate
from annealz.schedules import gms13 as gms13
from annealz.schedules import linear as linear
from annealz.schedules import mixing as mixing
from annealz.schedules import sm08 as sm08
from annealz.schedules import varopt as varopt
from annealz.status import Status as Status
from annealz.survey import survey as survey
from annealz.survey import survey_knots as survey_knots
from annealz.survey_mixing import survey_mixing as survey_mixing
from annealz.terrain import Terrain as Terrain
from annealz.thermodynamic import thermodynamic_log_z as thermodynamic_log_z
from annealz.two_sided import TwoSided as TwoSided
from annealz.two_sided import judge_two_sided as judge_two_sided

__version__ = _version("annealz")
