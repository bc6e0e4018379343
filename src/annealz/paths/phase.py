"""The path of what a kernel for densities carries: positions, and beside them momenta and evaluations.

A row of the states is

    z (dim)  |  p (dim)  |  f (1)  |  df/dz (dim)

p only for kernels that keep their momentum; it is standard normal at every beta, so that increment and
slope are those of the positions alone. f, the value of the model at z, and its gradient only on a path that
is linear in beta,

    log p*_beta(z) = (1 - beta) log p*_A(z) + beta f(z)

where they do not depend on beta: the evaluation that ends one move serves the next increment, the slope and
the start of the next move. On other paths every move evaluates again where it starts.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath
from annealz.paths.tempered import TemperedPath, with_gradient

_MOMENTUM = 2**31  # its draw


class Phase(NamedTuple):
    """The parts of a state, chains first; None for what is not carried."""

    z: Float[Array, "chains dim"]
    p: Any = None
    """(chains, dim)"""
    value: Any = None
    """(chains,)"""
    gradient: Any = None
    """(chains, dim)"""


class PhasePath(AbstractPath):
    """The path of positions (chains, dim), with what a kernel carries beside them."""

    base: AbstractBase
    positions: AbstractPath
    has_momentum: bool = eqx.field(static=True)
    has_gradient: bool = eqx.field(static=True)

    def __init__(
        self, positions: AbstractPath, *, has_momentum: bool = False, has_gradient: bool = False
    ):
        self.base, self.positions = positions.base, positions
        self.has_momentum, self.has_gradient = has_momentum, has_gradient

    @property
    def carries_value(self) -> bool:
        """Whether the value of the model is part of the state."""
        return isinstance(self.positions, TemperedPath)

    @property
    def sweep_size(self) -> float:
        return self.positions.sweep_size

    @property
    def is_cheap_to_record(self) -> bool:
        return self.carries_value

    @property
    def log_z0(self) -> float:
        return self.positions.log_z0

    def dim_of(self, x) -> int:
        """How many variables a state has: its first columns."""
        vectors = 1 + self.has_momentum + (self.has_gradient and self.carries_value)
        return (x.shape[-1] - self.carries_value) // vectors

    def split(self, x) -> Phase:
        """The parts of a state."""
        dim = self.dim_of(x)
        rest, p, value, gradient = x[:, dim:], None, None, None
        if self.has_momentum:
            p, rest = rest[:, :dim], rest[:, dim:]
        if self.carries_value:
            value = rest[:, 0]
            gradient = rest[:, 1:] if self.has_gradient else None
        return Phase(x[:, :dim], p, value, gradient)

    def join(self, phase: Phase) -> Float[Array, "chains width"]:
        """The state of these parts."""
        value = None if phase.value is None else phase.value[:, None]
        parts = (phase.z, phase.p, value, phase.gradient)
        return jnp.concatenate([part for part in parts if part is not None], axis=1)

    def evaluated(self, z, p=None) -> Phase:
        """The parts of a state at z: one evaluation of the model, where its value is carried."""
        positions = self.positions
        if not isinstance(positions, TemperedPath):
            return Phase(z, p)
        if self.has_gradient:
            return Phase(z, p, *positions.value_and_gradient(z))
        return Phase(z, p, positions.value(z))

    def field(self, phase: Phase, beta) -> tuple[Any, Any]:
        """log p*_beta(z), and its gradient where the kernel wants one."""
        positions = self.positions
        if not isinstance(positions, TemperedPath):
            if not self.has_gradient:
                return positions.log_density(phase.z, beta), None
            return with_gradient(lambda z: positions.log_density(z, beta), phase.z)
        if not self.has_gradient:
            base = positions.base_value(phase.z)
            return base + beta * (phase.value - base), None
        base, gradient = with_gradient(positions.base_value, phase.z)
        value = base + beta * (phase.value - base)
        return value, gradient + beta * (phase.gradient - gradient)

    def sample(self, bits: Bits) -> Float[Array, "chains width"]:
        return self._state(bits, self.positions.sample(bits))

    def state(self, bits, position):
        return self._state(bits, self.positions.state(bits, position))

    def log_density(self, x, beta):
        phase = self.split(x)
        kinetic = 0 if phase.p is None else 0.5 * (phase.p**2).sum(-1)
        if phase.value is None:
            return self.positions.log_density(phase.z, beta) - kinetic
        return self._base(phase) + beta * self.slope(x, beta) - kinetic

    def log_target(self, x):
        phase = self.split(x)
        if phase.value is None:
            return self.positions.log_target(phase.z)
        assert isinstance(self.positions, TemperedPath)
        return phase.value - self.positions.stretch(phase.z)

    def latent_entropy(self, x):
        return self.positions.latent_entropy(self.split(x).z)

    def log_ratio(self, x, beta0, beta1):
        if not self.carries_value:
            return self.positions.log_ratio(self.split(x).z, beta0, beta1)
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        phase = self.split(x)
        if phase.value is None:
            return self.positions.slope(phase.z, beta)
        return phase.value - self._base(phase)

    def position(self, x):
        return self.positions.position(self.split(x).z)

    def _base(self, phase: Phase):
        assert isinstance(self.positions, TemperedPath)
        return self.positions.base_value(phase.z)

    def _state(self, bits: Bits, z) -> Float[Array, "chains width"]:
        p = bits.normals(z.shape[-1], _MOMENTUM) if self.has_momentum else None
        return self.join(self.evaluated(z, p))
