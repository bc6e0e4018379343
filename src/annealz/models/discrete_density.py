"""Any function of discrete states, from Python: p*(x) = exp fn(x), x in {0 .. q-1}^n.

    Z = sum_x exp fn(x)

fn takes one state: whole numbers (n,), or with `one_hot` ones and zeros (n, q). Gradients are those at the
one-hot form; of units of two states that are given as numbers, those in x as real numbers, which says as
much.
fn may be written with NumPy; it is then called on the host in float64, and has no gradient. Where it is
-inf the state has no weight.

Up to some 65,000 states are enumerated. The digest is that of the program that JAX makes of fn.
"""

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.categorical import CategoricalBase
from annealz.bases.mixture import MixtureBase, check_units
from annealz.core.failures import user_errors
from annealz.core.units import BernoulliUnits, SoftmaxUnits
from annealz.io.fingerprint import program_digest
from annealz.models.abstract import AbstractUnitModel
from annealz.models.enumeration import Enumeration
from annealz.models.functions import AbstractFunction, JaxFunction
from annealz.models.host_function import as_function
from annealz.models.layout import StateLayout
from annealz.models.log_density import AbstractDensity, check_dtype
from annealz.paths.discrete import DiscretePath

_NUM_LOOKED_AT = 64
_CHEAP, _CHEAP_ON_HOST = 2**16, 2**12  # states
_ROWS = 2**12  # evaluated at a time
_WHOLE_SWEEP = 64  # evaluations, up to which a sweep updates every unit
_PROPOSALS = 16


