"""A prior that is a transform of the unit cube, as nested samplers take it.

    theta = t(u),    u = Phi(z),    z standard normal

so that theta has the prior, and z are the annealed coordinates. u stays inside (0, 1), in float32 too.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special
from scipy.special import ndtr

from annealz.core.failures import FunctionError, call_on_host
from annealz.models.functions.host_function import called
from annealz.models.functions.recognise import is_numpy, traced_error

_LEAST, _MOST = np.finfo(np.float32).tiny, 1 - np.finfo(np.float32).epsneg
_FINEST, _LAST = np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg


class Cube:
    """The transform of users, of one point (num_dims,) or with `vectorized` of many."""

    def __init__(
        self, transform: Callable[[Any], Any], num_dims: int, label: str, vectorized: bool
    ):
        self.transform, self.num_dims = transform, num_dims
        self.label, self.vectorized = label, vectorized
        self.is_traced, self.is_numpy = self._kinds()
        self._check()

    def traced(self, z: Any) -> Any:
        """theta (num_dims,) of z, by JAX's own arithmetic."""
        is_double = z.dtype == jnp.float64
        u = jnp.clip(
            special.ndtr(z), _FINEST if is_double else _LEAST, _LAST if is_double else _MOST
        )
        return jnp.asarray(self.transform(u[None])[0] if self.vectorized else self.transform(u))

    def on_host(self, rows: np.ndarray) -> np.ndarray:
        """theta of every row z (points, num_dims), by NumPy in float64."""
        u = np.clip(ndtr(np.asarray(rows, np.float64)), _FINEST, _LAST)
        if self.vectorized:
            theta = called(self.transform, u.copy(), "prior_transform", self.label)
        else:
            theta = [called(self.transform, one.copy(), "prior_transform", self.label) for one in u]
        return self._finite(theta, u)

    def called(self, z: Any) -> Any:
        """theta of z, by a program that calls NumPy on the host."""
        shape = jax.ShapeDtypeStruct((self.num_dims,), jnp.float32)

        def of_points(z):
            rows = np.asarray(z, np.float64)
            theta = self.on_host(rows.reshape(-1, self.num_dims))
            return theta.reshape(rows.shape).astype(np.float32)

        return call_on_host(of_points, shape, z.astype(jnp.float32)).astype(z.dtype)

    def many(self, rows: np.ndarray) -> np.ndarray:
        """theta of rows (points, num_dims), from Python."""
        if self.is_numpy:
            return self.on_host(rows)
        theta = jax.jit(jax.vmap(self.traced))(np.asarray(rows, np.float32))
        return np.asarray(theta, np.float64)

    def _kinds(self) -> tuple[bool, bool]:
        """Whether JAX traces it, and whether NumPy alone computes it; one of them, or it is refused."""
        middle = np.full((1, self.num_dims) if self.vectorized else self.num_dims, 0.5)
        failure = None
        try:
            jax.eval_shape(self.traced, jax.ShapeDtypeStruct((self.num_dims,), jnp.float32))
        except Exception as error:
            failure = error
        takes = f"one point of the unit cube, of shape {middle.shape}"
        argument = f"prior_transform of {self.label}"
        try:
            is_numpys = is_numpy(self.transform, middle)
        except Exception as error:
            is_numpys = False
            if isinstance(failure, jax.errors.JAXTypeError):
                failure = error
        if failure is not None and not is_numpys:
            raise traced_error(failure, argument, takes) from failure
        return failure is None, is_numpys

    def _check(self) -> None:
        """Refuse a transform whose parameters are not finite, or of another shape."""
        rows = np.random.default_rng(0).normal(size=(16, self.num_dims))
        rows[0], rows[1], rows[2] = 0, 4, -4
        if not self.is_numpy:
            shape = jax.eval_shape(
                self.traced, jax.ShapeDtypeStruct((self.num_dims,), jnp.float32)
            ).shape
            if shape == (self.num_dims,):
                self._finite(self.many(rows), ndtr(rows))
            else:
                self._finite(np.zeros((1, *shape)), ndtr(rows[:1]))
        else:
            self.on_host(rows)

    def _finite(self, theta: Any, u: np.ndarray) -> np.ndarray:
        try:
            array = np.asarray(theta, np.float64)
            shape = array.shape
        except (TypeError, ValueError):
            array, shape = np.empty(0), "of several lengths"
        if shape != u.shape:
            got = shape[1:] if isinstance(shape, tuple) and shape[:1] == u.shape[:1] else shape
            raise FunctionError(
                f"prior_transform of {self.label} must return {self.num_dims} parameters for each point of "
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
