"""Evaluations of a density on the host, counted: values, gradients, second derivatives."""

import dataclasses
from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core import interrupts
from annealz.core.arrays import on_device
from annealz.models.log_density import LogDensity


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """A density whose evaluations are counted; second derivatives count as dim evaluations."""

    model: LogDensity
    spent: Counter[str] = dataclasses.field(default_factory=Counter)

    def of(self, model: LogDensity) -> "Evaluator":
        """Return the evaluator of another density, counted together with this one."""
        return Evaluator(model, self.spent)

    @property
    def evaluations(self) -> int:
        return self.spent.total()

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return log p*(x) of every row; NaN as it comes."""
        self.spent["values"] += len(rows)
        values = np.asarray(_values(self.model, on_device(rows)), np.float64)
        interrupts.check()
        return values

    def values_along_rays(
        self,
        centre: np.ndarray,
        root: np.ndarray,
        radii: np.ndarray,
        num_rays: int,
        generator: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rays S u (rays, dim), |u|^2 = dim, and log p*(c + r S u) (radii, rays), -inf for NaN."""
        dim = centre.size
        rays = generator.normal(size=(num_rays, dim))
        rays *= np.sqrt(dim) / np.linalg.norm(rays, axis=1, keepdims=True)
        rays = rays @ root.T
        points = centre + radii[:, None, None] * rays
        logs = self.values(points.reshape(-1, dim)).reshape(len(radii), num_rays)
        return rays, np.where(np.isnan(logs), -np.inf, logs)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log p*(x) and its gradient."""
        self.spent["gradients"] += 1
        value, gradient = _value_and_gradient(self.model, on_device(x))
        return float(value), np.asarray(gradient, np.float64)

    def values_and_gradients(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p*(x) and its gradient, of every row."""
        self.spent["gradients"] += len(rows)
        values, gradients = _values_and_gradients(self.model, on_device(rows))
        return np.asarray(values, np.float64), np.asarray(gradients, np.float64)

    def rounding(self, rows: np.ndarray) -> float:
        """Return the rounding of one value near these rows; it takes a value in either precision."""
        self.spent["rounding"] += self.model.fn.num_roundings * len(rows)
        return self.model.rounding(rows)

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the second derivatives of log p*."""
        self.spent["curvature"] += self.model.dim
        return np.asarray(_hessian(self.model, on_device(x)), np.float64)


def _one(model: LogDensity):
    return lambda x: model.log_density(x[None])[0]


@eqx.filter_jit
def _values(model, rows):
    return model.log_density(rows)


@eqx.filter_jit
def _value_and_gradient(model, x):
    return jax.value_and_grad(_one(model))(x)


@eqx.filter_jit
def _values_and_gradients(model, rows):
    return jax.vmap(jax.value_and_grad(_one(model)))(rows)


@eqx.filter_jit
def _hessian(model, x):
    gradient = jax.grad(_one(model))
    return jax.vmap(lambda v: jax.jvp(gradient, (x,), (v,))[1])(jnp.eye(x.shape[0], dtype=x.dtype))
