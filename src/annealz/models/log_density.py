"""Any log density over the reals, from a Python function: of JAX, with its gradients, or of NumPy.

    log p*(x) = fn(x),    x (dim,) unconstrained,    Z = ∫ exp fn(x) dx

In Bayesian terms, with fn the log of prior times likelihood, log Z is the log evidence.

The digest of a density is that of the program that JAX makes of its function, with the constants in it. Of
functions that are called on the host (NumPy's) the instructions, constants, defaults, what they close over
and what they read of their module count.
"""

import abc
import functools
import time
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.abstract import AbstractBase
from annealz.core.arrays import on_device
from annealz.core.failures import one_line
from annealz.core.programs import numbers_computed
from annealz.io.fingerprint import program_digest
from annealz.io.reading import check_memory
from annealz.models.abstract import AbstractModel
from annealz.models.functions import AbstractFunction, Offset
from annealz.models.host_function import as_function
from annealz.models.layout import Layout, Parameters

_NUM_POINTS = 8
NUM_TIMED = 4  # evaluations
_BYTES_PER_VARIABLE = 200  # of the points where a function is looked at, and their gradients
BASES = ("auto", "laplace", "mixture", "pilot", "prior", "standard", "wide")


class AbstractDensity(AbstractModel):
    """A model that a user's function makes."""

    usual_chains: ClassVar[int] = 256

    fn: AbstractFunction
    label: str = eqx.field(static=True)

    @property
    def name(self) -> str:
        return self.label

    @property
    def note(self) -> str | None:
        """What users should know of how the function is evaluated, in a line, if anything."""
        return self.fn.note

    @property
    @abc.abstractmethod
    def first_points(self) -> np.ndarray:
        """Where the function is tried before anything else."""

    def seconds_per_evaluation(self) -> float:
        """Return how long an evaluation takes: the shortest of some at the first point."""
        row, seconds = self.first_points[:1], []
        for _ in range(NUM_TIMED):  # the first may compile
            began = time.perf_counter()
            self._values(row)
            seconds.append(time.perf_counter() - began)
        return min(seconds)

    def _values(self, rows: np.ndarray) -> np.ndarray:
        """Return log p* of these rows, float64."""
        return np.asarray(_evaluated(self, rows), np.float64)


