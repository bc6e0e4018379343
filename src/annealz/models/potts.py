"""The Potts model on any graph: units of q states, coupled in pairs.

    log p*(x) = sum_{i<j} J[i, x_i, j, x_j] + sum_i h[i, x_i],      x in {0 .. q - 1}^n

with one number for every two states of a pair, as in direct coupling analysis of proteins, or one for each
pair, J[i, a, j, b] = J_ij [a = b]. The temperature is part of J and h. All units are annealed; a sweep
draws one colour of the graph after the other (`kernels/colours.py`), which is one unit after the other
where every pair is coupled.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Array, ArrayLike, Float

from annealz.bases.categorical import CategoricalBase, check_frequencies
from annealz.core.arrays import on_device, real_array
from annealz.io.fingerprint import fingerprint
from annealz.kernels.clusters import Clusters
from annealz.kernels.colours import ColourGibbs, graph_of
from annealz.models.abstract import log_density_at_end
from annealz.models.contraction import Factors, Tables
from annealz.models.graph import AbstractPairModel
from annealz.models.ising import check_couplings, lattice_couplings
from annealz.paths.pairs import PairPath, PairTablePath

_ROUNDING = 1e-5  # of the largest coupling: two programs' float32 may differ by it
_STRUCTURE = "PyTreeDef(CustomNode(Potts[(Missing,)], [*, *]))"  # of couplings and fields alone


class Potts(AbstractPairModel):
    """Units of several states, coupled in pairs.

    Parameters
    ----------
    couplings : (units, units), symmetric, with zeros on the diagonal, of pairs in the same state; or
        (units, states, units, states), with J[i, a, j, b] = J[j, b, i, a] and zeros where i = j
    num_states : q; it can be left out where the couplings or the fields show it
    fields : (units, states), zero by default
    frequencies : (units, states), optional
        Of the states of each unit in the data, such as an alignment of sequences, where they are known.
        They are not part of the distribution: the base rate base is built from them.

    Examples
    --------
    >>> import annealz
    >>> pair = annealz.Potts([[0.0, 1.0], [1.0, 0.0]], num_states=3)
    >>> round(annealz.exact_log_z(pair), 4)  # log(3 e + 6)
    2.6501
    """

    takes_data: ClassVar[bool] = True

    couplings: Float[Array, "units units"] | Float[Array, "units states units states"]
    fields: Float[Array, "units states"]
    frequencies: Float[Array, "units states"] | None = None

    def __init__(
        self,
        couplings: ArrayLike,
        num_states: int | None = None,
        fields: ArrayLike | None = None,
        frequencies: ArrayLike | None = None,
    ):
        checked = _check_any(couplings)
        given = None if fields is None else real_array("fields", fields)
        if num_states is None:
            num_states = _states_of(checked, given)
        if num_states < 2:
            raise ValueError(f"num_states must be at least 2, got {num_states}.")
        wanted = (checked.shape[0], num_states)
        given = np.zeros(wanted) if given is None else given
        if checked.ndim == 4 and checked.shape[1] != num_states:
            raise ValueError(
                f"num_states must be that of the couplings, {checked.shape[1]}, got {num_states}: leave "
                "it out."
            )
        if given.shape != wanted:
            raise ValueError(f"fields must be (units, states) = {wanted}, got shape {given.shape}.")
        self.couplings, self.fields = on_device(checked), on_device(given)
        self.frequencies = None
        if frequencies is not None:
            shares = check_frequencies(real_array("frequencies", frequencies), wanted)
            self.frequencies = on_device(shares)

    @classmethod
    def square(
        cls,
        side: int | tuple[int, int],
        num_states: int,
        coupling: float,
        *,
        is_periodic: bool = True,
    ) -> Self:
        """A square lattice (height, width); critical at log(1 + sqrt q) where it is infinite."""
        height, width = (side, side) if isinstance(side, int) else side
        couplings = lattice_couplings(height, width, (coupling, coupling), is_periodic)
        return cls(couplings, num_states)

    @property
    def num_units(self) -> int:
        return self.fields.shape[0]

    @property
    def num_states(self) -> int:
        return self.fields.shape[1]

    @property
    def name(self) -> str:
        return f"potts-{self.num_units}x{self.num_states}"

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of couplings and fields: the identity of the distribution."""
        parts = (self.couplings, self.fields)
        return fingerprint(parts, type(self).__qualname__, structure=_STRUCTURE)

    @property
    def is_coupled(self) -> np.ndarray:
        """(units, units), whether two units are coupled."""
        couplings = np.asarray(self.couplings)
        return couplings != 0 if couplings.ndim == 2 else (couplings != 0).any((1, 3))

    def check(self) -> None:
        type(self)(self.couplings, None, self.fields, self.frequencies)

    def log_density(self, x: ArrayLike, /) -> Float[Array, "..."]:
        """log p*(x) of states (..., units)."""
        states = on_device(x)
        rows = states.reshape(-1, self.num_units)
        return log_density_at_end(self.path(self.flat_base()), rows).reshape(states.shape[:-1])

    def factors(self) -> Factors:
        """The number of states of every unit, and (units, log table in float64) of every field and pair.

        log p*(x) is the sum of the tables at x; a pair (i, j), i < j, has a table [x_i, x_j].
        """
        couplings = np.asarray(self.couplings, np.float64)
        fields = np.asarray(self.fields, np.float64)
        parts: Tables = [((unit,), field) for unit, field in enumerate(fields)]
        for i, j in np.argwhere(np.triu(self.is_coupled, 1)).tolist():
            is_full = couplings.ndim == 4
            table = couplings[i, :, j] if is_full else couplings[i, j] * np.eye(self.num_states)
            parts.append(((i, j), table))
        return (self.num_states,) * self.num_units, parts

    def rate_base(self, data: Any = None):
        """Return the base of rows of states (rows, units), or of frequencies: by default of the model's."""
        known = self.frequencies if data is None else data
        if known is None:
            return None
        return CategoricalBase.from_rows_or_frequencies(known, self.num_units, self.num_states)

    def flat_base(self) -> CategoricalBase:
        return CategoricalBase.uniform(self.num_units, self.num_states)

    def fields_base(self) -> CategoricalBase:
        return CategoricalBase.from_logits(self.fields, "fields")

    def product_path(self, base: Any, marginal: str):
        kind = PairPath if self.couplings.ndim == 2 else PairTablePath.of_couplings
        return kind(base, base.logits, self.couplings, self.fields)

    def kernel(self):
        return ColourGibbs.of_graph(graph_of(self.is_coupled))

    def named_kernels(self):
        kernels: dict[str, Callable[[], Any]] = {"gibbs": self.kernel}
        if self.couplings.ndim == 2:  # of units that agree
            kernels["clusters"] = lambda: Clusters.of_matrix(self.couplings)
        return kernels


