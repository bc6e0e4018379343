"""The evidence of a NumPyro model, as a log density over the reals.

NumPyro moves every latent variable to the reals by the bijection of its support, and its potential energy
holds the logarithms of the Jacobians, so that

    fn(x) = -potential(x) = log p(data, theta(x)) + log |d theta / dx|,      Z = ∫ p(data, theta) d theta

is the probability of what the model observes. `numpyro.factor` adds to it as it is. Discrete latent
variables of finite support are summed out by NumPyro itself (funsor).

The base is the prior: the same model without what is observed, which is drawn from as NumPyro does it.
"""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from annealz.bases.prior import PriorBase
from annealz.core.failures import one_line
from annealz.models.layout import Parameters
from annealz.models.log_density import LogDensity
from annealz.models.priors.variable import NUM_STARTS, finite


def from_numpyro(
    model: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    dtype: str | None = None,
    **kwargs: Any,
) -> LogDensity:
    """Return the density of a NumPyro model's latent variables; log Z is the evidence.

    The base is the prior. Discrete latent variables of finite support are summed out where funsor is
    installed. `dtype` "float64" evaluates the model in float64; other arguments are the model's own.

    Examples
    --------
    >>> import annealz
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def coin(heads):
    ...     bias = numpyro.sample("bias", dist.Beta(1.0, 1.0))
    ...     numpyro.sample("heads", dist.Binomial(4, bias), obs=heads)
    >>> model = annealz.from_numpyro(coin, 3)  # of log Z = log 1/5
    >>> model.prior.name, model.parameters.names
    ('prior', ('bias',))
    """
    try:
        from numpyro import handlers
        from numpyro.infer.util import initialize_model
    except ImportError as error:
        raise ValueError(
            "from_numpyro needs NumPyro, which is not installed: pip install 'annealz[numpyro]'."
        ) from error
    if not callable(model):
        raise ValueError(f"model must be a function of NumPyro's, got {type(model).__name__}.")

    def traced(key):
        return handlers.trace(handlers.seed(model, key)).get_trace(*args, **kwargs)

    try:
        trace = traced(jax.random.key(0))
    except Exception as error:
        raise ValueError(
            f"model must run with the arguments that are given, and it failed: {one_line(error)}."
        ) from error
    sites = {key: site for key, site in trace.items() if site["type"] == "sample"}
    latent = {key: site for key, site in sites.items() if not site["is_observed"]}
    real = {key: site for key, site in latent.items() if not site["fn"].is_discrete}
    _check_discrete({key: site for key, site in latent.items() if key not in real})
    if not real:
        raise ValueError(
            "the model has no latent variables that are real: its evidence is its own log probability."
        )

    def initialized(model):
        with warnings.catch_warnings():  # that it sums out discrete variables, which is asked for
            warnings.simplefilter("ignore", FutureWarning)
            return initialize_model(jax.random.key(0), model, model_args=args, model_kwargs=kwargs)

    info = initialized(model)
    first, unravel = ravel_pytree(info.param_info.z)
    potential, shown = info.potential_fn, info.postprocess_fn

    def draw(key):
        return finite(ravel_pytree(_unconstrained(traced(key), real))[0])

    def constrain(rows):
        values = jax.jit(jax.vmap(lambda x: shown(unravel(x))))(jnp.asarray(rows, jnp.float32))
        return {key: np.asarray(value) for key, value in values.items() if key not in hidden}

    def unconstrain(values):
        def row(values):
            fixed = handlers.substitute(handlers.seed(model, 0), data=values)
            trace = handlers.trace(fixed).get_trace(*args, **kwargs)
            return ravel_pytree(_unconstrained(trace, real))[0]

        given = {key: jnp.asarray(values[key], jnp.float32) for key in real}
        return np.asarray(jax.jit(jax.vmap(row))(given))

    hidden = {key for key in latent if key not in real}
    names = [key for key in jax.eval_shape(lambda: shown(unravel(first))) if key not in hidden]
    prior = None
    if not any(_is_reweighted(site) for site in latent.values()):
        unseen = handlers.block(model, hide=[key for key in sites if key not in latent])
        before = initialized(unseen).potential_fn
        prior = PriorBase(draw, lambda x: -before(unravel(x)), first.size)
    keys = jax.random.split(jax.random.key(0), NUM_STARTS)
    return LogDensity(
        lambda x: -potential(unravel(x)),
        first.size,
        name or getattr(model, "__name__", "numpyro"),
        starts=np.asarray(jax.jit(jax.vmap(draw))(keys)),
        prior=prior,
        parameters=Parameters(tuple(names), constrain, unconstrain),
        dtype=dtype,
    )


def _check_discrete(discrete: dict[str, Any]) -> None:
    """Refuse discrete latent variables that cannot be summed out here."""
    endless = [key for key, site in discrete.items() if not site["fn"].has_enumerate_support]
    if endless:
        raise ValueError(
            f"the latent variables of the model must be real or of finite support, and "
            f"{', '.join(endless)} is discrete without end: sum it out, or observe it."
        )
    if not discrete:
        return
    try:
        import funsor  # noqa: F401 (only whether it is there)
    except ImportError as error:
        raise ValueError(
            f"the latent variables of the model must be real, and {', '.join(discrete)} is discrete: "
            "install funsor, by which NumPyro sums it out, or observe it."
        ) from error


def _unconstrained(trace: dict[str, Any], keys: Any) -> dict[str, Any]:
    """Move the real latent variables of a trace to the reals, by the bijections of their supports."""
    from numpyro.distributions import biject_to

    return {key: biject_to(trace[key]["fn"].support).inv(trace[key]["value"]) for key in keys}


def _is_reweighted(site: dict[str, Any]) -> bool:
    """Check whether a latent variable's density is not that of its draws: improper, masked or scaled."""
    from numpyro.distributions import ImproperUniform, MaskedDistribution

    law = site["fn"]
    while hasattr(law, "base_dist"):
        if isinstance(law, MaskedDistribution):
            return True
        law = law.base_dist
    return site["scale"] is not None or isinstance(law, ImproperUniform | MaskedDistribution)
