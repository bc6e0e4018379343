"""For authors of models, paths and kernels: checks, and systems whose answers are known."""

from annealz.testing.checks import check_kernel as check_kernel
from annealz.testing.checks import check_model as check_model
from annealz.testing.checks import check_path as check_path
from annealz.testing.systems import GaussianPath as GaussianPath
from annealz.testing.systems import PerfectKernel as PerfectKernel
from annealz.testing.systems import assert_within_mc_error as assert_within_mc_error
from annealz.testing.systems import binary_states as binary_states
from annealz.testing.systems import default_seed as default_seed
from annealz.testing.systems import independent_spins as independent_spins
from annealz.testing.systems import log_joint as log_joint
from annealz.testing.systems import random_rbm as random_rbm
from annealz.testing.systems import spins_moments as spins_moments
from annealz.testing.systems import spins_path as spins_path
