"""Any log density over the reals, from a Python function that JAX can differentiate.

    log p*(x) = fn(x),    x (dim,) unconstrained,    Z = ∫ exp fn(x) dx

In Bayesian terms, with fn the log of prior times likelihood, log Z is the log evidence.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.models.abstract import AbstractModel

__all__ = ["LogDensity"]

BASES = ("auto", "laplace", "pilot", "standard")


class LogDensity(AbstractModel):
    """An unnormalised density over R^dim.

    Parameters
    ----------
    fn : log p*(x) of one position (dim,), a scalar; differentiable by JAX, finite everywhere
    dim : how many real variables
    name : what results call it
    starts : (points, dim) where to look for modes, beside the origin; by default some draws around it

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> model = annealz.LogDensity(lambda x: -0.5 * jnp.sum((x - 1) ** 2), dim=2, name="shifted")
    >>> estimate = annealz.estimate_log_z(
    ...     model,
    ...     base="standard",
    ...     kernel=annealz.HAIS(step_size=0.5),
    ...     schedule="linear",
    ...     num_steps=50,
    ...     num_chains=50,
    ... )
    >>> abs(estimate.log_z - 1.8379) < 5 * estimate.std_err  # log 2 pi
    True
    """

    fn: Callable[[Array], Array]
    starts: Float[Array, "points dim"] | None
    dim: int = eqx.field(static=True)
    label: str = eqx.field(static=True)

    def __init__(
        self,
        fn: Callable[[Array], Array],
        dim: int,
        name: str | None = None,
        *,
        starts: ArrayLike | None = None,
    ):
        if not callable(fn):
            raise ValueError(f"fn must be a function of one position, got {type(fn).__name__}.")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise ValueError(f"dim must be a whole number of variables, at least 1, got {dim!r}.")
        points = None if starts is None else np.asarray(starts, np.float32)
        if points is not None and (points.ndim != 2 or points.shape[1] != dim):
            raise ValueError(f"starts must have shape (points, {dim}), got {points.shape}.")
        self.fn, self.dim = fn, int(dim)
        self.starts = None if points is None else jnp.asarray(points)
        self.label = name or f"density-{dim}"

    @property
    def name(self) -> str:
        return self.label

    @property
    def digest(self) -> str:
        """SHA-256 of the program that JAX makes of the function, and of the constants in it."""
        program = jax.make_jaxpr(self.fn)(jnp.zeros(self.dim, jnp.float32))
        text = re.sub(r"0x[0-9a-f]+", "", str(program.jaxpr))
        hasher = hashlib.sha256(f"density {self.dim} {text}".encode())
        for constant in _constants(program):
            array = np.asarray(constant)
            hasher.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
        return hasher.hexdigest()

    def log_density(self, x: Float[Array, "chains dim"]) -> Float[Array, " chains"]:
        """log p*(x)."""
        return jax.vmap(self.fn)(x)

    def check(self) -> None:
        try:
            out = jax.eval_shape(self.fn, jnp.zeros(self.dim, jnp.float32))
        except Exception as error:
            raise ValueError(
                f"fn of {self.name} must take one position of shape ({self.dim},), and it failed on one: "
                f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}."
            ) from error
        shape = getattr(out, "shape", None)
        if shape != () or not jnp.issubdtype(out.dtype, jnp.floating):
            raise ValueError(
                f"fn of {self.name} must return one real number, the log density of its position, got "
                f"{'shape ' + str(shape) if shape else out}."
            )

    def choose_base(self, base: Any = "auto", data: Any = None):
        """A GaussianBase, or one by name: standard, laplace, pilot; auto is pilot."""
        from annealz.models.fit_base import fit_laplace, fit_pilot
        from annealz.paths.bases.gaussian import GaussianBase

        if not isinstance(base, str) or data is not None:
            return super().choose_base(base, data)
        if base not in BASES:
            raise ValueError(
                f"unknown base {base!r}: choose one of {', '.join(BASES)}, or give a GaussianBase."
            )
        if base == "standard":
            return GaussianBase.standard(self.dim)
        return fit_laplace(self) if base == "laplace" else fit_pilot(self)

    def kernel(self):
        from annealz.kernels.hais import HAIS

        return HAIS()


def _constants(program: Any) -> Iterator[Any]:
    """Those of a program and of the programs inside it."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        for node in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(node):
                yield from _constants(node)


def _is_program(node: Any) -> bool:
    return hasattr(node, "eqns") or hasattr(node, "jaxpr")
