"""The enumerable models of this study: each with a base, steps, and exact log Z.

    spins               12 independent spins: a sweep is a fresh draw
    rbm HxV s           random weights and biases of scale s, no symmetry
    modes c             all units on or all off, coupling c; the base prefers on, the model off
    scanned             three visible units, picked among 300 models of either of four scales, by exact
                        enumeration of paths, because there the order of a scan matters most
    mnist-*-20          packaged, 20 hidden and 784 visible units, base-rate base

Draws of a target are exact: its smaller layer is enumerated once.
"""

import dataclasses
import functools

import numpy as np

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.random import derive_seed
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.exact import exact_log_z, exact_samples
from annealz.models.formats.load import load_binary
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath
from annealz.pilots.plan import plan_schedule
from annealz.schedules.rules import linear
from annealz.schedules.schedule import Schedule
from annealz.testing import independent_spins, random_rbm

SEED = 2026
PILOT_CHAINS = 1000  # of the run that the pilot of mixing is a twentieth of


@dataclasses.dataclass(frozen=True)
class System:
    """A model, the base it is annealed from, and its exact log Z."""

    name: str
    model: RBM
    base: BernoulliBase
    log_z: float

    @functools.cached_property
    def path(self) -> GeometricPath:
        return GeometricPath(self.base, self.model)

    @property
    def log_ratio(self) -> float:
        """log Z_B / Z_A, exact."""
        return self.log_z - self.path.log_z0

    def draws(self, count: int, seed: int) -> np.ndarray:
        """Visible states of independent exact draws, uint8 (count, visible)."""
        return exact_samples(self.model, count, seed)[0].astype(np.uint8)

    def schedule(self, rule: str, num_steps: int) -> Schedule:
        """Frozen: mixing from one pilot of its own random stream, which enters no weight."""
        if rule == "linear":
            return linear(num_steps)
        return plan_schedule(
            rule,
            self.path,
            BlockGibbs(),
            num_steps=num_steps,
            num_chains=PILOT_CHAINS,
            seed=derive_seed(SEED, self.name, "pilot"),
        )


def two_modes(coupling: float) -> tuple[BernoulliBase, RBM]:
    """Units that are all on or all off."""
    weights = coupling + 0.2 * np.random.default_rng(1).normal(size=(4, 6))
    model = RBM(weights, -weights.sum(1) / 2, -weights.sum(0) / 2 - 0.8 / 6)
    return BernoulliBase.from_logits(np.full(6, 0.4)), model


@functools.cache
def system(name: str) -> System:
    """The system of this name."""
    kind, *rest = name.split()
    if kind.startswith("mnist"):
        model, meta = load_binary(name)
        return System(name, model, model.choose_base("base-rate"), meta["exact_log_z"])
    if kind == "spins":
        model, log_z = independent_spins([0.5], np.linspace(-3, 2, 12))
        return System(name, model, BernoulliBase.uniform(12), log_z)
    if kind == "modes":
        base, model = two_modes(float(rest[0]))
    elif kind == "scanned":
        model = random_rbm(3, 3, scale=4.0, seed=211)
        base = BernoulliBase.from_logits(np.array([-2.81, 0.28, 3.83]))
    elif kind == "rbm":
        hidden, visible = map(int, rest[0].split("x"))
        model = random_rbm(hidden, visible, scale=float(rest[1]), seed=1)
        base = model.choose_base("visible-bias")
    else:
        raise ValueError(f"unknown system {name!r}.")
    return System(name, model, base, exact_log_z(model))
