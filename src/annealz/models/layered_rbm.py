"""The RBM of two layers of any kinds: 0 and 1, spins of -1 and 1, states, real or rectified units.

    log p*(v, h) = b.e(v) + r(v) + a.h + r(h) + h.W e(v) + c          e and r as in `annealz.core.units`
    log p*(v)    = b.e(v) + r(v) + A_h(a + W e(v)) + c                hidden units summed out

    hidden units     r(h), each                                      A_h(z), each
    binary           0                                               softplus(z)
    spin             0                                               log(2 cosh z)
    gaussian         -h^2 / 2 s^2                                    s^2 z^2 / 2 + log(s sqrt(2 pi))
    relu, dReLU      as in `annealz.core.rectified_units`

Spins are units x of 0 and 1 in other words, s = 2 x - 1, and annealed as such. With visible spins

    h.W v = h.(2 W) x - h.W 1,    b.v = 2 b.x - b.1

that is weights 2 W, visible bias 2 b, hidden bias a - W 1 and a constant -b.1; hidden spins likewise, after
it. Two layers of 0 and 1 are an RBM plus a constant.

Visible units with finitely many values make any hidden layer a distribution. Real visible units do with
binary hidden units and spins; with real ones, of scales t, where the largest singular value of t W s is
below 1 (s and t side by side: the precision matrix is then positive definite, and so at every beta). Of
rectified units t is the larger scale of the two sides, and the condition is sufficient.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from annealz.bases.bernoulli import BernoulliBase
from annealz.core.arrays import on_device, real_array
from annealz.core.rectified_units import DReLUUnits, ReLUUnits
from annealz.core.units import AbstractUnits, BernoulliUnits, GaussianUnits, SoftmaxUnits
from annealz.models.abstract import log_density_at_end
from annealz.models.layered import AbstractLayered
from annealz.models.rbm import RBM
from annealz.paths.geometric import GeometricPath

_VISIBLE = ("binary", "spin", "softmax", "gaussian")
_HIDDEN = ("binary", "spin", "gaussian", "relu")


class LayeredRBM(AbstractLayered):
    """An RBM with visible and hidden units of these kinds.

    Parameters
    ----------
    weights : (hidden, visible), or (hidden, visible, states) where the visible units have several states
    hidden_bias : (hidden,)
    visible_bias : (visible,), or (visible, states)
    visible : "binary", "spin", "softmax", "gaussian" (of standard deviation 1), or `GaussianUnits(scale)`
    hidden : "binary", "spin", "gaussian", "relu" (both of scale 1), or `GaussianUnits(scale)`,
        `ReLUUnits(scale)` or `DReLUUnits(...)`
    offset : c, a constant of log p*

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> weights = np.array([[1.0, -1.0, 0.5], [0.0, 0.5, 0.5]])
    >>> spins = annealz.LayeredRBM(weights, np.zeros(2), np.zeros(3), visible="spin", hidden="spin")
    >>> spins.name, round(annealz.exact_log_z(spins), 4)
    ('spin-spin-rbm-2x3', 4.6155)
    """

    visible_units: AbstractUnits
    hidden_units: AbstractUnits
    has_visible_spins: bool = eqx.field(static=True)
    has_hidden_spins: bool = eqx.field(static=True)
    offset: float = eqx.field(static=True)

    def __init__(
        self,
        weights: ArrayLike,
        hidden_bias: ArrayLike,
        visible_bias: ArrayLike,
        visible: str | AbstractUnits = "binary",
        hidden: str | AbstractUnits = "binary",
        offset: float = 0.0,
    ):
        super().__init__(weights, hidden_bias, visible_bias)
        self.has_visible_spins = isinstance(visible, str) and visible == "spin"
        self.has_hidden_spins = isinstance(hidden, str) and hidden == "spin"
        self.visible_units = _units(visible, _VISIBLE, "visible", self.visible_bias.shape)
        self.hidden_units = _units(hidden, _HIDDEN, "hidden", self.hidden_bias.shape)
        self.offset = float(offset)

    def check(self) -> None:
        super().check()
        units = self.visible_units
        if isinstance(units, SoftmaxUnits) and units.num_states != self.visible_bias.shape[-1]:
            raise ValueError(
                f"visible units of {units.num_states} states need visible_bias of as many columns, got "
                f"shape {self.visible_bias.shape}."
            )
        _check_scales("visible", self.visible_units, self.num_visible)
        _check_scales("hidden", self.hidden_units, self.num_hidden)
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be a finite number, got {self.offset}.")
        for has_spins, units in self._layers:
            if has_spins and not isinstance(units, BernoulliUnits):
                raise ValueError("spins are kept as binary units, got others.")
        self._check_proper()

    def _check_proper(self) -> None:
        """Refuse two real layers whose coupling has no finite log Z, or none that is known to be."""
        if not (isinstance(self.visible_units, GaussianUnits) and self.hidden_units.is_real):
            return
        if isinstance(self.hidden_units, DReLUUnits):
            widths = np.maximum(self.hidden_units.positive_scale, self.hidden_units.negative_scale)
        else:
            assert isinstance(self.hidden_units, GaussianUnits | ReLUUnits)
            widths = np.asarray(self.hidden_units.scale)
        scales = (np.asarray(one, np.float64) for one in (self.visible_units.scale, widths))
        visible, hidden = scales
        largest = np.linalg.norm(np.asarray(self.weights) * visible * hidden[:, None], 2)
        if not largest < 1:
            raise ValueError(
                f"weights between two layers of real units must be so small that log Z is finite: times "
                "the scales of both layers their largest singular value must be below 1, got "
                f"{largest:.4g}."
            )

    @property
    def _layers(self) -> tuple[tuple[bool, AbstractUnits], tuple[bool, AbstractUnits]]:
        """Whether the visible and the hidden units are spins, and their kind."""
        visible = self.has_visible_spins, self.visible_units
        return visible, (self.has_hidden_spins, self.hidden_units)

    @property
    def name(self) -> str:
        kinds = ("spin" if has_spins else _name(units) for has_spins, units in self._layers)
        return f"{'-'.join(kinds)}-rbm-{'x'.join(map(str, self.weights.shape))}"

    @property
    def units(self) -> AbstractUnits:
        return self.visible_units

    @property
    def of_hidden(self) -> AbstractUnits:
        return self.hidden_units

    @property
    def natural(self):
        """Weights, hidden bias, visible bias and constant with spins written as units of 0 and 1."""
        arrays = (self.weights, self.hidden_bias, self.visible_bias)
        weights, hidden, visible = (np.asarray(array, np.float64) for array in arrays)
        weights, visible = weights.reshape(len(hidden), -1), visible.ravel()
        offset = self.offset
        if self.has_visible_spins:
            hidden, offset = hidden - weights.sum(1), offset - visible.sum()
            weights, visible = 2 * weights, 2 * visible
        if self.has_hidden_spins:
            visible, offset = visible - weights.sum(0), offset - hidden.sum()
            weights, hidden = 2 * weights, 2 * hidden
        return weights, hidden, visible, float(offset)

    @property
    def is_binary(self) -> bool:
        """Whether both layers are of zeros and ones, or spins."""
        return all(isinstance(units, BernoulliUnits) for _, units in self._layers)

    @property
    def is_gaussian(self) -> bool:
        """Whether both layers are of Gaussian units."""
        return all(isinstance(units, GaussianUnits) for _, units in self._layers)

    def as_rbm(self) -> RBM:
        """The RBM of two layers of zeros and ones, whose log Z is the model's less the constant."""
        return RBM(*self.natural[:3])

    def log_density(self, x, /):
        """log p*(v), hidden units summed out; v as the visible units are, spins of -1 and 1."""
        values = jnp.asarray(x, jnp.float32)
        states = 0.5 * (values + 1) if self.has_visible_spins else values
        rows = jnp.atleast_2d(states)
        found = log_density_at_end(self.path(self.flat_base()), rows)
        return found if states.ndim > 1 else found[0]

    # --- how it is annealed ---

    def product_path(self, base: Any, marginal: str):
        if not self.is_binary:
            return super().product_path(base, marginal)
        logits = base.logits, on_device(np.zeros(self.num_hidden))
        offset = self.natural[3]
        return GeometricPath(base, self.as_rbm(), marginal, logits=logits, offset=offset)

    def check_marginal(self, marginal: str) -> str:
        if marginal == "hidden" and isinstance(self.hidden_units, ReLUUnits | DReLUUnits):
            raise ValueError(
                f"marginal must be visible, got {marginal!r}: the rectified hidden units of {self.name} "
                "are summed out."
            )
        return super().check_marginal(marginal)

    def base(self):
        if self.has_visible_spins:
            return BernoulliBase.from_logits(2.0 * np.asarray(self.visible_bias))
        return super().base()

    def rate_base(self, data: Any = None):
        """Return the base of data as the units are."""
        if data is not None and self.has_visible_spins:
            rows = real_array("data", data)
            if rows.ndim != 2 or not (np.abs(rows) == 1).all():
                raise ValueError("data of spins must be rows that hold -1 and 1 only.")
            data = (rows + 1) / 2
        return super().rate_base(data)

    # --- exact answers ---

    def exact_log_z(self) -> float:
        """log Z by enumerating a layer of few values, or of two Gaussian layers in closed form."""
        if self.is_binary:
            return self.as_rbm().exact_log_z() + self.natural[3]
        return self._gaussian_log_z() if self.is_gaussian else super().exact_log_z()

    def exact_log_z_if_cheap(self) -> float | None:
        if self.is_binary:
            log_z = self.as_rbm().exact_log_z_if_cheap()
            return None if log_z is None else log_z + self.natural[3]
        return self._gaussian_log_z() if self.is_gaussian else super().exact_log_z_if_cheap()

    def _gaussian_log_z(self) -> float:
        """Of the joint Gaussian: c.P^-1 c / 2 + n log(2 pi) / 2 - log det(P) / 2, P its precision."""
        weights, hidden, visible, offset = self.natural
        assert isinstance(self.visible_units, GaussianUnits)
        assert isinstance(self.hidden_units, GaussianUnits)
        scales = np.concatenate([self.hidden_units.scale, self.visible_units.scale])
        precision = np.diag(np.float64(scales) ** -2)
        split = len(hidden)
        precision[:split, split:], precision[split:, :split] = -weights, -weights.T
        linear = np.concatenate([hidden, visible])
        quadratic = linear @ np.linalg.solve(precision, linear) / 2
        log_det = np.linalg.slogdet(precision)[1]
        return float(offset + quadratic + (linear.size * math.log(2 * math.pi) - log_det) / 2)


