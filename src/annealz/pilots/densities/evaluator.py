"""Evaluations of a density on the host, counted: values, gradients, second derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from annealz.core import interrupts
from annealz.core.arrays import on_device
from annealz.models.log_density import LogDensity


class Evaluator:
    """A density that counts how often it is evaluated; second derivatives count as dim evaluations."""

    def __init__(self, model: LogDensity, evaluations: int = 0):
        self.model, self.evaluations = model, evaluations

    def values(self, rows: np.ndarray) -> np.ndarray:
        """log p*(x) of every row; NaN as it comes."""
        self.evaluations += len(rows)
        values = np.asarray(_values(self.model, on_device(rows)), np.float64)
        interrupts.check()
        return values

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """log p*(x) and its gradient."""
        self.evaluations += 1
        value, gradient = _value_and_gradient(self.model, on_device(x))
        return float(value), np.asarray(gradient, np.float64)

    def values_and_gradients(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log p*(x) and its gradient, of every row."""
        self.evaluations += len(rows)
        values, gradients = _values_and_gradients(self.model, on_device(rows))
        return np.asarray(values, np.float64), np.asarray(gradients, np.float64)

    def rounding(self, rows: np.ndarray) -> float:
        """Of one value near these rows; it takes a value in either precision."""
        rounding = self.model.rounding(rows)
        self.evaluations += self.model.fn.num_roundings * len(rows)
        return rounding

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Second derivatives of log p*."""
        self.evaluations += self.model.dim
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
