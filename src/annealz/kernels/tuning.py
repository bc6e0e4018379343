"""Step size and scales of the coordinates along beta, and kernels that are tuned so.

    u = x / scales(beta),     moves of size step(beta) in u

log step and log scales are linear between knots of beta. They come from a pilot (`climb.py`) whose random
stream is its own, and are frozen before the run that gives log Z: the transition at each beta is then a
fixed one, and leaves p_beta invariant whatever they are.
"""

import abc
from typing import ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.kernels.abstract import AbstractKernel, Tuned
from annealz.paths.abstract import AbstractPath
from annealz.random import Bits

__all__ = ["AbstractTunedKernel", "Tuning", "as_tuning", "log_density_and_gradient"]


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
        log_step = jnp.full(1, np.log(step_size), jnp.float32)
        return cls(jnp.zeros(1), log_step, jnp.zeros((1, 1)))

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
    """A kernel for densities, whose steps are tuned along beta unless a step size is given."""

    tuning: eqx.AbstractVar[Tuning | None]
    target_acceptance: ClassVar[float]

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

    def coordinates(self, x) -> Float[Array, "chains dim"]:
        """What is scaled of a state."""
        return x

    def tuned(self, path: AbstractPath, *, seed: int, budget: int) -> Tuned:
        if self.tuning is not None:
            return Tuned(self, 0, 0.0)
        from annealz.climb import climb

        ladder = climb(path, self, seed=seed, budget=budget)
        return Tuned(self.with_tuning(ladder.tuning), ladder.sweeps, ladder.seconds)

    def with_tuning(self, tuning: Tuning | None) -> Self:
        """The same with this step and these scales."""
        return eqx.tree_at(lambda k: k.tuning, self, tuning, is_leaf=lambda leaf: leaf is None)


def as_tuning(step_size: ArrayLike | None) -> Tuning | None:
    """None is left to be tuned."""
    return None if step_size is None else Tuning.constant(float(np.asarray(step_size)))


def log_density_and_gradient(path: AbstractPath, x, beta):
    """log p*_beta of every chain, and its gradient in x."""
    values, pull = jax.vjp(lambda x: path.log_density(x, beta), x)
    return values, pull(jnp.ones_like(values))[0]
