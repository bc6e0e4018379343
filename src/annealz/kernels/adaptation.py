"""Kernels that adapt to their path: step size and scales of the coordinates along beta, and the pilot that
finds them.

    u = x / scales(beta),     moves of size step(beta) in u

log step and log scales are linear between knots of beta. They come from a pilot whose random stream is its
own, and are frozen before the run that gives log Z: the transition at each beta is then a fixed one, and
leaves p_beta invariant whatever they are.

The pilot runs chains from beta = 0 up through a sequence of temperatures. The next one is where half of the
chains would still be effective; they are resampled by their weights (annealed SMC). At every temperature
the scales of the coordinates are the standard deviations of the chains that arrived, and the step follows
the acceptance,

    log step += c_k (mean acceptance - target),      c_k = 2 (k + 1)^-0.6,  k the sweep at this temperature

whose mean over the last half is kept.
"""

import abc
import time
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.core.arrays import indices, on_device
from annealz.core.cost import Cost
from annealz.core.programs import Compiled
from annealz.core.random import Bits, Stream, derive_seed
from annealz.core.weights import effective_sample_size, log_mean, resample
from annealz.kernels.abstract import AbstractKernel, Tuned
from annealz.paths import programs
from annealz.paths.abstract import AbstractPath
from annealz.paths.tempered import ZERO_DENSITY, PhasePath

_MOST_CHAINS, _LEAST_CHAINS = 128, 32
_MOST_SWEEPS, _LEAST_SWEEPS = 24, 8  # at one temperature
_USUAL_TEMPERATURES = 12
_MOST_TEMPERATURES = 200
_EFFECTIVE = 0.5  # of the chains, on the next temperature
_NUM_KNOTS = 33  # of what is frozen, whatever the number of temperatures: one compiled program
_LEAST_SPACING = 1e-4  # between temperatures, of the lower one
_PRIOR_CHAINS = 8  # that vote for the scales of the temperature before
_OCTAVES, _HALVINGS = 20, 12  # of the search for the next temperature
_SEEN = 8  # states that are kept of every temperature


class Tuning(eqx.Module):
    """Step and scales as functions of beta."""

    betas: Float[Array, " knots"]
    log_steps: Float[Array, " knots"]
    log_scales: Float[Array, "knots dim"]

    @classmethod
    def constant(cls, step_size: float) -> "Tuning":
        """One step size at every beta, coordinates as they are."""
        if not 0 < step_size < np.inf:
            raise ValueError(f"step_size must be a positive number, got {step_size}.")
        log_step = on_device([np.log(step_size)])
        return cls(on_device([0.0]), log_step, on_device([[0.0]]))

    def at(self, beta) -> tuple[Float[Array, ""], Float[Array, " dim"]]:
        """(step, scales)."""
        if self.betas.shape[0] == 1:
            return jnp.exp(self.log_steps[0]), jnp.exp(self.log_scales[0])
        place = jnp.interp(beta, self.betas, jnp.arange(self.betas.shape[0], dtype=jnp.float32))
        low = jnp.clip(place.astype(jnp.int32), 0, self.betas.shape[0] - 2)
        share = place - low
        both = [
            (1 - share) * values[low] + share * values[low + 1]
            for values in (self.log_steps, self.log_scales)
        ]
        return jnp.exp(both[0]), jnp.exp(both[1])


