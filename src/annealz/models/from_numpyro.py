"""The evidence of a NumPyro model, as a log density over the reals.

NumPyro moves every latent variable to the reals by the bijection of its support, and its potential energy
holds the logarithms of the Jacobians, so that

    fn(x) = -potential(x) = log p(data, theta(x)) + log |d theta / dx|,      Z = ∫ p(data, theta) d theta

is the probability of what the model observes. `numpyro.factor` adds to it as it is.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from annealz.models.log_density import LogDensity

__all__ = ["from_numpyro"]

_NUM_STARTS = 8


def from_numpyro(
    model: Callable[..., Any], *args: Any, name: str | None = None, **kwargs: Any
) -> LogDensity:
    """The density of a NumPyro model's latent variables, given these arguments; its log Z is the evidence.

    Draws of the prior are where modes are looked for. Discrete latent variables must be summed out.

    Examples
    --------
    >>> import annealz
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def coin(heads):
    ...     bias = numpyro.sample("bias", dist.Beta(1.0, 1.0))
    ...     numpyro.sample("heads", dist.Binomial(4, bias), obs=heads)
    >>> model = annealz.from_numpyro(coin, 3)
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     base="standard",
    ...     kernel=annealz.RandomWalk(step_size=1.0),
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> abs(estimate.log_z + 1.6094) < 5 * estimate.std_err  # log 1/5
    True
    """
    try:
        from numpyro import handlers
        from numpyro.infer.util import initialize_model, unconstrain_fn
    except ImportError as error:
        raise ValueError(
            "from_numpyro needs NumPyro, which is not installed: pip install 'annealz[numpyro]'."
        ) from error

    with handlers.seed(rng_seed=0):
        trace = handlers.trace(model).get_trace(*args, **kwargs)
    latent = {
        key: site
        for key, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    discrete = [key for key, site in latent.items() if site["fn"].is_discrete]
    if discrete:
        raise ValueError(
            f"the latent variables of the model must be real, and {', '.join(discrete)} is discrete: sum "
            "it out, or observe it."
        )
    if not latent:
        raise ValueError(
            "the model has no latent variables: its evidence is its own log probability."
        )

    info = initialize_model(jax.random.key(0), model, model_args=args, model_kwargs=kwargs)
    first, unravel = ravel_pytree(info.param_info.z)
    potential = info.potential_fn

    def prior_draw(seed: int) -> np.ndarray:
        with handlers.seed(rng_seed=seed):
            drawn = handlers.trace(model).get_trace(*args, **kwargs)
        values = {key: drawn[key]["value"] for key in latent}
        return np.asarray(ravel_pytree(unconstrain_fn(model, args, kwargs, values))[0])

    starts = np.stack([prior_draw(seed) for seed in range(_NUM_STARTS)])
    label = name or getattr(model, "__name__", "numpyro")
    return LogDensity(lambda x: -potential(unravel(x)), first.size, label, starts=starts)