def _check_any(couplings: ArrayLike) -> np.ndarray:
    """The couplings of either kind in float32, if they are symmetric and couple no unit with itself."""
    array = real_array("couplings", couplings)
    if array.ndim == 2:
        return check_couplings(array)
    shape = array.shape
    if array.ndim != 4 or 0 in shape:
        raise ValueError(
            "couplings must be (units, units) or (units, states, units, states), got shape "
            f"{shape}."
        )
    if shape[:2] != shape[2:]:
        is_other = shape[0] == shape[1] and shape[2] == shape[3]
        remedy = ": transpose them by (0, 2, 1, 3)" if is_other else ""
        raise ValueError(
            f"couplings must be (units, states, units, states), got shape {shape}{remedy}."
        )
    turned = np.moveaxis(array, (2, 3), (0, 1))
    if not np.array_equal(array, turned):
        apart = np.abs(array - turned)
        if apart.max() > _ROUNDING * np.abs(array).max():
            i, a, j, b = (int(k) for k in np.unravel_index(apart.argmax(), shape))
            raise ValueError(
                "couplings must be symmetric, J[i, a, j, b] = J[j, b, i, a], got "
                f"{array[i, a, j, b]:g} at [{i}, {a}, {j}, {b}] and {array[j, b, i, a]:g} at "
                f"[{j}, {b}, {i}, {a}]: where each pair is given once, add the transpose."
            )
        array = (array + turned) / 2
    unit = np.arange(len(array))
    if array[unit, :, unit].any():
        raise ValueError(
            "couplings must be zero where i = j: no unit is coupled with itself; what stands there "
            "belongs to the fields."
        )
    return array


def _states_of(couplings: np.ndarray, fields: np.ndarray | None) -> int:
    """q, where it need not be given."""
    if couplings.ndim == 4:
        return couplings.shape[1]
    if fields is not None and fields.ndim == 2:
        return fields.shape[1]
    raise ValueError("num_states must be given with couplings (units, units) and without fields.")
