"""A prior that is a transform of the unit cube, as nested samplers take it.

    theta = t(u),    u = Phi(z),    z standard normal

so that theta has the prior, and z are the annealed coordinates. u stays inside (0, 1), in float32 too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special
from scipy.special import ndtr

from annealz.core.failures import FunctionError, call_on_host
from annealz.models.host_function import call_rows, check_numpy, is_numpy
from annealz.models.layout import Parameters
from annealz.models.priors.joint import normal_base
from annealz.models.priors.variable import NUM_STARTS

_LEAST, _MOST = np.finfo(np.float32).tiny, 1 - np.finfo(np.float32).epsneg
_FINEST, _LAST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg


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
