"""The prior of all parameters: a pytree of independent distributions.

    x = (x_1, x_2, ...)      theta = pytree of value_i(x_i)      log p(x) = sum_i log p_i(x_i)

Where all coordinates are standard normal the base is that Gaussian, else a PriorBase.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.bases.gaussian import GaussianBase
from annealz.bases.prior import PriorBase
from annealz.models.layout import Layout
from annealz.models.parameters import Parameters
from annealz.models.priors.numpyro_variable import is_numpyro, numpyro_variable
from annealz.models.priors.scipy_variable import is_scipy, scipy_variable
from annealz.models.priors.variable import Variable


def normal_base(dim: int) -> GaussianBase:
    """Standard normal coordinates, as a prior."""
    plain = GaussianBase.standard(dim)
    return GaussianBase(plain.mean, plain.scale, "prior")


class JointPrior:
    """Of a pytree of distributions of SciPy and NumPyro."""

    def __init__(self, prior: Any):
        leaves, structure = jax.tree_util.tree_flatten_with_path(prior, is_leaf=_is_distribution)
        names = tuple(
            jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path, _ in leaves
        )
        if not leaves:
            raise ValueError("prior must hold at least one distribution, got none.")
        self.variables = tuple(
            _variable(name, given) for name, (_, given) in zip(names, leaves, strict=True)
        )
        self.layout = Layout(structure, tuple(v.shape for v in self.variables), names)
        self.dim = sum(variable.size for variable in self.variables)

    def _parts(self, x: Any) -> list[Any]:
        ends = np.cumsum([variable.size for variable in self.variables])[:-1]
        starts = [0, *ends.tolist()]
        return [
            x[..., start : start + variable.size]
            for start, variable in zip(starts, self.variables, strict=True)
        ]

    def values(self, x: Any) -> Any:
        """The pytree of parameters at x (dim,)."""
        pairs = zip(self.variables, self._parts(x), strict=True)
        return jax.tree.unflatten(self.layout.structure, [v.value(part) for v, part in pairs])

    def log_density(self, x: Any) -> Any:
        """log of the normalised density of the coordinates x (dim,)."""
        pairs = zip(self.variables, self._parts(x), strict=True)
        return sum((v.log_density(part) for v, part in pairs), jnp.float32(0))

    def draw(self, key: Any) -> Any:
        """Coordinates (dim,) drawn from the prior."""
        keys = jax.random.split(key, len(self.variables))
        return jnp.concatenate([v.draw(keys[i]) for i, v in enumerate(self.variables)])

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


def _is_distribution(given: Any) -> bool:
    return is_scipy(given) or is_numpyro(given)


def _variable(name: str, given: Any) -> Variable:
    if is_scipy(given):
        return scipy_variable(name, given)
    if is_numpyro(given):
        return numpyro_variable(name, given)
    raise ValueError(
        f"prior of {name} must be a frozen distribution of SciPy or one of NumPyro's, got "
        f"{type(given).__name__}."
    )