def _units(
    given: str | AbstractUnits, names: tuple[str, ...], layer: str, shape: tuple[int, ...]
) -> AbstractUnits:
    """The units of this name, or those that are given."""
    ones = on_device(np.ones(shape[:1]))
    made = {
        "binary": BernoulliUnits,
        "spin": BernoulliUnits,
        "softmax": lambda: SoftmaxUnits(shape[-1] if len(shape) > 1 else 0),
        "gaussian": lambda: GaussianUnits(ones),
        "relu": lambda: ReLUUnits(ones),
    }
    if isinstance(given, str) and given in names:
        return made[given]()
    kinds = (GaussianUnits,) if layer == "visible" else (GaussianUnits, ReLUUnits, DReLUUnits)
    if isinstance(given, kinds):
        return type(given)(
            *(
                on_device(np.broadcast_to(real_array("scale", value), shape[:1]))
                for value in vars(given).values()
            )
        )
    wanted = ", ".join((*names, *(kind.__name__ for kind in kinds)))
    got = repr(given) if isinstance(given, str) else type(given).__name__
    raise ValueError(f"{layer} must be one of {wanted}, got {got}.")


def _check_scales(layer: str, units: AbstractUnits, number: int) -> None:
    for name, array in vars(units).items():
        if name == "num_states":
            continue
        values = real_array(f"{name} of the {layer} units", array)
        if values.shape != (number,) or ("scale" in name and not (values > 0).all()):
            kind = "positive numbers" if "scale" in name else "numbers"
            least = values.min(initial=np.inf)
            raise ValueError(
                f"{name} of the {layer} units must be {number} {kind}, got shape {values.shape} with the "
                f"least {least:g}."
            )


def _name(units: AbstractUnits) -> str:
    name = type(units).__name__.removesuffix("Units").lower()
    return "binary" if name == "bernoulli" else name
