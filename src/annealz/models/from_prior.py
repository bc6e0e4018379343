"""The evidence of a likelihood under a prior.

    Z = ∫ L(theta) p(theta) d theta = ∫ exp f(x) dx,        f(x) = log L(theta(x)) + log p(x)

over unconstrained coordinates x of the parameters, with the prior as the exact base, so that the path is

    p_beta ∝ prior × likelihood^beta

A transform of the unit cube (dynesty, UltraNest, nautilus) has standard normal coordinates z,
theta = t(Phi(z)); distributions of SciPy and NumPyro have those of `priors/`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from annealz.core.failures import user_errors
from annealz.core.own_arrays import with_own_arrays
from annealz.models.functions import JaxFunction, Posterior
from annealz.models.host_function import (
    HostFunction,
    at_point,
    check_numpy,
    is_numpy,
    trace_failure,
)
from annealz.models.log_density import LogDensity, check_dtype
from annealz.models.priors.prior import Cube, JointPrior


@user_errors()
def from_prior(
    log_likelihood: Callable[[Any], Any],
    prior_transform: Callable[[Any], Any] | None = None,
    num_dims: int | None = None,
    *,
    prior: Any = None,
    name: str | None = None,
    names: Sequence[str] | None = None,
    vectorized: bool = False,
    dtype: str | None = None,
) -> LogDensity:
    """Return the density of a likelihood times a prior: log Z is the evidence, and the base is the prior.

    The prior is a transform of the unit cube, or `prior=` distributions. Functions written with jax.numpy
    are differentiated; those written with NumPy are recognised, called on the host in float64, and chains
    then walk without gradients.

    Parameters
    ----------
    log_likelihood : of the parameters, one real number; -inf where the likelihood is zero
    prior_transform : the unit cube (num_dims,) to the parameters (num_dims,), as dynesty, UltraNest and
        nautilus take it
    num_dims : how many parameters the transform has
    prior : instead of a transform: a dictionary, or any pytree, of frozen distributions of SciPy and
        distributions of NumPyro. The likelihood takes the same pytree of values.
    name : what results call it
    names : of the parameters of a transform, one each; by default they are one vector, theta
    vectorized : whether the functions take many points at once, the points first, and return as many
        values
    dtype : "float32" or "float64", in which a likelihood of JAX is evaluated; float32 by default

    Examples
    --------
    >>> import annealz
    >>> import scipy.stats
    >>> box = annealz.from_prior(lambda x: -0.5 * (x @ x), lambda u: 20 * u - 10, 2)
    >>> ball = annealz.from_prior(lambda p: -(p["x"] ** 2), prior={"x": scipy.stats.norm(0, 5)})
    >>> box.dim, ball.parameters.names, ball.prior.name
    (2, ('x',), 'prior')
    """
    if not callable(log_likelihood):
        raise ValueError(
            f"log_likelihood must be a function of the parameters, got {type(log_likelihood).__name__}."
        )
    own = getattr(log_likelihood, "__name__", type(log_likelihood).__name__)
    label = name or ("posterior" if own in ("<lambda>", "partial") else own)
    precision = check_dtype(dtype)
    if (prior is None) == (prior_transform is None):
        which = "both" if prior is not None else "neither"
        raise ValueError(
            f"from_prior takes a prior_transform with num_dims, or prior=, got {which} of them."
        )
    if prior is None:
        drawn = Cube(prior_transform, num_dims, names, label, vectorized)
    elif num_dims is None and names is None:
        drawn = JointPrior(prior)
    else:
        raise ValueError(
            "num_dims and names belong to a prior_transform: leave them out with prior=."
        )
    return _posterior(log_likelihood, drawn, label, vectorized, precision)


def _posterior(
    log_likelihood: Callable[[Any], Any],
    prior: Cube | JointPrior,
    label: str,
    vectorized: bool,
    dtype: str,
) -> LogDensity:
    def of_one(x):
        values = prior.values(x)
        if vectorized:
            return log_likelihood(jax.tree.map(lambda value: value[None], values))[0]
        return log_likelihood(values)

    if dtype == "float64":
        of_one = with_own_arrays(of_one)
    argument, points = f"log_likelihood of {label}", prior.point()
    point = points if vectorized else at_point(points, 0)
    failure = trace_failure(of_one, prior.dim, dtype, argument)
    if failure is None and (prior.is_traced or not is_numpy(log_likelihood, point)):
        likelihood = JaxFunction(of_one, dtype, has_gradient=prior.is_traced)
    else:
        if failure is not None:
            check_numpy(log_likelihood, point, failure, argument, prior.takes)
        before, place = prior.to_host()
        likelihood = HostFunction(
            log_likelihood, place, "log_likelihood", label, vectorized, before
        )
    return LogDensity(
        Posterior(likelihood, lambda x: prior.log_density(x)),
        prior.dim,
        label,
        starts=prior.starts(),
        prior=prior.base,
        parameters=prior.parameters,
    )