class AbstractTunedKernel(AbstractKernel):
    """A kernel for densities, whose steps are tuned along beta unless a step size is given.

    On positions it is its own reversal, and a sweep takes one evaluation, unless a class says otherwise.
    """

    tuning: Tuning | None
    target_acceptance: ClassVar[float]

    def __init__(self, step_size: ArrayLike | None = None):
        self.tuning = None
        if step_size is not None:
            self.tuning = Tuning.constant(float(np.asarray(step_size)))

    @property
    def evaluations(self) -> int:
        return 1

    def extend(self, path: AbstractPath) -> PhasePath:
        return path if isinstance(path, PhasePath) else PhasePath(path, has_gradient=True)

    def reversed(self) -> AbstractKernel:
        return self

    @abc.abstractmethod
    def move(self, bits: Bits, x, path: AbstractPath, beta, step, scales) -> tuple[Array, Array]:
        """The next states, and the acceptance of every chain, with this step and these scales."""

    def step(self, bits: Bits, x, path: AbstractPath, beta) -> Float[Array, "chains ..."]:
        if self.tuning is None:
            raise ValueError(
                f"{type(self).__name__} has no step size yet: tune it on its path, "
                "kernel.tuned(path, seed=0, budget=20_000).kernel, or give step_size."
            )
        return self.move(bits, x, path, beta, *self.tuning.at(beta))[0]

    def tuned(self, path: AbstractPath, *, seed: int, budget: int) -> Tuned:
        if self.tuning is not None:
            return Tuned(self, Cost())
        found = adapt(path, self, seed=seed, budget=budget)
        cost = self.cost(found.sweeps, found.starts, found.seconds)
        return Tuned(self.with_tuning(found.tuning), cost)

    def with_tuning(self, tuning: Tuning | None) -> Self:
        """The same with this step and these scales."""
        return eqx.tree_at(lambda k: k.tuning, self, tuning, is_leaf=lambda leaf: leaf is None)


class Adaptation(NamedTuple):
    """What the pilot found, where its chains ended, and what it took."""

    tuning: Tuning
    x: jax.Array
    betas: np.ndarray
    """The temperatures, from 0 to 1."""
    seen: np.ndarray
    """(states, ...): some of every temperature but the last, where they were before they were resampled."""
    log_ratio: float
    """log of Z_1 / Z_0 by the way, rough."""
    sweeps: int
    starts: int
    """Chains, each with one evaluation where it starts."""
    seconds: float


class NoWeight(ValueError):
    """No chain of a pilot has weight; what it took until then."""

    def __init__(self, message: str, sweeps: int, starts: int):
        super().__init__(message)
        self.sweeps, self.starts = sweeps, starts


class _Temperature(NamedTuple):
    """Where chains are adapted, and with which step and scales."""

    beta: Any
    log_step: Any
    log_scales: Any


