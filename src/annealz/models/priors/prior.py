"""The prior of all parameters: a pytree of independent distributions, or a transform of the unit cube.

    x = (x_1, x_2, ...)      theta = pytree of value_i(x_i)      log p(x) = sum_i log p_i(x_i)

Where all coordinates are standard normal the base is that Gaussian, else a PriorBase. A transform, as
nested samplers take it, has standard normal coordinates:

    theta = t(u),    u = Phi(z)

u stays inside (0, 1), in float32 too.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special
from scipy.special import ndtr

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import GaussianBase
from annealz.bases.prior import PriorBase
from annealz.core.failures import FunctionError, call_on_host
from annealz.models.host_function import call_rows, check_numpy, is_numpy
from annealz.models.layout import Layout, Parameters
from annealz.models.priors.scipy_variable import is_scipy, scipy_variable
from annealz.models.priors.variable import NUM_STARTS, Variable, is_numpyro, numpyro_variable

_LEAST, _MOST = np.finfo(np.float32).tiny, 1 - np.finfo(np.float32).epsneg
_FINEST, _LAST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg


def normal_base(dim: int) -> GaussianBase:
    """Return the base of standard normal coordinates, as a prior."""
    plain = GaussianBase.standard(dim)
    return GaussianBase(plain.mean, plain.scale, "prior")


class JointPrior:
    """The prior of a pytree of distributions of SciPy and NumPyro."""

    is_traced = True
    """Whether JAX computes the parameters, so that gradients pass."""

    def __init__(self, prior: Any):
        layout = Layout.of(prior, is_leaf=lambda leaf: is_scipy(leaf) or is_numpyro(leaf))
        leaves = layout.structure.flatten_up_to(prior)
        if not leaves:
            raise ValueError("prior must hold at least one distribution, got none.")
        self.variables = tuple(map(_variable, layout.names, leaves))
        self.layout = dataclasses.replace(layout, shapes=tuple(v.shape for v in self.variables))
        self.dim = sum(variable.size for variable in self.variables)
        self.takes = f"the values of {', '.join(layout.names)}"

    def _parts(self, x: Any) -> list[Any]:
        ends = np.cumsum([variable.size for variable in self.variables])
        return [
            x[..., end - variable.size : end]
            for end, variable in zip(ends.tolist(), self.variables, strict=True)
        ]

    def values(self, x: Any) -> Any:
        """Return the pytree of parameters at x (dim,)."""
        pairs = zip(self.variables, self._parts(x), strict=True)
        return jax.tree.unflatten(self.layout.structure, [v.value(part) for v, part in pairs])

    def log_density(self, x: Any) -> Any:
        """Return the log of the normalised density of the coordinates x (dim,)."""
        pairs = zip(self.variables, self._parts(x), strict=True)
        return sum((v.log_density(part) for v, part in pairs), jnp.float32(0))

    def draw(self, key: Any) -> Any:
        """Return coordinates (dim,) drawn from the prior."""
        keys = jax.random.split(key, len(self.variables))
        return jnp.concatenate([v.draw(keys[i]) for i, v in enumerate(self.variables)])

    def starts(self) -> np.ndarray:
        """Return coordinates (points, dim) of some draws."""
        keys = jax.random.split(jax.random.key(0), NUM_STARTS)
        return np.asarray(jax.jit(jax.vmap(self.draw))(keys))

    def flat_values(self, x: Any) -> Any:
        """Return all parameters at x (dim,) in one vector."""
        return jnp.concatenate([jnp.ravel(value) for value in jax.tree.leaves(self.values(x))])

    def to_host(self) -> tuple[Any, Any]:
        """Return how rows become arguments of a NumPy function: in JAX, and then on the host."""
        return self.flat_values, self.layout.split

    def point(self) -> Any:
        """Return the parameters of one draw, with an axis of points in front."""
        flat = np.asarray(jax.jit(self.flat_values)(self.starts()[0]), np.float64)
        return self.layout.split(flat[None])

    @property
    def base(self) -> AbstractBase:
        if all(variable.is_normal for variable in self.variables):
            return normal_base(self.dim)
        return PriorBase(lambda key: self.draw(key), lambda x: self.log_density(x), self.dim)

    @property
    def parameters(self) -> Parameters:
        values = jax.jit(jax.vmap(self.values))

        def constrain(rows):
            return self.layout.by_name(values(jnp.asarray(rows, jnp.float32)))

        def unconstrain(given):
            parts = [
                np.empty((0, 0)) if v.coordinates is None else v.coordinates(given[name])
                for name, v in zip(self.layout.names, self.variables, strict=True)
            ]
            return np.concatenate(parts, axis=1)

        has_inverse = all(variable.coordinates is not None for variable in self.variables)
        return Parameters(self.layout.names, constrain, unconstrain if has_inverse else None)


def _variable(name: str, given: Any) -> Variable:
    if is_scipy(given):
        return scipy_variable(name, given)
    if is_numpyro(given):
        return numpyro_variable(name, given)
    raise ValueError(
        f"prior of {name} must be a frozen distribution of SciPy or one of NumPyro's, got "
        f"{type(given).__name__}."
    )


class Cube:
    """The prior of a transform of users, of one point (dim,) or with `vectorized` of many."""

    def __init__(
        self,
        transform: Any,
        dim: Any,
        names: Sequence[str] | None,
        label: str,
        vectorized: bool,
    ):
        if not callable(transform):
            raise ValueError(
                "prior_transform must be a function from the unit cube to the parameters, got "
                f"{type(transform).__name__}: distributions are given by prior=."
            )
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise ValueError(
                f"num_dims must be the number of parameters, a whole number of at least 1, got {dim!r}."
            )
        if names is not None and (isinstance(names, str) or len(set(names)) != dim):
            raise ValueError(
                f"names must be {dim} different names, one per parameter, got {names!r}."
            )
        self.transform: Callable[[Any], Any] = transform
        self.dim, self.names = int(dim), names
        self.label, self.vectorized = label, vectorized
        self.takes = f"parameters of shape ({dim},)"
        self.base = normal_base(self.dim)
        self.is_traced, self.is_numpy = self._kinds()
        self.values = self.traced if self.is_traced else self.called
        self._check()

    @property
    def parameters(self) -> Parameters:
        def constrain(rows):
            theta = self.many(np.asarray(rows))
            values = [theta] if self.names is None else theta.T
            return dict(zip(names, values, strict=True))

        names = tuple(self.names or ("theta",))
        return Parameters(names, constrain)

    def starts(self) -> np.ndarray:
        """Return coordinates (points, dim) of some draws."""
        return np.random.default_rng(0).normal(size=(NUM_STARTS, self.dim))

    def point(self) -> np.ndarray:
        """Return the parameters of one point, with an axis of points in front."""
        return self.many(np.zeros((1, self.dim)))

    def log_density(self, z: Any) -> Any:
        """Return the log of the normalised density of the coordinates z (dim,)."""
        return -0.5 * (z**2).sum() - self.dim / 2 * np.log(2 * np.pi)

    def to_host(self) -> tuple[Any, Any]:
        """Return how rows become arguments of a NumPy function: in JAX, and then on the host."""
        return (None, self.on_host) if self.is_numpy else (self.values, np.asarray)

    def traced(self, z: Any) -> Any:
        """Return theta (dim,) of z, by JAX's own arithmetic."""
        is_double = z.dtype == jnp.float64
        u = jnp.clip(
            special.ndtr(z), _FINEST if is_double else _LEAST, _LAST if is_double else _MOST
        )
        return jnp.asarray(self.transform(u[None])[0] if self.vectorized else self.transform(u))

    def on_host(self, rows: np.ndarray) -> np.ndarray:
        """Return theta of every row z (points, dim), by NumPy in float64."""
        u = np.clip(ndtr(np.asarray(rows, np.float64)), _FINEST, _LAST)
        theta = call_rows(self.transform, u.copy(), self.vectorized, "prior_transform", self.label)
        return self._finite(theta, u)

    def called(self, z: Any) -> Any:
        """Return theta of z, by a program that calls NumPy on the host."""
        shape = jax.ShapeDtypeStruct((self.dim,), jnp.float32)

        def of_points(z):
            rows = np.asarray(z, np.float64)
            theta = self.on_host(rows.reshape(-1, self.dim))
            return theta.reshape(rows.shape).astype(np.float32)

        return call_on_host(of_points, shape, z.astype(jnp.float32)).astype(z.dtype)

    def many(self, rows: np.ndarray) -> np.ndarray:
        """Return theta of rows (points, dim), from Python."""
        if self.is_numpy:
            return self.on_host(rows)
        theta = jax.jit(jax.vmap(self.traced))(np.asarray(rows, np.float32))
        return np.asarray(theta, np.float64)

    def _kinds(self) -> tuple[bool, bool]:
        """Check whether JAX traces it and whether NumPy alone computes it; refuse one of neither kind."""
        middle = np.full((1, self.dim) if self.vectorized else self.dim, 0.5)
        try:
            self._shape()
        except Exception as failure:
            argument = f"prior_transform of {self.label}"
            takes = f"one point of the unit cube, of shape {middle.shape}"
            check_numpy(self.transform, middle, failure, argument, takes)
            return False, True
        return True, is_numpy(self.transform, middle)

    def _check(self) -> None:
        """Refuse a transform whose parameters are not finite, or of another shape."""
        rows = np.random.default_rng(0).normal(size=(16, self.dim))
        rows[0], rows[1], rows[2] = 0, 4, -4
        if self.is_numpy:
            self.on_host(rows)
        elif (shape := self._shape()) == (self.dim,):
            self._finite(self.many(rows), ndtr(rows))
        else:
            self._finite(np.zeros((1, *shape)), ndtr(rows[:1]))

    def _shape(self) -> tuple[int, ...]:
        """Return the shape of the parameters, by tracing."""
        z = jax.ShapeDtypeStruct((self.dim,), jnp.float32)
        return jax.eval_shape(self.traced, z).shape

    def _finite(self, theta: Any, u: np.ndarray) -> np.ndarray:
        try:
            array = np.asarray(theta, np.float64)
            shape = array.shape
        except (TypeError, ValueError):
            array, shape = np.empty(0), "of several lengths"
        if shape != u.shape:
            got = shape[1:] if isinstance(shape, tuple) and shape[:1] == u.shape[:1] else shape
            raise FunctionError(
                f"prior_transform of {self.label} must return {self.dim} parameters for each point of "
                f"the unit cube, got shape {got}."
            )
        wrong = np.flatnonzero(~np.isfinite(array).all(1))
        if wrong.size:
            with np.printoptions(precision=4):
                raise FunctionError(
                    f"prior_transform of {self.label} must return finite parameters, got "
                    f"{array[wrong[0]]} at u = {u[wrong[0]]}: it must be defined on all of the open unit "
                    "cube."
                )
        return array