class DiscreteDensity(AbstractDensity, AbstractUnitModel):
    """An unnormalised distribution over units of several states each.

    Parameters
    ----------
    fn : log p*(x) of one state, a scalar; -inf where the state has no weight. Written with jax.numpy it is
        compiled; written with NumPy it is recognised and called on the host.
    num_units : n
    num_states : q, of every unit
    name : what results call it
    one_hot : whether `fn` takes ones and zeros (num_units, num_states), float, instead of whole numbers
        (num_units,). Units of more than two states need it for gradients.
    vectorized : whether `fn` takes many states at once, the states first, and returns as many numbers
    dtype : "float32" or "float64", in which a function of JAX is evaluated

    Examples
    --------
    >>> import annealz
    >>> model = annealz.DiscreteDensity(lambda x: 0.1 * x.sum() ** 2, num_units=6)
    >>> estimate = annealz.estimate_log_z(model, num_steps=100, num_chains=100)
    >>> abs(estimate.log_z - annealz.exact_log_z(model)) < 5 * estimate.std_err
    True
    """

    takes_data: ClassVar[bool] = True

    relaxed: AbstractFunction | None
    """The same of real numbers, for gradients."""
    num_units: int = eqx.field(static=True)
    num_states: int = eqx.field(static=True)
    one_hot: bool = eqx.field(static=True)

    def __init__(
        self,
        fn: Callable[[Any], Any],
        num_units: int,
        num_states: int = 2,
        name: str | None = None,
        *,
        one_hot: bool = False,
        vectorized: bool = False,
        dtype: str | None = None,
    ):
        if not callable(fn):
            raise ValueError(f"fn must be a function of one state, got {type(fn).__name__}.")
        self.num_units = _count("num_units", num_units, 1)
        self.num_states = _count("num_states", num_states, 2)
        self.label = name or f"discrete-{self.num_units}x{self.num_states}"
        self.one_hot = bool(one_hot)
        precision = check_dtype(dtype)
        layout = self._layout
        self.fn = as_function(
            _in_floats(fn),
            layout,
            layout.split(np.zeros(self.num_units)),
            label=self.name,
            vectorized=vectorized,
            dtype=precision,
        )
        self.relaxed = None
        if isinstance(self.fn, JaxFunction) and (self.one_hot or self.num_states == 2):
            self.relaxed = _relaxed(fn, layout, vectorized, precision)

    @property
    def digest(self) -> str:
        """SHA-256 of the program that JAX makes of the function, its constants, and what it calls."""
        return program_digest(
            f"discrete {self.num_units} {self.num_states}", self.fn.program(self.num_units)
        )

    @property
    def units(self) -> BernoulliUnits | SoftmaxUnits:
        """The kind of the units."""
        return BernoulliUnits() if self.num_states == 2 else SoftmaxUnits(self.num_states)

    @property
    def is_differentiable(self) -> bool:
        """Whether there are gradients to propose moves by."""
        return self.relaxed is not None

    @property
    def num_configurations(self) -> int:
        """q^n."""
        return self.num_states**self.num_units

    @property
    def _layout(self) -> StateLayout:
        return StateLayout(self.num_units, self.num_states, self.one_hot)

    def log_density(self, x: Float[Array, "chains units"]) -> Float[Array, " chains"]:
        """Return fn of every state, whole numbers as floats."""
        return jax.vmap(self.fn.value)(x)

    def value_and_gains(
        self, x: Float[Array, "chains units"]
    ) -> tuple[Float[Array, " chains"], Float[Array, "chains units more"]]:
        """Return fn of every state, and its gradient in the states 1 .. q - 1 less that in state 0."""
        assert self.relaxed is not None
        values, gradients = jax.vmap(
            lambda x: self.relaxed.value_and_gradient(self._layout.relaxed(x))  # pyright: ignore
        )(x)
        table = gradients.reshape(x.shape[0], self.num_units, -1)
        return values, table[..., 1:] - table[..., :1] if self.one_hot else table

    def check(self) -> None:
        """Refuse a function that is NaN or +inf at any of the states that are looked at."""
        rows = self.first_points
        values = self._values(rows)
        wrong = np.flatnonzero(np.isnan(values) | (values == np.inf))
        if wrong.size:
            what = "NaN" if np.isnan(values[wrong[0]]) else "+inf"
            raise ValueError(
                f"fn of {self.name} must return a real number or -inf, got {what} at x = "
                f"{_shown(rows[wrong[0]])}: return -inf where a state has no weight."
            )

    @property
    def num_checked(self) -> int:
        return _NUM_LOOKED_AT

    @property
    def first_points(self) -> np.ndarray:
        """The state of zeros and random ones."""
        rng = np.random.default_rng(0)
        rows = rng.integers(0, self.num_states, (_NUM_LOOKED_AT, self.num_units))
        rows[0] = 0
        return rows

    def check_gradient(self) -> None:
        """Refuse a function without gradients."""
        if self.is_differentiable:
            return
        remedy = "take kernel='gibbs'"
        if isinstance(self.fn, JaxFunction) and not self.one_hot:
            remedy += ", or let fn take ones and zeros (num_units, num_states), with one_hot=True"
        raise ValueError(
            f"fn of {self.name} has no gradient in its states, which this kernel needs: {remedy}."
        )

    def rate_base(self, data: Any = None):
        """Return the base of rows of states."""
        if data is None:
            return None
        array = np.asarray(data)
        if array.ndim != 2 or array.shape[1] != self.num_units:
            raise ValueError(
                f"data of {self.name} must be states of shape (rows, {self.num_units}), got "
                f"{array.shape}."
            )
        if self.num_states == 2:
            return BernoulliBase.from_data(array)
        return CategoricalBase.from_data(array, self.num_states)

    def flat_base(self):
        if self.num_states == 2:
            return BernoulliBase.uniform(self.num_units)
        return CategoricalBase.uniform(self.num_units, self.num_states)

    def named_bases(self):
        return {"uniform": self.flat_base}

    def product_path(self, base: Any, marginal: str):
        return DiscretePath(base, self)

    def mixture_path(self, base: MixtureBase, marginal: str):
        fields = self.num_units * (1 if self.num_states == 2 else self.num_states)
        check_units(base, self.units, fields, self.name)
        return DiscretePath(base, self)

    def kernel(self):
        """Return whole sweeps of Gibbs where they take up to 64 evaluations; else moves by gradients, where
        there are any, or sweeps over as many units as that.
        """
        cost = self.num_units * (self.num_states - 1)
        if cost > _WHOLE_SWEEP and self.is_differentiable:
            return self._gradient_gibbs()
        return self._unit_gibbs()

    def named_kernels(self):
        return {"gibbs": self._unit_gibbs, "gradient": self._gradient_gibbs}

    def _unit_gibbs(self):
        from annealz.kernels.unit_gibbs import UnitGibbs

        most = max(_WHOLE_SWEEP // (self.num_states - 1), 1)
        return UnitGibbs(min(self.num_units, most), self.num_states)

    def _gradient_gibbs(self):
        from annealz.kernels.unit_gibbs import GradientGibbs

        return GradientGibbs(_PROPOSALS)

    def exact_log_z_if_cheap(self) -> float | None:
        return self.exact_log_z() if self.has_exact_draws else None

    @property
    def num_enumerated(self) -> int:
        return self.num_configurations if self.has_exact_draws else 0

    @user_errors()
    def exact_log_z(self) -> float:
        """Return log Z by enumeration, of up to 67 million states."""
        return self._enumeration().log_sum()

    @property
    def has_exact_draws(self) -> bool:
        most = _CHEAP if isinstance(self.fn, JaxFunction) else _CHEAP_ON_HOST
        return self.num_configurations <= most

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        return self._enumeration().draw(num_draws, seed)

    def _enumeration(self) -> Enumeration:
        return Enumeration(self.num_units, self.num_states, self._values, _ROWS)

    @user_errors()
    def _values(self, rows: np.ndarray) -> np.ndarray:
        """Return fn of these states (rows, units), float64."""
        return super()._values(rows.astype(np.float32))


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}.")
    return int(value)


def _in_floats(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function whose values are real numbers where JAX's whole numbers become real ones."""

    def real(state):
        value = fn(state)
        if isinstance(value, jax.Array) and not jnp.issubdtype(value.dtype, jnp.inexact):
            return value.astype(jnp.float32)
        return value

    return real


def _relaxed(fn, layout: StateLayout, vectorized: bool, dtype: str) -> JaxFunction | None:
    """Return fn of real numbers, if JAX can take its gradient there."""
    size = layout.dim * (layout.num_states if layout.one_hot else 1)

    def of_real(x):
        own = layout.unrelaxed(x)
        return _in_floats(fn)(own[None])[0] if vectorized else _in_floats(fn)(own)

    made = JaxFunction(of_real, dtype)
    try:
        jax.eval_shape(made.value_and_gradient, jax.ShapeDtypeStruct((size,), jnp.float32))
    except Exception:  # what takes whole numbers only, such as a look-up
        return None
    return made


def _shown(row: np.ndarray) -> str:
    words = [str(state) for state in itertools.islice(row, 12)]
    return f"[{', '.join(words)}{', …' if len(row) > 12 else ''}]"
