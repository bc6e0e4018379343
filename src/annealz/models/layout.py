"""How the variables of a density lie in one vector, and how they are shown.

    {"a": (), "b": (2,)}   <->   x = [a, b_0, b_1]          leaves one after the other, each in C order

A row of discrete states is given to a user's function as whole numbers, or as ones and zeros:

    numbers    x (n,)      0 .. q - 1, int32 in JAX, int64 in NumPy
    one-hot    x (n, q)    1 where unit i has state k

The same code splits vectors of JAX and rows of NumPy; states come as floats (`paths/discrete.py`).
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Parameters of a density in their own space: by name, and positive or bounded where the model says so.

    log Z does not depend on them: they say how draws are shown, and how a user's draws are read.

    Parameters
    ----------
    names : in the order in which they are shown
    constrain : rows (draws, dim) -> {name: (draws, ...)}
    unconstrain : {name: (draws, ...)} -> rows (draws, dim); None where there is no way back
    """

    names: tuple[str, ...]
    constrain: Callable[[np.ndarray], dict[str, np.ndarray]] = dataclasses.field(compare=False)
    unconstrain: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = dataclasses.field(
        default=None, compare=False
    )


@dataclasses.dataclass(frozen=True)
class Layout:
    """The structure of a pytree, and the shapes and names of its leaves."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, example: Any, is_leaf: Callable[[Any], bool] | None = None) -> Self:
        """Return the layout of a pytree of arrays like this one; a single array is called x."""
        leaves, structure = jax.tree_util.tree_flatten_with_path(example, is_leaf=is_leaf)
        names = tuple(
            jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path, _ in leaves
        )
        return cls(structure, tuple(np.shape(leaf) for _, leaf in leaves), names)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(np.prod(shape)) for shape in self.shapes)

    @property
    def dim(self) -> int:
        return sum(self.sizes)

    @property
    def is_plain(self) -> bool:
        """Whether it is one vector, as it is."""
        return self.structure == jax.tree.structure(0) and len(self.shapes[0]) == 1

    @property
    def shown(self) -> str:
        """What a function of it takes, in words."""
        if self.is_plain:
            return f"one position of shape ({self.dim},)"
        return f"parameters as in the example ({', '.join(self.names)})"

    def split(self, x: Any) -> Any:
        """Return the pytree of a vector (dim,), or of rows (points, dim), the points first in a leaf."""
        ends = np.cumsum((0, *self.sizes))
        lead = x.shape[:-1]
        leaves = [
            x[..., start:stop].reshape((*lead, *shape)) if shape else x[..., start]
            for start, stop, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)

    def join(self, tree: Any) -> np.ndarray:
        """Return the rows (points, dim) of a pytree with the points first in every leaf."""
        leaves = [np.asarray(leaf, np.float64) for leaf in self.structure.flatten_up_to(tree)]
        return np.concatenate(
            [leaf.reshape(-1, size) for leaf, size in zip(leaves, self.sizes, strict=True)], axis=1
        )

    def by_name(self, tree: Any) -> dict[str, np.ndarray]:
        return dict(
            zip(self.names, map(np.asarray, self.structure.flatten_up_to(tree)), strict=True)
        )

    def parameters(self) -> Parameters:
        """Return the leaves as they are, by name."""
        return Parameters(
            self.names,
            lambda rows: self.by_name(self.split(np.asarray(rows))),
            lambda values: self.join(self.structure.unflatten(values[n] for n in self.names)),
        )


@dataclasses.dataclass(frozen=True)
class StateLayout:
    """So many units of so many states; what `as_function` asks of a layout."""

    dim: int
    num_states: int
    one_hot: bool
    is_plain: bool = False

    @property
    def shown(self) -> str:
        """What a function of it takes, in words."""
        if self.one_hot:
            return f"one state as ones and zeros of shape ({self.dim}, {self.num_states})"
        return f"one state of shape ({self.dim},), whole numbers from 0 to {self.num_states - 1}"

    def split(self, x: Any) -> Any:
        """Return what the function takes, of a state (dim,) or of rows (points, dim)."""
        if self.one_hot:
            states = np.arange(self.num_states)
            return (x[..., None] == states).astype(x.dtype)
        return x.astype(jnp.int32 if isinstance(x, jax.Array) else np.int64)

    def relaxed(self, x: jax.Array) -> jax.Array:
        """Return the state as real numbers that a gradient may be taken in: (dim,) or (dim * states,)."""
        return self.split(x).ravel() if self.one_hot else x

    def unrelaxed(self, x: jax.Array) -> jax.Array:
        """Return of these the argument of the function."""
        return x.reshape(self.dim, self.num_states) if self.one_hot else x
