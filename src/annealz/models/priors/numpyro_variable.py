"""A parameter under one of NumPyro's distributions, moved to the reals by the bijection of its support.

    theta = b(x),     log p(x) = log p(theta) + log |d theta / dx|

Any continuous distribution that can be drawn from and has a density: Dirichlet, LKJ and others too.
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from annealz.models.priors.variable import Variable

_FAR = 80.0  # where a coordinate is put whose draw was rounded onto the edge of its support


def is_numpyro(given: Any) -> bool:
    """Whether it is one of NumPyro's distributions; NumPyro is not imported to see that."""
    module = sys.modules.get("numpyro.distributions")
    return module is not None and isinstance(given, module.Distribution)


def numpyro_variable(name: str, given: Any) -> Variable:
    """The parameter of this name; a ValueError where the distribution has no density."""
    from numpyro.distributions import biject_to

    kind = type(given).__name__
    remedy = "sum it out, or take a continuous distribution that can be drawn from."
    if given.is_discrete:
        raise ValueError(
            f"prior of {name} must be a continuous distribution with a density, and {kind} is discrete: "
            f"{remedy}"
        )
    shape = tuple(given.batch_shape) + tuple(given.event_shape)
    try:
        bijection = biject_to(given.support)
        inner = tuple(bijection.inverse_shape(shape))
        jax.eval_shape(lambda key: given.log_prob(given.sample(key)), jax.random.key(0))
    except Exception as error:
        raise ValueError(
            f"prior of {name} must be a distribution with a density and with draws, and {kind} is not "
            f"({type(error).__name__}): {remedy}"
        ) from error
    size = int(np.prod(inner))

    def value(x):
        return bijection(x.reshape(inner))

    def density(x):
        x = x.reshape(inner)
        theta = bijection(x)
        jacobian = bijection.log_abs_det_jacobian(x, theta)
        return given.log_prob(theta).sum() + jnp.sum(jacobian)

    def draw(key):
        x = bijection.inv(given.sample(key)).reshape(size).astype(jnp.float32)
        return jnp.nan_to_num(x, posinf=_FAR, neginf=-_FAR)

    def coordinates(values):
        rows = jax.jit(jax.vmap(bijection.inv))(np.asarray(values, np.float32))
        return np.asarray(rows, np.float64).reshape(-1, size)

    return Variable(shape, size, value, coordinates, density, draw)
