"""Factor graphs: discrete variables, and factors that are tables over some of them.

    p*(x) = prod_f T_f(x_f),      x_i in {0 .. q_i - 1},   T_f >= 0

Markov random fields and Bayesian networks (`.uai` files) are factor graphs. All variables are annealed; a
sweep draws one colour after the other of the graph that joins variables with a common factor
(`kernels/colours.py`, `paths/factors.py`). Where all have two states and positive factors of at most two
variables, and two colours are enough, the colours are the layers of an RBM, and one of them is summed out.

What zeros do. A state that a factor excludes whatever the others are is taken out of its variable at the
front door, again and again until nothing changes; where a variable is left without states, Z = 0, and the
model is refused. The other zeros are penalties until the last step (`paths/factors.py`), so that chains can
pass between states that single moves at beta = 1 do not connect.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.categorical import CategoricalBase
from annealz.core.arrays import on_device
from annealz.core.mixed_units import NEVER
from annealz.core.programs import Recent
from annealz.diagnostics.findings import Finding, Kind
from annealz.kernels.colours import ColourGibbs
from annealz.kernels.gibbs import BlockGibbs
from annealz.models.contraction import (
    Factors,
    Tables,
    absorbed,
    contracted_log_z,
    contracted_log_z_if_cheap,
    neighbours,
)
from annealz.models.graph import AbstractGraphModel, two_layers
from annealz.models.rbm import RBM
from annealz.paths.factors import FactorPath, FactorTables
from annealz.paths.geometric import GeometricPath

_MOST_LOOKED_AT, _FEW_BLOCKED = 500, 0.01
_MOST_STATES = 256 * 256
_MOST_ENTRIES = 2**30  # places are 32-bit numbers


class FactorGraph(AbstractGraphModel):
    """Discrete variables with factors between them.

    Parameters
    ----------
    num_states : the number of states of every variable
    factors : (scope, table) each: the variables of a factor by number, from 0, and its values, at least 0,
        as an array with one axis per variable of the scope or flat, the last variable changing fastest
    is_log : whether tables hold logarithms; -inf is then a zero

    Examples
    --------
    >>> import annealz
    >>> agree = [[3.0, 1.0], [1.0, 3.0]]
    >>> graph = annealz.FactorGraph([2, 2, 3], [((0, 1), agree), ((1, 2), [1, 0, 2, 0, 5, 1])])
    >>> graph.name, round(annealz.exact_log_z(graph), 4)
    ('factors-3x2', 3.5835)
    """

    num_states: Int[Array, " variables"]
    arities: Int[Array, " factors"]
    scopes: Int[Array, " members"]
    """Of all factors, one after the other."""
    tables: Float[Array, " entries"]
    """Logarithms, of all factors one after the other."""
    remainders: Float[Array, " entries"]
    """What float32 leaves of the logarithms."""

    def __init__(
        self,
        num_states: Sequence[int],
        factors: Sequence[tuple[Sequence[int], Any]],
        *,
        is_log: bool = False,
    ):
        states = _whole_numbers("num_states", num_states)
        scopes, tables = [], []
        for number, (scope, table) in enumerate(factors):
            members = _whole_numbers(f"the scope of factor {number}", scope)
            scopes.append(members)
            tables.append(_log_table(number, table, is_log))
        flat = np.concatenate([np.empty(0), *tables])
        high = flat.astype(np.float32)
        with np.errstate(invalid="ignore"):
            low = np.where(np.isfinite(flat), flat - high, 0.0)
        self.num_states = on_device(states, np.int32)
        self.arities = on_device(np.array([scope.size for scope in scopes], np.int64), np.int32)
        self.scopes = on_device(np.concatenate([np.empty(0, np.int64), *scopes]), np.int32)
        self.tables, self.remainders = on_device(high), on_device(low)
        _check(states, scopes, [table.size for table in tables])
        self._compiled()  # refuses what has no state

    @property
    def num_units(self) -> int:
        return self.num_states.shape[0]

    @property
    def num_factors(self) -> int:
        return self.arities.shape[0]

    @property
    def name(self) -> str:
        return f"factors-{self.num_units}x{self.num_factors}"

    def factors(self) -> Factors:
        """The numbers of states, and every factor as (scope, log table in float64)."""
        states = np.asarray(self.num_states).tolist()
        flat = np.asarray(self.tables, np.float64) + np.asarray(self.remainders, np.float64)
        members, held, first, start = np.asarray(self.scopes).tolist(), [], 0, 0
        for arity in np.asarray(self.arities).tolist():
            scope = tuple(members[first : first + arity])
            shape = [states[v] for v in scope]
            size = math.prod(shape)
            held.append((scope, flat[start : start + size].reshape(shape)))
            first, start = first + arity, start + size
        return tuple(states), held

    def given(self, evidence: Mapping[int, int]) -> "FactorGraph":
        """The factor graph of the other variables where these are in these states; log Z is then that of
        the evidence. The others keep their order.
        """
        states, factors = self.factors()
        for variable, state in evidence.items():
            if not 0 <= variable < len(states):
                raise ValueError(
                    f"evidence must be of variables 0 to {len(states) - 1}, got variable {variable}."
                )
            if not 0 <= state < states[variable]:
                raise ValueError(
                    f"evidence of variable {variable} must be a state from 0 to {states[variable] - 1}, "
                    f"got {state}."
                )
        left = [v for v in range(len(states)) if v not in evidence]
        if not left:
            raise ValueError(
                "evidence must leave at least one variable open, and all are observed: log_density has "
                "the answer."
            )
        places = {v: i for i, v in enumerate(left)}
        sliced = []
        for scope, table in factors:
            picked = table[tuple(evidence.get(v, slice(None)) for v in scope)]
            sliced.append(([places[v] for v in scope if v in places], picked))
        return FactorGraph([states[v] for v in left], sliced, is_log=True)

    def log_density(self, x, /) -> Any:
        """log p*(x) of states (..., variables) in float64, on the host; -inf where a factor is zero."""
        array = np.asarray(x)
        states = np.asarray(self.num_states)
        if array.shape[-1:] != states.shape or not ((array >= 0) & (array < states)).all():
            raise ValueError(
                f"states must be (..., {states.size}) numbers from 0 up to those of their variables, got "
                f"shape {array.shape}."
            )
        array = array.astype(np.int64)
        total = np.zeros(array.shape[:-1])
        for scope, table in self.factors()[1]:
            total = total + table[tuple(array[..., v] for v in scope)]
        return total

    def check(self) -> None:
        states, arities = np.asarray(self.num_states), np.asarray(self.arities)
        members = np.asarray(self.scopes)
        if (arities < 0).any() or arities.sum() != members.size:
            raise ValueError("scopes must hold as many variables as arities say.")
        scopes = np.split(members, np.cumsum(arities)[:-1]) if arities.size else []
        is_known = ((members >= 0) & (members < states.size)).all()
        counts = [math.prod(states[scope].tolist()) for scope in scopes] if is_known else []
        _check(states, scopes, counts)
        if sum(counts) != self.tables.size or self.remainders.size != self.tables.size:
            raise ValueError(f"tables must hold {sum(counts)} numbers, got {self.tables.size}.")
        flat = np.asarray(self.tables)
        if np.isnan(flat).any() or (flat == np.inf).any() or not np.isfinite(self.remainders).all():
            raise ValueError("tables must hold logarithms of finite numbers.")
        self._compiled()

    def flat_base(self):
        return self._base(np.zeros_like(self._compiled().fields), "uniform")

    def fields_base(self):
        return self._base(self._compiled().fields, "fields")

    def _base(self, logits: np.ndarray, name: str):
        held = self._compiled()
        if held.layers is not None:
            return BernoulliBase.from_logits(logits[:, 1] - logits[:, 0], name)
        return CategoricalBase.from_logits(np.where(held.allowed, logits, NEVER), name)

    def product_path(self, base: Any, marginal: str):
        held = self._compiled()
        if held.layers is not None:
            rbm, offset = self._as_rbm()
            logits = base.logits[held.layers[0]], base.logits[held.layers[1]]
            return GeometricPath(base, rbm, "visible", logits=logits, offset=offset)
        if base.logits.shape != held.allowed.shape:
            raise ValueError(
                f"the base must have logits of shape {held.allowed.shape}, got {base.logits.shape}."
            )
        tables = FactorTables(self.num_units, held.factors)
        return FactorPath(base, base.logits, held.fields, tables, held.allowed, held.constant)

    def kernel(self):
        held = self._compiled()
        if held.layers is not None:
            return BlockGibbs()
        members = [v for scope, _ in held.factors for v in scope]
        slots = np.bincount(np.array(members, np.int64), minlength=self.num_units)
        return ColourGibbs.of_graph(_graph(self.num_units, held.factors), slots)

    def _as_rbm(self) -> tuple[RBM, float]:
        """The RBM of a graph of two colours, and what log Z of the graph is more.

        Of the logarithm of a table of two, l(x, y) = l00 + (l10 - l00) x + (l01 - l00) y
        + (l11 - l10 - l01 + l00) x y.
        """
        held = self._compiled()
        assert held.layers is not None
        visible, hidden = held.layers
        offset = held.constant + held.fields[:, 0].sum()
        biases = held.fields[:, 1] - held.fields[:, 0]
        weights = np.zeros((self.num_units, self.num_units))
        for (x, y), table in held.factors:
            offset += table[0, 0]
            biases[x] += table[1, 0] - table[0, 0]
            biases[y] += table[0, 1] - table[0, 0]
            weights[x, y] += table[1, 1] - table[1, 0] - table[0, 1] + table[0, 0]
        weights = weights + weights.T
        rbm = RBM(weights[np.ix_(hidden, visible)], biases[hidden], biases[visible])
        return rbm, float(offset)

    def exact_log_z_if_cheap(self) -> float | None:
        return contracted_log_z_if_cheap(self._reduced())

    def exact_log_z(self) -> float:
        """log Z by contraction."""
        return contracted_log_z(self._reduced())

    def _reduced(self) -> Factors:
        """The factors without the states that never occur."""
        held = self._compiled()
        kept = [np.flatnonzero(row) for row in held.allowed]
        small = [
            (scope, table[np.ix_(*(kept[v] for v in scope))] if scope else table)
            for scope, table in self.factors()[1]
        ]
        return tuple(len(one) for one in kept), small

    @property
    def has_zeros(self) -> bool:
        """Whether factors of several variables have zeros."""
        return any((table == -np.inf).any() for _, table in self._compiled().factors)

    def findings(self, states: np.ndarray) -> tuple[Finding, ...]:
        if not self.has_zeros or not len(states):
            return ()
        held, chosen = self._compiled(), states[:_MOST_LOOKED_AT].astype(np.int64)
        possible = np.broadcast_to(held.allowed, (len(chosen), *held.allowed.shape)).copy()
        for scope, table in held.factors:
            for axis, v in enumerate(scope):
                others = tuple(chosen[:, u] for u in scope if u != v)
                left = np.moveaxis(table > -np.inf, axis, -1)[others]  # (states, states of v)
                possible[:, v, : left.shape[-1]] &= left
        is_open = held.allowed.sum(1) > 1
        if not is_open.any():
            return ()
        share = float((possible.sum(-1) == 1)[:, is_open].mean())
        return (Finding.of(Kind.BLOCKED_MOVES, share=100 * share),) if share > _FEW_BLOCKED else ()

    def _compiled(self) -> "_Compiled":
        return _recent.get((self.digest,), lambda: _compile(*self.factors()))


class _Compiled(NamedTuple):
    """What a path needs."""

    allowed: np.ndarray  # (units, states)
    fields: np.ndarray  # (units, states), 0 where a state is not allowed
    factors: Tables  # of two and more variables, the largest entry 0
    constant: float
    layers: tuple[np.ndarray, np.ndarray] | None
    """The variables of two colours, the fewer first, where the graph is an RBM."""


_recent = Recent(4)  # by digest: every question that a run asks needs it


def _compile(states: tuple[int, ...], factors: Tables) -> _Compiled:
    most = max(states)
    allowed = np.arange(most) < np.array(states)[:, None]
    fields = np.zeros((len(states), most))
    constant = 0.0
    wide = []
    for scope, table in factors:
        if len(scope) > 1:
            wide.append((scope, table))
        elif len(scope) == 1:
            fields[scope[0], : table.size] += table
        else:
            constant += float(table)
    if constant == -np.inf:
        raise ValueError(
            "a factor of no variables is zero, so that Z = 0: the evidence is impossible."
        )
    wide = absorbed(wide)
    allowed &= fields > -np.inf
    allowed = _propagated(allowed, wide)
    fields = np.where(allowed, fields, 0.0)
    tops = np.where(allowed, fields, -np.inf).max(1, keepdims=True)
    fields = np.where(allowed, fields - tops, 0.0)
    constant += float(tops.sum())
    held = []
    for scope, table in wide:
        inside = _inside(scope, table, allowed)
        kept = np.where(inside, table, -np.inf)
        largest = kept.max()
        constant += float(largest)
        held.append((scope, np.where(inside, table - largest, 0.0)))
    return _Compiled(allowed, fields, held, constant, _layers(allowed, held))


def _layers(allowed: np.ndarray, factors: Tables) -> tuple[np.ndarray, np.ndarray] | None:
    """Of variables of two states in positive pairs whose graph has two colours."""
    if allowed.shape[1] != 2 or not allowed.all() or not factors:
        return None
    if any(len(scope) > 2 or (table == -np.inf).any() for scope, table in factors):
        return None
    return two_layers(_graph(len(allowed), factors))


def _graph(number: int, factors: Tables) -> list[np.ndarray]:
    """Return the graph that joins variables with a common factor."""
    near = neighbours(number, [scope for scope, _ in factors])
    return [np.array(sorted(others), np.int64) for others in near]


def _inside(scope: tuple[int, ...], table: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Where all variables are in states that are allowed."""
    inside = np.ones(table.shape, bool)
    for axis, v in enumerate(scope):
        shape = [1] * table.ndim
        shape[axis] = -1
        inside &= allowed[v, : table.shape[axis]].reshape(shape)
    return inside


