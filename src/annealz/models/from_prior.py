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
import jax.numpy as jnp
import numpy as np

from annealz.core.failures import user_errors
from annealz.core.own_arrays import with_own_arrays
from annealz.models.functions.abstract import AbstractFunction
from annealz.models.functions.host_function import HostFunction
from annealz.models.functions.jax_function import JaxFunction
from annealz.models.functions.posterior import Posterior
from annealz.models.functions.recognise import is_numpy, shape_when_traced, traced_error
from annealz.models.layout import Layout
from annealz.models.log_density import LogDensity, check_dtype
from annealz.models.parameters import Parameters
from annealz.models.priors.cube import Cube
from annealz.models.priors.joint import JointPrior, normal_base

_NUM_STARTS = 8


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
    """The density of a likelihood times a prior; its log Z is the evidence, and its base is the prior.

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
    >>> import numpy as np
    >>> def log_likelihood(theta):
    ...     return -0.5 * np.dot(theta - 1, theta - 1) - np.log(2 * np.pi)
    >>> def prior_transform(u):
    ...     return 20 * u - 10
    >>> model = annealz.from_prior(log_likelihood, prior_transform, 2)
    >>> model.dim, model.prior.name, model.is_differentiable
    (2, 'prior', False)

    Distributions by name:

    >>> import jax.numpy as jnp
    >>> import scipy.stats
    >>> heads = annealz.from_prior(
    ...     lambda p: 3 * jnp.log(p["bias"]) + jnp.log1p(-p["bias"]),
    ...     prior={"bias": scipy.stats.uniform()},
    ... )
    >>> estimate = annealz.estimate_log_z(
    ...     heads,
    ...     base=heads.prior,
    ...     kernel=annealz.RandomWalk(1.0),
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> abs(estimate.log_z + 2.9957) < 5 * estimate.std_err  # log B(4, 2) = -log 20
    True
    """
    if not callable(log_likelihood):
        raise ValueError(
            f"log_likelihood must be a function of the parameters, got {type(log_likelihood).__name__}."
        )
    label = name or _named(log_likelihood)
    precision = check_dtype(dtype)
    if (prior is None) == (prior_transform is None):
        which = "both" if prior is not None else "neither"
        raise ValueError(
            f"from_prior takes a prior_transform with num_dims, or prior=, got {which} of them."
        )
    if prior is not None:
        if num_dims is not None or names is not None:
            raise ValueError(
                "num_dims and names belong to a prior_transform: leave them out with prior=."
            )
        return _by_distributions(log_likelihood, JointPrior(prior), label, vectorized, precision)
    if not callable(prior_transform):
        raise ValueError(
            "prior_transform must be a function from the unit cube to the parameters, got "
            f"{type(prior_transform).__name__}: distributions are given by prior=."
        )
    if isinstance(num_dims, bool) or not isinstance(num_dims, int | np.integer) or num_dims < 1:
        raise ValueError(
            f"num_dims must be the number of parameters, a whole number of at least 1, got {num_dims!r}."
        )
    if names is not None and (isinstance(names, str) or len(set(names)) != num_dims):
        raise ValueError(
            f"names must be {num_dims} different names, one per parameter, got {names!r}."
        )
    cube = Cube(prior_transform, int(num_dims), label, vectorized)
    return _by_cube(log_likelihood, cube, label, names, precision)


def _by_distributions(
    log_likelihood, prior: JointPrior, label: str, vectorized: bool, dtype: str
) -> LogDensity:
    def of_one(x):
        values = prior.values(x)
        if vectorized:
            return log_likelihood(jax.tree.map(lambda value: value[None], values))[0]
        return log_likelihood(values)

    keys = jax.random.split(jax.random.key(0), _NUM_STARTS)
    starts = np.asarray(jax.jit(jax.vmap(prior.draw))(keys))
    layout = prior.layout

    def first():
        flat = np.asarray(jax.jit(_flat(prior))(starts[0]), np.float64)
        return layout.split(flat[None] if vectorized else flat)

    takes = f"the values of {', '.join(layout.names)}"
    if dtype == "float64":
        of_one = with_own_arrays(of_one)
    failure = _failure(of_one, prior.dim, dtype, label)
    if failure is None:
        likelihood: AbstractFunction = JaxFunction(of_one, dtype)
    else:
        _check_numpy(log_likelihood, first(), failure, label, takes)
        likelihood = HostFunction(
            log_likelihood, layout.split, "log_likelihood", label, vectorized, _flat(prior)
        )
    return LogDensity(
        Posterior(likelihood, lambda x: prior.log_density(x)),
        prior.dim,
        label,
        starts=starts,
        prior=prior.base,
        parameters=prior.parameters,
    )


