"""Paths beside the geometric one."""

import annealz
from annealz.models.trajectory import TrajectoryPath
from annealz.testing import random_rbm

BASE = annealz.BernoulliBase.from_logits([0.4, -0.8, 0.3, -0.2])
MODEL = random_rbm(3, 4, 1.2, seed=3)
STAGES = [random_rbm(3, 4, 0.4, seed=1), random_rbm(3, 4, 0.8, seed=2), MODEL]


def trajectory() -> TrajectoryPath:
    return TrajectoryPath(BASE, STAGES, knots=[0.2, 0.6, 1.0])


class Plain(annealz.AbstractPath):
    """A path that gives what every path must give, by way of another one."""

    base: annealz.AbstractBase
    inner: annealz.AbstractPath

    def __init__(self, inner: annealz.AbstractPath):
        self.base, self.inner = inner.base, inner

    @property
    def log_z0(self) -> float:
        return self.inner.log_z0

    def sample(self, bits):
        return self.inner.sample(bits)

    def log_density(self, x, beta):
        return self.inner.log_density(x, beta)

    def log_ratio(self, x, beta0, beta1):
        return self.inner.log_ratio(x, beta0, beta1)