def _propagated(allowed: np.ndarray, factors: Tables) -> np.ndarray:
    """The states that no single factor excludes, given those of its other variables."""
    pending = [factor for factor in factors if (factor[1] == -np.inf).any()]
    allowed, is_changed = allowed.copy(), True
    while True:
        empty = np.flatnonzero(~allowed.any(1))
        if empty.size:
            raise ValueError(
                f"factors leave variable {int(empty[0])} without a state, so that Z = 0: every state "
                "has a zero factor."
            )
        if not is_changed:
            return allowed
        is_changed = False
        for scope, table in pending:
            possible = _inside(scope, table, allowed) & (table > -np.inf)
            for axis, v in enumerate(scope):
                rest = tuple(other for other in range(table.ndim) if other != axis)
                left = allowed[v, : table.shape[axis]] & possible.any(rest)
                if left.sum() < allowed[v].sum():
                    allowed[v] = False
                    allowed[v, : table.shape[axis]] = left
                    is_changed = True


def _whole_numbers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a sequence of whole numbers, got {values!r}.")
    return array.astype(np.int64)


def _log_table(number: int, table: ArrayLike, is_log: bool) -> np.ndarray:
    array = np.asarray(table)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"factor {number} must hold real numbers, got dtype {array.dtype}.")
    array = array.astype(np.float64).ravel()
    is_bad = np.isnan(array) | (array == np.inf)
    if not is_log:
        is_bad |= array < 0
    if is_bad.any():
        kind = "logarithms below infinity" if is_log else "finite numbers, at least 0"
        raise ValueError(f"factor {number} must hold {kind}, got {array[is_bad][0]:g}.")
    if not is_log:
        with np.errstate(divide="ignore"):
            array = np.log(array)
    if array.size and array.max() == -np.inf:
        raise ValueError(f"factor {number} is zero everywhere, so that Z = 0.")
    return array


def _check(states: np.ndarray, scopes: Sequence[np.ndarray], sizes: Sequence[int]) -> None:
    """Refuse what does not belong together."""
    if not states.size or (states < 1).any() or (states > _MOST_STATES).any():
        raise ValueError(
            f"num_states must be from 1 to {_MOST_STATES} for each of one or more variables, got "
            f"{states.min() if states.size else 'none'}."
        )
    for number, scope in enumerate(scopes):
        if ((scope < 0) | (scope >= states.size)).any():
            raise ValueError(
                f"the scope of factor {number} must be of variables 0 to {states.size - 1}, got "
                f"{scope.tolist()}."
            )
        if len(set(scope.tolist())) < scope.size:
            raise ValueError(
                f"the scope of factor {number} must have every variable once, got {scope.tolist()}."
            )
    for number, (scope, size) in enumerate(zip(scopes, sizes, strict=False)):
        wanted = math.prod(states[scope].tolist())
        if size != wanted:
            raise ValueError(
                f"factor {number} over variables {scope.tolist()} must have {wanted} entries, got {size}."
            )
    if sum(sizes) > _MOST_ENTRIES:
        raise ValueError(
            f"factors may have {_MOST_ENTRIES:,} entries together, got {sum(sizes):,}."
        )