def _by_cube(
    log_likelihood, cube: Cube, label: str, names: Sequence[str] | None, dtype: str
) -> LogDensity:
    dim, argument = cube.num_dims, "log_likelihood"
    to_theta = cube.traced if cube.is_traced else cube.called

    def of_one(z):
        theta = to_theta(z)
        return log_likelihood(theta[None])[0] if cube.vectorized else log_likelihood(theta)

    if dtype == "float64":
        of_one = with_own_arrays(of_one)
    failure = _failure(of_one, dim, dtype, label)
    likelihood: AbstractFunction
    theta = cube.many(np.zeros((1, dim)))
    if failure is None and cube.is_traced:
        likelihood = JaxFunction(of_one, dtype)
    elif failure is None and not _is_numpys(log_likelihood, theta, cube):
        likelihood = JaxFunction(of_one, dtype, has_gradient=False)
    else:
        if failure is not None:
            takes = f"parameters of shape ({dim},)"
            _check_numpy(
                log_likelihood, theta if cube.vectorized else theta[0], failure, label, takes
            )
        place = cube.on_host if cube.is_numpy else np.asarray
        before = None if cube.is_numpy else to_theta
        likelihood = HostFunction(log_likelihood, place, argument, label, cube.vectorized, before)
    starts = np.random.default_rng(0).normal(size=(_NUM_STARTS, dim))
    layout = Layout.of(np.zeros(dim)) if names is None else Layout.of([0.0] * dim)
    layout = Layout(layout.structure, layout.shapes, tuple(names or ("theta",)))
    return LogDensity(
        Posterior(likelihood, lambda z: -0.5 * (z**2).sum() - dim / 2 * np.log(2 * np.pi)),
        dim,
        label,
        starts=starts,
        prior=normal_base(dim),
        parameters=Parameters(
            layout.names, lambda rows: layout.by_name(layout.split(cube.many(np.asarray(rows))))
        ),
    )


def _failure(of_one, dim: int, dtype: str, label: str) -> Exception | None:
    """Why JAX cannot trace the likelihood; None where it can, and returns one real number."""
    try:
        out = shape_when_traced(of_one, dim, dtype)
    except Exception as error:
        return error
    shape = getattr(out, "shape", None)
    if shape != () or not jnp.issubdtype(out.dtype, jnp.floating):
        raise ValueError(
            f"log_likelihood of {label} must return one real number, got "
            f"{f'shape {shape}' if shape else out}."
        )
    return None


def _check_numpy(log_likelihood, point, failure: Exception, label: str, takes: str) -> None:
    """Refuse a likelihood that neither JAX nor NumPy computes."""
    argument = f"log_likelihood of {label}"
    try:
        is_numpys = is_numpy(log_likelihood, point)
    except Exception as error:
        is_jax = isinstance(failure, jax.errors.JAXTypeError)
        raise traced_error(error if is_jax else failure, argument, takes) from error
    if not is_numpys:
        raise traced_error(failure, argument, takes) from failure


def _is_numpys(log_likelihood, theta: np.ndarray, cube: Cube) -> bool:
    try:
        return is_numpy(log_likelihood, theta if cube.vectorized else theta[0])
    except Exception:
        return False


def _flat(prior: JointPrior) -> Callable[[Any], Any]:
    """x (dim,) to the values of all parameters in one vector."""
    return lambda x: jnp.concatenate([jnp.ravel(v) for v in jax.tree.leaves(prior.values(x))])


def _named(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "posterior" if name in ("<lambda>", "partial") else name
