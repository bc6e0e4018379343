"""The geometric path between a base and any density.

    log p*_beta(x) = (1 - beta) log p*_A(x) + beta f(x)            f the model's log density
    U(x)           = f(x) - log p*_A(x)                            whatever beta
    log ratio      = (beta1 - beta0) U(x)                          exact, one evaluation of f

From a base that has a frame, x = m + S z (`bases/gaussian.py`), the states are its own coordinates z, so
that at beta = 0 they are all alike and a kernel need not know S. Both ends are counted as densities of x,
dx = |S| dz: log Z_A is that of the base, and log Z_B the model's own. Where the frame is not the same
everywhere (`bases/warped.py`) the rest of log |dx/dz| is a part of f.

A base may carry an offset c near the largest f. The path is then that of f - c, which float32 holds with
more digits where f itself was computed in float64, and c is added to log Z_A.

Where f is -inf the density is zero. There f counts as -1e18, which is finite, so that no sum becomes NaN,
and makes any weight zero.

`PhasePath` is the path of what a kernel for densities carries: positions, and beside them momenta and
evaluations.

A row of the states is

    z (dim)  |  p (dim)  |  f (1)  |  df/dz (dim)

p only for kernels that keep their momentum; it is standard normal at every beta, so that increment and
slope are those of the positions alone. f, the value of the model at z, and its gradient only on a path that
is linear in beta,

    log p*_beta(z) = (1 - beta) log p*_A(z) + beta f(z)

where they do not depend on beta: the evaluation that ends one move serves the next increment, the slope and
the start of the next move. On other paths every move evaluates again where it starts.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import AbstractFrameBase
from annealz.core.random import Bits
from annealz.paths.abstract import AbstractPath

if TYPE_CHECKING:
    from annealz.models.abstract import AbstractModel

Parts = TypeVar("Parts")  # of a state

ZERO_DENSITY = -1e18  # log of no density; its square fits into float32
_MOMENTUM = 2**31  # its draw


class TemperedPath(AbstractPath):
    """From a base to a model that defines `log_density`.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2)
    >>> path = annealz.TemperedPath(annealz.GaussianBase.standard(2), model)
    >>> path.log_density(jnp.ones((1, 2)), 0.5).tolist()  # halfway between -1 and 0
    [-0.5]
    """

    base: AbstractBase
    model: "AbstractModel"

    def __init__(self, base: AbstractBase, model: "AbstractModel"):
        dim = getattr(model, "dim", None)
        if not isinstance(base, AbstractBase):
            raise ValueError(
                f"base of {model.name} must be an annealz.AbstractBase, got {type(base).__name__}."
            )
        if dim is not None and getattr(base, "dim", dim) != dim:
            raise ValueError(
                f"base of {model.name} must have its dimension {dim}, got {getattr(base, 'dim', None)}."
            )
        self.base, self.model = base, model

    @property
    def log_z0(self) -> float:
        offset = self._offset
        return self.base.log_z + (0.0 if offset is None else float(offset))

    @property
    def sweep_size(self) -> float:
        return getattr(self.model, "evaluation_size", math.inf)

    def sample(self, bits: Bits) -> Float[Array, "chains ..."]:
        if isinstance(self.base, AbstractFrameBase):
            return self.base.sample_unit(bits)
        return self.base.sample(bits)

    def log_density(self, x, beta):
        return self.base_value(x) + beta * self.slope(x, beta)

    def log_target(self, x):
        return self.value(x) - self.stretch(x)

    def log_ratio(self, x, beta0, beta1):
        return (beta1 - beta0) * self.slope(x, beta0)

    def slope(self, x, beta):
        return self.value(x) - self.base_value(x)

    def position(self, x):
        return self.base.from_unit(x) if isinstance(self.base, AbstractFrameBase) else x

    def state(self, bits, position):
        position = jnp.asarray(position, jnp.float32)
        return self.base.to_unit(position) if isinstance(self.base, AbstractFrameBase) else position

    def stretch(self, x) -> Float[Array, " chains"] | float:
        """What of f at these states is the change of volume, not the model's log density."""
        return self.base.log_stretch(x) if isinstance(self.base, AbstractFrameBase) else 0.0

    def value(self, x) -> Float[Array, " chains"]:
        """f - c at these states, one evaluation of each."""
        return floored(self._model_value(x))

    def value_and_gradient(self, x) -> tuple[Float[Array, " chains"], Float[Array, "chains dim"]]:
        """f - c at these states, and its gradient in them."""
        values, gradient = with_gradient(self._model_value, x)
        is_zero = (values < ZERO_DENSITY)[:, None] | ~jnp.isfinite(gradient)
        return floored(values), jnp.where(is_zero, 0, gradient)

    def base_value(self, x) -> Float[Array, " chains"]:
        """log p*_A at these states."""
        if isinstance(self.base, AbstractFrameBase):
            return self.base.log_density_unit(x)
        return self.base.log_density(x)

    @property
    def _offset(self):
        return getattr(self.base, "offset", None)

    def _model_value(self, x):
        given = () if self._offset is None else (self._offset,)
        values = self.model.log_density(self.position(x), *given)  # pyright: ignore[reportCallIssue]
        values = values + self.stretch(x)
        resolved = self.base.is_resolved(x) if isinstance(self.base, AbstractFrameBase) else True
        return values if resolved is True else jnp.where(resolved, values, -jnp.inf)


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
    positions: Any
    """A path; the value of a `TemperedPath` is carried."""
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
        if not self.carries_value:
            return Phase(z, p)
        if self.has_gradient:
            return Phase(z, p, *self.positions.value_and_gradient(z))
        return Phase(z, p, self.positions.value(z))

    def field(self, phase: Phase, beta) -> tuple[Any, Any]:
        """log p*_beta(z), and its gradient where the kernel wants one."""

        def density(z):
            if self.carries_value:
                return self.positions.base_value(z)
            return self.positions.log_density(z, beta)

        z = phase.z
        value, gradient = with_gradient(density, z) if self.has_gradient else (density(z), None)
        if not self.carries_value:
            return value, gradient
        value = value + beta * (phase.value - value)
        if gradient is None:
            return value, None
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
        return self.positions.base_value(phase.z) + beta * self.slope(x, beta) - kinetic

    def log_target(self, x):
        phase = self.split(x)
        if phase.value is None:
            return self.positions.log_target(phase.z)
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
        return phase.value - self.positions.base_value(phase.z)

    def position(self, x):
        return self.positions.position(self.split(x).z)

    def _state(self, bits: Bits, z) -> Float[Array, "chains width"]:
        p = bits.normals(z.shape[-1], _MOMENTUM) if self.has_momentum else None
        return self.join(self.evaluated(z, p))


def with_gradient(function, x):
    """Return the values of every chain, and their gradients."""
    values, pull = jax.vjp(function, x)
    return values, pull(jnp.ones_like(values))[0]


def floored(values):
    """Count a density of zero as -1e18."""
    return jnp.where(values < ZERO_DENSITY, ZERO_DENSITY, values)


def where(accept: Bool[Array, " chains"], one: Parts, two: Parts) -> Parts:
    """Return the parts of one state where a chain accepts, those of the other elsewhere."""

    def choose(one, two):
        return jnp.where(accept.reshape(-1, *(1,) * (one.ndim - 1)), one, two)

    return jax.tree.map(choose, one, two)
