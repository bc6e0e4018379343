"""The models of the coverage study: what is annealed, how, and what is known of it.

    rbm-easy, rbm-medium, rbm-strong   random RBMs without symmetry, of growing weights
    gaussian                           from N(0, 1) to a narrower Gaussian, by a kernel that mixes slowly
    mnist-*-20                         packaged RBMs
    rbm-glass                          hard: weights so strong that chains of few steps freeze anywhere
    rbm-barrier, rbm-wall              hard: two modes, 0.05 of the mass where all chains start, 0.95
                                       behind a barrier that few of them cross, or next to none

The last two are W_ij = J, a_i = -J D / 2, b_j = -J M / 2 + d / D: symmetric under the exchange of zeros and
ones except for d, by which the all-ones mode is e^d times as heavy. A base of negative logits starts the
chains in the other one. d = 3: a run that misses the heavy mode is 3 nats low.

Seeds are derived from the name: AGAIN holds two of the models under other names, for seeds that nothing was
looked at with before the rules were settled.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import derive_seed
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z, exact_samples
from annealz.models.formats.load import load_binary
from annealz.models.rbm import RBM
from annealz.paths.abstract import AbstractPath
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import plan_schedule
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from annealz.testing import GaussianPath, random_rbm

__all__ = ["AGAIN", "CASES", "SEED", "Case", "SluggishGaussian", "Target", "two_modes"]

SEED = 20261115


@dataclasses.dataclass(frozen=True)
class Target:
    """A path whose end is known exactly."""

    path: AbstractPath
    kernel: AbstractKernel
    log_z: float
    draw: Callable[[int, int], np.ndarray]
    """(count, seed) -> exact draws of the target."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    what: str
    build: Callable[[], Target]
    num_steps: int
    num_chains: int = 500
    schedule: str = "linear"
    is_hard: bool = False
    num_two_sided: int = 200
    """How many of the seeds are run in reverse as well."""

    def plan(self, target: Target) -> Schedule:
        """The schedule of all seeds, frozen: a pilot, where it takes one, is run once."""
        if self.schedule == "linear":
            return linear(self.num_steps)
        return plan_schedule(
            self.schedule,
            target.path,
            target.kernel,
            num_steps=self.num_steps,
            num_chains=self.num_chains,
            seed=derive_seed(SEED, self.name, "pilot"),
        )


class SluggishGaussian(AbstractKernel):
    """x' = mu + rho (x - mu) + sqrt(1 - rho^2) (fresh - mu): reversible, and slow for rho near 1."""

    rho: float

    def step(self, bits, x, path: GaussianPath, beta):
        fresh, mean = path.draw(bits, beta), path._moments(beta)[0]
        return mean + self.rho * (x - mean) + (1 - self.rho**2) ** 0.5 * (fresh - mean)

    def reversed(self) -> "SluggishGaussian":
        return self


def two_modes(
    coupling: float, tilt: float = 3.0, num_hidden: int = 10, num_visible: int = 20
) -> RBM:
    """All zeros and all ones, the latter e^tilt times as heavy."""
    return RBM(
        np.full((num_hidden, num_visible), coupling),
        np.full(num_hidden, -coupling * num_visible / 2),
        np.full(num_visible, -coupling * num_hidden / 2 + tilt / num_visible),
    )


def _rbm(model: RBM, base: BernoulliBase, log_z: float | None = None) -> Target:
    def draw(count: int, seed: int) -> np.ndarray:
        return exact_samples(model, count, seed)[0]

    log_z = exact_log_z(model) if log_z is None else log_z
    return Target(GeometricPath(base, model), BlockGibbs(), log_z, draw)


def _random(num_hidden: int, num_visible: int, scale: float, seed: int) -> Target:
    model = random_rbm(num_hidden, num_visible, scale, seed)
    return _rbm(model, BernoulliBase.uniform(num_visible))


def _two_modes(coupling: float, logit: float) -> Target:
    model = two_modes(coupling)
    return _rbm(model, BernoulliBase.from_logits(np.full(model.num_visible, logit)))


def _packaged(name: str) -> Target:
    model, meta = load_binary(name)
    return _rbm(model, model.choose_base("auto"), meta["exact_log_z"])


def _gaussian(mean: float, scale: float, rho: float) -> Target:
    path = GaussianPath(mean=mean, scale=scale)

    def draw(count: int, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).normal(mean, scale, count).astype(np.float32)

    return Target(path, SluggishGaussian(rho), path.log_z, draw)


CASES = (
    Case("rbm-easy", "random RBM 8×12, scale 0.3", lambda: _random(8, 12, 0.3, 1), 50),
    Case("rbm-medium", "random RBM 12×30, scale 1", lambda: _random(12, 30, 1.0, 2), 100),
    Case("rbm-strong", "random RBM 16×40, scale 3", lambda: _random(16, 40, 3.0, 3), 100),
    Case(
        "gaussian",
        "N(0, 1) to N(2, 0.6²), autoregressive kernel, ρ = 0.9",
        lambda: _gaussian(2.0, 0.6, 0.9),
        100,
    ),
    Case(
        "mnist-cd1-20",
        "packaged, base rate",
        lambda: _packaged("mnist-cd1-20"),
        1000,
        schedule="mixing",
        num_two_sided=60,
    ),
    Case(
        "mnist-pcd-20",
        "packaged, base rate",
        lambda: _packaged("mnist-pcd-20"),
        2000,
        schedule="mixing",
        num_two_sided=60,
    ),
    Case(
        "mnist-cd25-20",
        "packaged, base rate",
        lambda: _packaged("mnist-cd25-20"),
        1000,
        schedule="mixing",
        is_hard=True,
        num_two_sided=60,
    ),
    Case(
        "rbm-glass",
        "random RBM 16×40, scale 6, few steps",
        lambda: _random(16, 40, 6.0, 3),
        30,
        is_hard=True,
    ),
    Case(
        "rbm-barrier",
        "two modes 10×20, J = 0.6, start in the light one (logits −1.5)",
        lambda: _two_modes(0.6, -1.5),
        300,
        is_hard=True,
    ),
    Case(
        "rbm-wall",
        "two modes 10×20, J = 0.8, start in the light one (logits −1)",
        lambda: _two_modes(0.8, -1.0),
        300,
        is_hard=True,
    ),
)

AGAIN = tuple(
    dataclasses.replace(case, name=f"{case.name}-again", num_two_sided=0)
    for case in CASES
    if case.name in ("rbm-medium", "rbm-strong")
)
