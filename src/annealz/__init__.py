"""annealz: log partition functions by annealed importance sampling.

A name is imported when it is first asked for, so that `annealz --help` does not wait for JAX. Where the
names live is written twice, for type checkers and for Python; a test compares the two.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annealz import distributed as distributed
    from annealz.along import log_z_along as log_z_along
    from annealz.anneal import Progress as Progress
    from annealz.anneal import anneal as anneal
    from annealz.bases import AbstractBase as AbstractBase
    from annealz.bases import BernoulliBase as BernoulliBase
    from annealz.bases import CategoricalBase as CategoricalBase
    from annealz.bases import GaussianBase as GaussianBase
    from annealz.bases import MixtureBase as MixtureBase
    from annealz.compare import compare_schedules as compare_schedules
    from annealz.conservative import Conservative as Conservative
    from annealz.conservative import conservative_log_z as conservative_log_z
    from annealz.draws import approximate_draws as approximate_draws
    from annealz.estimate import Estimate as Estimate
    from annealz.formats import load_model as load_model
    from annealz.formats import load_trajectory as load_trajectory
    from annealz.formats import save_model as save_model
    from annealz.formats import save_rbm as save_rbm
    from annealz.islands import judge_islands as judge_islands
    from annealz.kernels import HAIS as HAIS
    from annealz.kernels import HMC as HMC
    from annealz.kernels import MALA as MALA
    from annealz.kernels import AbstractKernel as AbstractKernel
    from annealz.kernels import BlockGibbs as BlockGibbs
    from annealz.kernels import ColourGibbs as ColourGibbs
    from annealz.kernels import Metropolised as Metropolised
    from annealz.kernels import RandomWalk as RandomWalk
    from annealz.likelihood import Likelihood as Likelihood
    from annealz.likelihood import log_likelihood as log_likelihood
    from annealz.log_z import estimate_log_z as estimate_log_z
    from annealz.log_z import resume as resume
    from annealz.models import DBM as DBM
    from annealz.models import RBM as RBM
    from annealz.models import AbstractModel as AbstractModel
    from annealz.models import GaussianRBM as GaussianRBM
    from annealz.models import Ising as Ising
    from annealz.models import LogDensity as LogDensity
    from annealz.models import Potts as Potts
    from annealz.models import SoftmaxRBM as SoftmaxRBM
    from annealz.models import SquareIsing as SquareIsing
    from annealz.models import exact_log_z as exact_log_z
    from annealz.models import exact_marginals as exact_marginals
    from annealz.models import exact_samples as exact_samples
    from annealz.models import from_numpyro as from_numpyro
    from annealz.models import square_ising_log_z as square_ising_log_z
    from annealz.observers import AbstractObserver as AbstractObserver
    from annealz.observers import Expectation as Expectation
    from annealz.observers import Slope as Slope
    from annealz.paths import AbstractPath as AbstractPath
    from annealz.paths import GaussianMomentPath as GaussianMomentPath
    from annealz.paths import GeometricPath as GeometricPath
    from annealz.paths import QPath as QPath
    from annealz.paths import TemperedPath as TemperedPath
    from annealz.paths import TrajectoryPath as TrajectoryPath
    from annealz.paths.moment import fit_moment_path as fit_moment_path
    from annealz.plan import plan_schedule as plan_schedule
    from annealz.replicas.estimate import ExchangeEstimate as ExchangeEstimate
    from annealz.replicas.exchange import exchange as exchange
    from annealz.replicas.log_z import exchange_log_z as exchange_log_z
    from annealz.replicas.result import Exchange as Exchange
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

    __version__: str
else:
    _NAMES = {
        "along": "log_z_along",
        "anneal": "Progress anneal",
        "bases": "AbstractBase BernoulliBase CategoricalBase GaussianBase MixtureBase",
        "compare": "compare_schedules",
        "conservative": "Conservative conservative_log_z",
        "draws": "approximate_draws",
        "estimate": "Estimate",
        "formats": "load_model load_trajectory save_model save_rbm",
        "islands": "judge_islands",
        "kernels": "HAIS HMC MALA AbstractKernel BlockGibbs ColourGibbs Metropolised RandomWalk",
        "likelihood": "Likelihood log_likelihood",
        "log_z": "estimate_log_z resume",
        "models": "DBM RBM AbstractModel GaussianRBM Ising LogDensity Potts SoftmaxRBM SquareIsing "
        "exact_log_z exact_marginals exact_samples from_numpyro square_ising_log_z",
        "observers": "AbstractObserver Expectation Slope",
        "paths": "AbstractPath GaussianMomentPath GeometricPath QPath TemperedPath TrajectoryPath",
        "paths.moment": "fit_moment_path",
        "plan": "plan_schedule",
        "replicas.estimate": "ExchangeEstimate",
        "replicas.exchange": "exchange",
        "replicas.log_z": "exchange_log_z",
        "replicas.result": "Exchange",
        "run": "Run",
        "schedules": "Schedule decelerate gms13 linear mixing sm08 varopt",
        "status": "Status",
        "survey": "survey survey_knots",
        "survey_mixing": "survey_mixing",
        "terrain": "Terrain",
        "thermodynamic": "thermodynamic_log_z",
        "two_sided": "TwoSided judge_two_sided",
    }
    _HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
    __all__ = ["__version__", "distributed", *_HOMES]

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(f"annealz.{_HOMES[name]}"), name)
        elif name == "__version__":
            from importlib.metadata import version

            value = version("annealz")
        else:
            value = _submodule(name)
        globals()[name] = value
        return value

    def _submodule(name: str) -> ModuleType:
        """A module of the package, which need not have been imported before."""
        missing = AttributeError(f"module 'annealz' has no attribute {name!r}")
        if name.startswith("_"):
            raise missing
        try:
            return import_module(f"annealz.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"annealz.{name}":
                raise
            raise missing from None

    def __dir__() -> list[str]:
        return sorted(__all__)

    class _Package(ModuleType):
        """Some modules are named after their function, and `annealz.anneal` is the function.

        To import a module is to set it as an attribute of its package: the function is set instead.
        """

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and name in _HOMES:
                value = getattr(value, name)
            super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package

    if "IPython" in sys.modules:  # a notebook, perhaps
        from annealz.show.inline import show_figures_inline

        show_figures_inline()