class LogDensity(AbstractDensity):
    """An unnormalised density over R^dim.

    Parameters
    ----------
    fn : log p*(x) of one position (dim,), a scalar; -inf where the density is zero. Written with jax.numpy
        it is differentiated; written with NumPy it is recognised, called on the host in float64, and has
        no gradients.
    dim : how many real variables; or an example of the parameters, a dictionary or any pytree of real
        arrays, which `fn` then takes
    name : what results call it
    starts : (points, dim) where to look for modes, beside the origin; by default some draws around it
    prior : the base that the density is a product with, if any: where chains start by default
    parameters : names of the variables, and the way to their own space; by default those of the example,
        or one vector x
    is_differentiable : False keeps JAX from taking gradients of `fn`; chains then walk at random
    vectorized : whether `fn` takes many positions at once, (points, dim), and returns as many numbers
    dtype : "float32" or "float64", in which a function of JAX is evaluated. By default float32, unless
        JAX is set to float64. Functions of NumPy are called in float64.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2)
    >>> estimate = annealz.estimate_log_z(model, base="standard", num_steps=50, num_chains=50)
    >>> abs(estimate.log_z - 1.8379) < 5 * estimate.std_err  # log 2 pi
    True
    """

    searched_bases: ClassVar[tuple[str, ...]] = ("auto", "laplace", "mixture", "pilot", "wide")

    starts: Float[Array, "points dim"] | None
    prior: AbstractBase | None
    """The exact base, of a density that is prior times likelihood."""
    dim: int = eqx.field(static=True)
    parameters: Parameters = eqx.field(static=True)
    """How positions are shown: by name, in the parameters' own space."""
    is_differentiable: bool = eqx.field(static=True)
    """Whether JAX can take gradients of the function."""

    def __init__(
        self,
        fn: Callable[[Any], Any],
        dim: Any,
        name: str | None = None,
        *,
        starts: ArrayLike | None = None,
        prior: AbstractBase | None = None,
        parameters: Parameters | None = None,
        is_differentiable: bool = True,
        vectorized: bool = False,
        dtype: str | None = None,
    ):
        if not callable(fn):
            raise ValueError(f"fn must be a function of one position, got {type(fn).__name__}.")
        layout, point = _layout(dim)
        points = None if starts is None else np.asarray(starts, np.float32)
        if points is not None and (points.ndim != 2 or points.shape[1] != layout.dim):
            raise ValueError(f"starts must have shape (points, {layout.dim}), got {points.shape}.")
        self.dim = layout.dim
        self.starts = None if points is None else on_device(points)
        self.label = name or f"density-{layout.dim}"
        precision = check_dtype(dtype)
        self.fn = (
            fn
            if isinstance(fn, AbstractFunction)
            else as_function(
                fn, layout, point, label=self.name, vectorized=vectorized, dtype=precision
            )
        )
        self.prior = prior
        self.is_differentiable = is_differentiable and self.fn.is_differentiable
        self.parameters = layout.parameters() if parameters is None else parameters

    @property
    def digest(self) -> str:
        """SHA-256 of the program that JAX makes of the function, its constants, and what it calls."""
        return program_digest(f"density {self.dim}", self.fn.program(self.dim))

    def log_density(
        self, x: Float[Array, "chains dim"], offset: Offset = 0.0
    ) -> Float[Array, " chains"]:
        """Return log p*(x) - offset, subtracted before anything is rounded to float32."""
        return jax.vmap(lambda x: self.fn.value(x, offset))(x)

    def value_and_gradient(
        self, x: Float[Array, "chains dim"], offset: Offset = 0.0
    ) -> tuple[Float[Array, " chains"], Float[Array, "chains dim"]]:
        """Return log p*(x) - offset and its gradient in x, of every chain, float32."""
        return jax.vmap(lambda x: self.fn.value_and_gradient(x, offset))(x)

    def rounding(self, x: ArrayLike) -> float:
        """Return the root mean square rounding error of a value near these points (points, dim).

        Float32 is compared with float64; 0 for a density that is evaluated in float64.
        """
        return self.fn.rounding(np.asarray(x).reshape(-1, self.dim))

    @property
    def evaluation_size(self) -> float:
        """How many numbers an evaluation computes, roughly."""
        try:
            return _size_of(self.fn, self.dim)
        except TypeError:  # a function that holds arrays has no hash
            return numbers_computed(self.fn.value, self.dim)

    def check(self) -> None:
        """Refuse a function that is NaN wherever it is looked at; NumPy's are seen when they are called."""
        if not self.fn.is_differentiable:
            return
        rows = self.first_points
        try:
            values = self._values(rows)
        except TypeError as error:
            raise ValueError(
                f"fn of {self.name} uses what JAX cannot compile in float64 as part of a float32 program "
                f"({one_line(error)}): take dtype='float32', or set jax_enable_x64 yourself."
            ) from error
        if np.isnan(values).all():
            raise ValueError(
                f"fn of {self.name} must return a real number or -inf, got NaN at x = {rows[0].tolist()} "
                f"and at {len(rows) - 1} other points: look for logarithms of negative numbers and for "
                "0 * inf."
            )

    @property
    def num_checked(self) -> int:
        return len(self.first_points) if self.fn.is_differentiable else 0

    @property
    def first_points(self) -> np.ndarray:
        """The starts, or the origin and points around it."""
        if self.starts is not None:
            return np.asarray(self.starts)[:_NUM_POINTS]
        rows = np.random.default_rng(0).normal(size=(_NUM_POINTS, self.dim)).astype(np.float32)
        rows[0] = 0
        return rows

    def choose_base(self, base: Any = "auto", data: Any = None):
        """Return the base that is given, or the prior or a standard Gaussian by name.

        The other names are found by pilots when a run is prepared; a standard Gaussian stands in for them.
        """
        from annealz.bases.gaussian import GaussianBase

        if not isinstance(base, str) or data is not None:
            return super().choose_base(base, data)
        if base not in BASES:
            raise ValueError(
                f"unknown base {base!r}: choose one of {', '.join(BASES)}, or give a GaussianBase."
            )
        if base != "prior":
            return GaussianBase.standard(self.dim)
        if self.prior is None:
            raise ValueError(f"{self.name} has no prior to start from: choose another base.")
        return self.prior

    def kernel(self):
        from annealz.kernels.hmc import HAIS, RandomWalk

        return HAIS() if self.is_differentiable else RandomWalk()


@eqx.filter_jit
def _evaluated(model: AbstractDensity, rows) -> Array:
    return model.log_density(rows)


def check_dtype(dtype: Any) -> str:
    """Return float32 or float64; by default what JAX is set to."""
    if dtype is None:
        return "float64" if jax.config.read("jax_enable_x64") else "float32"
    name = dtype if isinstance(dtype, str) else getattr(np.dtype(dtype), "name", "")
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}.")
    return name


def _layout(dim: Any) -> tuple[Layout, Any]:
    """Return the layout of a vector or of an example, and a point to try NumPy on."""
    if isinstance(dim, bool | np.bool_ | float | str | None) or (
        isinstance(dim, int | np.integer) and dim < 1
    ):
        raise ValueError(
            f"dim must be a whole number of variables, at least 1, or an example of the parameters, got "
            f"{dim!r}."
        )
    if isinstance(dim, int | np.integer):
        check_memory(_BYTES_PER_VARIABLE * int(dim), f"dim = {int(dim):,}", "take fewer variables")
        point = np.zeros(int(dim))
        return Layout.of(point), point
    try:
        point = jax.tree.map(lambda leaf: np.array(leaf, np.float64), dim)
        layout = Layout.of(point)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the example of the parameters must hold real numbers or arrays, got {dim!r}."
        ) from error
    if not layout.dim:
        raise ValueError(
            f"the example of the parameters must hold at least one number, got {dim!r}."
        )
    return layout, point


@functools.lru_cache(maxsize=64)
def _size_of(fn: AbstractFunction, dim: int) -> float:
    return numbers_computed(fn.value, dim)
