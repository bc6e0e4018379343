"""The prior of all parameters: a pytree of independent distributions.

    x = (x_1, x_2, ...)      theta = pytree of value_i(x_i)      log p(x) = sum_i log p_i(x_i)

Where all coordinates are standard normal the base is that Gaussian, else a PriorBase.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import GaussianBase
from annealz.bases.prior import PriorBase
from annealz.models.layout import Layout, Parameters
from annealz.models.priors.scipy_variable import is_scipy, scipy_variable
from annealz.models.priors.variable import NUM_STARTS, Variable, is_numpyro, numpyro_variable


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
