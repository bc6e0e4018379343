"""One example of every path beside the geometric one, with its kernel."""

import annealz
from annealz.kernels import BlockGibbs, Metropolised
from annealz.models.exact import exact_log_z
from annealz.models.trajectory import TrajectoryPath
from annealz.paths import GeometricPath, QPath
from annealz.testing import random_rbm

BASE = annealz.BernoulliBase.from_logits([0.4, -0.8, 0.3, -0.2])
MODEL = random_rbm(3, 4, 1.2, seed=3)
STAGES = [random_rbm(3, 4, 0.4, seed=1), random_rbm(3, 4, 0.8, seed=2), MODEL]


def trajectory() -> TrajectoryPath:
    return TrajectoryPath(BASE, STAGES, knots=[0.2, 0.6, 1.0])


def q_path(q: float = 0.7) -> QPath:
    straight = GeometricPath(BASE, MODEL)
    return QPath(straight, q, log_scale=exact_log_z(MODEL) - straight.log_z0)


PATHS = {"trajectory": (trajectory, BlockGibbs()), "q": (q_path, Metropolised(BlockGibbs()))}