def adapt(
    path: Any,
    kernel: AbstractTunedKernel,
    *,
    seed: int,
    budget: int,
    num_chains: int | None = None,
) -> Adaptation:
    """Find step and scales along beta, for about `budget` sweeps: more if many temperatures are needed.

    `num_chains` takes so many chains instead, each for as many sweeps. `path` is that of the states that
    the kernel moves (`kernel.extend`).
    """
    began = time.monotonic()
    each = budget / _USUAL_TEMPERATURES
    count = int(np.clip(np.sqrt(8 * each), _LEAST_CHAINS, _MOST_CHAINS))
    sweeps = int(np.clip(each / count, _LEAST_SWEEPS, _MOST_SWEEPS))  # at one temperature
    count = count if num_chains is None else num_chains
    work = _USUAL_TEMPERATURES * sweeps * count * path.sweep_size
    stream, chains = Stream(seed, "tuning"), indices(count)
    generator = np.random.default_rng(derive_seed(seed, "tuning", "resampling"))
    path = path.unnamed()
    x = programs.sample(path, stream, np.int32(0), chains, work=work)
    dim = path.dim_of(x)
    log_step, log_scales = np.log(dim**-0.25), np.zeros(dim)
    beta, log_ratio, temperatures, seen = 0.0, 0.0, [], []
    given = path, kernel, stream, chains
    while True:
        here = _Temperature(*(on_device(a) for a in (beta, log_step, log_scales)))
        done = np.int32(len(temperatures) * sweeps)
        x, log_step = _tune(*given, x, here, done, sweeps, work=work, at_once=x.size)
        temperatures.append(_Temperature(beta, float(log_step), log_scales))
        if beta == 1:
            break
        seen.append(np.asarray(x)[:: max(count // _SEEN, 1)][:_SEEN])
        try:
            beta, log_weights = _next(path, x, beta, len(temperatures))
        except ValueError as error:
            spent = len(temperatures) * sweeps * count
            raise NoWeight(str(error), spent, count) from error
        log_ratio += log_mean(log_weights)
        x = programs.rows(x, resample(log_weights, generator))
        spread = np.asarray(x, np.float64)[:, :dim].var(0)
        old = np.exp(2 * log_scales)
        new = (count * spread + _PRIOR_CHAINS * old) / (count + _PRIOR_CHAINS)
        log_scales = np.log(new) / 2
    return Adaptation(
        _frozen(temperatures),
        x,
        np.array([one.beta for one in temperatures]),
        np.concatenate(seen),
        log_ratio,
        len(temperatures) * sweeps * count,
        count,
        time.monotonic() - began,
    )


@Compiled
def _tune(path, kernel, stream, chains, x, here: _Temperature, done, num_sweeps: int):
    """The states after some sweeps at one temperature, and the tuned log step."""
    beta, log_scales = here.beta, here.log_scales

    def sweep(carry, k):
        x, log_step = carry
        bits = stream.at(done + k + 1, chains)
        x, acceptance = kernel.move(bits, x, path, beta, jnp.exp(log_step), jnp.exp(log_scales))
        error = jnp.nan_to_num(acceptance).mean() - kernel.target_acceptance
        log_step = log_step + 2 * (k + 1.0) ** -0.6 * error
        return (x, log_step), log_step

    (x, _), steps = jax.lax.scan(sweep, (x, here.log_step), jnp.arange(num_sweeps))
    return x, steps[num_sweeps // 2 :].mean()


def _next(path: AbstractPath, x, beta: float, temperatures: int) -> tuple[float, np.ndarray]:
    """The next temperature, and the log weights of the chains there.

    Chains where the density is zero have no weight at any temperature, and are not counted.
    """
    slopes = _slopes(path, x)

    def weights(other: float) -> np.ndarray:
        if slopes is not None:
            ratio = (other - beta) * slopes
        else:
            betas = np.float32(beta), np.float32(other)
            ratio = np.asarray(programs.log_ratio(path, x, *betas), np.float64)
        if not np.isfinite(ratio).any():
            raise ValueError(
                f"the log density is infinite or NaN on all {len(ratio)} chains of the pilot at beta = "
                f"{beta:.4g}: give a base that lies nearer to the model, or check the function."
            )
        return np.where(np.isfinite(ratio), ratio, -np.inf)

    alive = x.shape[0] if slopes is None else int((slopes > ZERO_DENSITY / 2).sum())

    def is_near(other: float) -> bool:
        return effective_sample_size(weights(other)) >= _EFFECTIVE * alive

    if temperatures >= _MOST_TEMPERATURES or is_near(1.0):
        return 1.0, weights(1.0)
    low, high = beta, 1.0
    for _ in range(_OCTAVES):  # down to the right scale, then between two
        middle = beta + (high - beta) / 4
        if is_near(middle):
            low = middle
            break
        high = middle
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_near(middle) else (low, middle)
    other = float(np.float32(max(low, beta + _LEAST_SPACING * max(beta, 1e-6))))
    return min(other, 1.0), weights(min(other, 1.0))


def _slopes(path: Any, x) -> np.ndarray | None:
    """U of every chain where it does not depend on beta and takes no evaluation; -inf for zero density."""
    if not getattr(path, "carries_value", False):
        return None
    slopes = np.asarray(programs.slope(path, x, np.float32(0), work=0), np.float64)
    if np.isfinite(slopes).any() and not (slopes > ZERO_DENSITY / 2).any():
        raise ValueError(
            f"the density is zero on all {slopes.size} chains of the pilot: give a base, or starts, "
            "where it is not."
        )
    return np.where(slopes > ZERO_DENSITY / 2, slopes, np.where(np.isnan(slopes), np.nan, -np.inf))


def _frozen(temperatures: list[_Temperature]) -> Tuning:
    """The temperatures on a fixed number of knots, equally many between any two."""
    betas = np.array([one.beta for one in temperatures])
    places = np.linspace(0, len(temperatures) - 1, _NUM_KNOTS)
    known = np.arange(len(temperatures))
    log_steps = np.interp(places, known, [one.log_step for one in temperatures])
    scales = np.stack([one.log_scales for one in temperatures])
    log_scales = np.stack([np.interp(places, known, column) for column in scales.T], axis=1)
    knots = np.interp(places, known, betas)
    return Tuning(*(on_device(a) for a in (knots, log_steps, log_scales)))
