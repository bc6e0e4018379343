"""Binary quadratic models, as of dimod: an Ising model plus a constant.

    E(x) = sum_i a_i x_i + sum_{i<j} b_ij x_i x_j + c,       p*(x) = exp(-beta E(x))

Of spins x = s of -1 and 1 the couplings are J = -beta b, the fields h = -beta a, the constant -beta c. Of
x = (1 + s) / 2, units of 0 and 1:

    a x = a / 2 + (a / 2) s,       b x x' = b / 4 (1 + s + s' + s s')

so that J = -beta b / 4, h_i = -beta (a_i / 2 + sum_j b_ij / 4), and a constant of
-beta (c + sum a / 2 + sum b / 4). States are 0 for down, or 0, and 1 for up, or 1.
"""

import math
from typing import Any

import equinox as eqx
import numpy as np

from annealz.core.arrays import on_device
from annealz.models.abstract import AbstractEquivalent
from annealz.models.graph import AbstractGraphModel
from annealz.models.ising import Ising

_SHAPE = ("vartype", "linear", "quadratic", "offset")


class BinaryQuadratic(AbstractEquivalent, AbstractGraphModel):
    """An Ising model and a constant of log p*.

    Examples
    --------
    >>> import annealz
    >>> import numpy as np
    >>> ising = annealz.Ising([[0.0, 0.5], [0.5, 0.0]])
    >>> model = annealz.BinaryQuadratic(ising, constant=2.0)
    >>> round(annealz.exact_log_z(model) - annealz.exact_log_z(ising), 4)
    2.0
    """

    ising: Ising
    constant: float = eqx.field(static=True, default=0.0)

    def check(self) -> None:
        self.ising.check()
        if not math.isfinite(self.constant):
            raise ValueError(f"constant must be a finite number, got {self.constant}.")

    @property
    def num_units(self) -> int:
        return self.ising.num_units

    @property
    def name(self) -> str:
        return f"quadratic-{self.num_units}"

    def flat_base(self):
        return self.ising.flat_base()

    def fields_base(self):
        return self.ising.fields_base()

    def product_path(self, base: Any, marginal: str):
        path: Any = self.ising.path(base)
        offset = on_device(np.float64(path.offset) + self.constant)
        return eqx.tree_at(lambda one: one.offset, path, offset)

    def kernel(self):
        return self.ising.kernel()

    def equivalent(self) -> tuple[Ising, float]:
        return self.ising, self.constant


def from_dimod(bqm: Any, beta: float = 1.0) -> BinaryQuadratic:
    """The distribution exp(-beta E) of a binary quadratic model of dimod, or of any object of its shape.

    Parameters
    ----------
    bqm : with `vartype` (SPIN or BINARY), `linear` {variable: a}, `quadratic` {(variable, variable): b} and
        `offset` c
    beta : inverse temperature

    Returns
    -------
    BinaryQuadratic
        Its units are the variables in the order of `linear`.

    Examples
    --------
    >>> import annealz
    >>> from types import SimpleNamespace
    >>> terms = {"linear": {"a": -1.0, "b": 0.0}, "quadratic": {("a", "b"): 2.0}, "offset": 0.5}
    >>> model = annealz.from_dimod(SimpleNamespace(vartype="BINARY", **terms), beta=1.0)
    >>> round(annealz.exact_log_z(model), 4)  # log(1 + 1 + e + 1 / e) - 0.5
    1.1265
    """
    missing = [name for name in _SHAPE if not hasattr(bqm, name)]
    if missing:
        raise ValueError(
            f"bqm must be a binary quadratic model of dimod, got a {type(bqm).__name__} without "
            f"{', '.join(missing)}."
        )
    kind = getattr(bqm.vartype, "name", str(bqm.vartype))
    if kind not in ("SPIN", "BINARY"):
        raise ValueError(f"vartype of bqm must be SPIN or BINARY, got {kind!r}.")
    beta = float(beta)
    if not math.isfinite(beta):
        raise ValueError(f"beta must be a finite number, got {beta}.")
    linear, quadratic = dict(bqm.linear), dict(bqm.quadratic)
    places = {variable: place for place, variable in enumerate(linear)}
    if not places:
        raise ValueError("bqm must have at least one variable, got none.")
    fields = np.array([float(value) for value in linear.values()])
    couplings = np.zeros((len(places), len(places)))
    for pair, value in quadratic.items():
        first, second = pair
        if first not in places or second not in places or first == second:
            raise ValueError(f"quadratic of bqm must be of two of its variables, got {pair!r}.")
        couplings[places[first], places[second]] += float(value)
        couplings[places[second], places[first]] += float(value)
    constant = float(bqm.offset)
    if not (np.isfinite(fields).all() and np.isfinite(couplings).all() and math.isfinite(constant)):
        raise ValueError("biases and offset of bqm must be finite, got NaN or infinity.")
    if kind == "BINARY":
        constant += fields.sum() / 2 + couplings.sum() / 8
        fields = fields / 2 + couplings.sum(0) / 4
        couplings = couplings / 4
    return BinaryQuadratic(Ising(-beta * couplings, -beta * fields), float(-beta * constant))
