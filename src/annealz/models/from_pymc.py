"""The evidence of a PyMC model, through PyMC's own JAX functions.

PyMC moves every free variable to the reals by a transform, and its log probability holds the logarithms of
the Jacobians, so that with x the values of all variables in one vector

    f(x) = model.logp() = log p(data, theta(x)) + log |d theta / dx|,       Z = ∫ p(data, theta) d theta

The base is the prior of the free variables: drawn by the model's own random graph, which PyTensor turns
into JAX, with a key per chain. Where JAX lacks one of its distributions there is no such base.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from annealz.bases.prior import PriorBase
from annealz.core.arrays import in_float64
from annealz.core.own_arrays import with_own_arrays
from annealz.models.functions import JaxFunction
from annealz.models.layout import Layout, Parameters
from annealz.models.log_density import LogDensity, check_dtype
from annealz.models.priors.variable import NUM_STARTS


def from_pymc(model: Any, *, name: str | None = None, dtype: str = "float64") -> LogDensity:
    """Return the density of a PyMC model's free variables; log Z is the evidence of what it observes.

    The base is the prior. Potentials belong to the density, not to the prior. Results show the free and the
    deterministic variables by name, in their own space. Discrete free variables must be summed out.

    Parameters
    ----------
    model : a `pymc.Model`
    name : what results call it
    dtype : in which the log probability is evaluated; PyMC's own float64, or "float32"

    Examples
    --------
    >>> import annealz
    >>> import pymc as pm
    >>> with pm.Model() as coin:
    ...     bias = pm.Beta("bias", 1.0, 1.0)
    ...     heads = pm.Binomial("heads", 4, bias, observed=3)
    >>> annealz.from_pymc(coin, name="coin").parameters.names  # of log Z = log 1/5
    ('bias',)
    """
    try:
        with _undisturbed():
            import pymc
            from pymc.sampling.jax import get_jaxified_graph
    except ImportError as error:
        raise ValueError(
            "from_pymc needs PyMC, which is not installed: pip install 'annealz[pymc]'."
        ) from error
    if not isinstance(model, pymc.Model):
        raise ValueError(f"model must be a pymc.Model, got {type(model).__name__}.")
    free = list(model.free_RVs)
    discrete = [
        variable.name for variable in free if variable.dtype.startswith(("int", "uint", "bool"))
    ]
    if discrete:
        raise ValueError(
            f"the free variables of a PyMC model must be real, and {', '.join(discrete)} is discrete: sum "
            "it out, with pymc.Mixture or pymc_extras.marginalize, or observe it."
        )
    if not free:
        raise ValueError(
            "the model has no free variables: its evidence is its own log probability, model.logp()."
        )
    check_dtype(dtype)
    jaxify: Callable[..., Any] = get_jaxified_graph
    with _undisturbed():
        graphs = _Graphs(model, free)
        draws = pymc.draw(graphs.drawn, NUM_STARTS, random_seed=0, mode="FAST_COMPILE")
        order = [rv.name for rv in free]
        drawn = dict(zip(order, draws, strict=True))
        layout = Layout.of({name: values[0] for name, values in drawn.items()})
        types = [value.dtype for value in model.value_vars]
        logp = jaxify(inputs=model.value_vars, outputs=[model.logp()])
        show = jaxify(inputs=model.value_vars, outputs=graphs.shown)
        hide = jaxify(inputs=graphs.inputs, outputs=graphs.hidden)
        log_prior = jaxify(inputs=model.value_vars, outputs=[model.logp(vars=free)])

    def split(x):
        values = layout.split(x)
        return [values[name].astype(kind) for name, kind in zip(order, types, strict=True)]

    def flat(values):
        return ravel_pytree(dict(zip(order, values, strict=True)))[0]

    def prior_density(x):
        return log_prior(*split(x))[0]

    def constrain(rows):
        with in_float64():
            values = jax.jit(jax.vmap(lambda x: show(*split(x))))(np.asarray(rows, np.float64))
            return dict(zip(graphs.names, map(np.asarray, values), strict=True))

    def unconstrain(given):
        with in_float64():
            values = [jnp.asarray(given[name], jnp.float64) for name in order]
            return np.asarray(jax.jit(jax.vmap(lambda *v: flat(hide(*v))))(*values))

    density = JaxFunction(with_own_arrays(prior_density), dtype)
    draw = _draw(graphs, flat, jaxify)
    return LogDensity(
        lambda x: logp(*split(x))[0],
        layout.dim,
        name or getattr(model, "name", "") or "pymc",
        starts=layout.join(drawn),
        prior=None if draw is None else PriorBase(draw, density, layout.dim),
        parameters=Parameters(tuple(graphs.names), constrain, unconstrain),
        dtype=dtype,
    )


class _Graphs:
    """Expressions of PyTensor: draws of the value variables, variables in their own space, and back."""

    def __init__(self, model: Any, free: list[Any]):
        from pytensor.graph.replace import clone_replace

        def moved(variable, value, inputs):
            transform = model.rvs_to_transforms[variable]
            return value if transform is None else transform.forward(value, *inputs)

        shown = [*free, *model.deterministics]
        self.names = [variable.name for variable in shown]
        self.shown = model.replace_rvs_by_values(shown)
        self.drawn = [moved(rv, rv, rv.owner.inputs) for rv in free]
        self.inputs = [rv.type() for rv in free]
        back = [moved(rv, rv.copy(), rv.owner.inputs) for rv in free]
        self.hidden = clone_replace(back, dict(zip(free, self.inputs, strict=True)))


def _draw(
    graphs: _Graphs, flat: Callable[[Any], Any], jaxified: Callable[..., Any]
) -> Callable[[Any], Any] | None:
    """Return a draw of x from a key, by the model's own random graph; None where JAX cannot run it."""
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor.random.type import RandomType

    def draw(key):
        keys = jax.random.split(key, len(fresh))
        states = [{"bit_generator": 1, "jax_state": jax.random.key_data(key)} for key in keys]
        with warnings.catch_warnings():  # float64 is asked for, and float32 drawn
            warnings.simplefilter("ignore")
            return flat(drawn(*states)).astype(jnp.float32)

    try:
        with _undisturbed():
            sources = [v for v in graph_inputs(graphs.drawn) if isinstance(v.type, RandomType)]
            fresh = [source.type() for source in sources]
            renewed = clone_replace(graphs.drawn, dict(zip(sources, fresh, strict=True)))
            drawn = jaxified(inputs=fresh, outputs=renewed)
            jax.eval_shape(lambda: draw(jax.random.key(0)))
    except Exception:  # of many kinds, of distributions that PyTensor has not for JAX
        return None
    return draw


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Set back JAX's flag for float64 and XLA's number of devices, which PyTensor and PyMC set."""
    flag, flags = jax.config.read("jax_enable_x64"), os.environ.get("XLA_FLAGS")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        jax.config.update("jax_enable_x64", flag)
        if flags is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = flags
