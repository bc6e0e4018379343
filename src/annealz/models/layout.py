"""How a pytree of parameters lies in one vector: leaves one after the other, each in C order.

    {"a": (), "b": (2,)}   <->   x = [a, b_0, b_1]

The same code splits vectors of JAX and rows of NumPy.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np

from annealz.models.parameters import Parameters


@dataclasses.dataclass(frozen=True)
class Layout:
    """The structure of a pytree, and the shapes and names of its leaves."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, example: Any, is_leaf: Callable[[Any], bool] | None = None) -> Self:
        """Of a pytree of arrays like this one; a single array is called x."""
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
        """The pytree of a vector (dim,), or of rows (points, dim): then the points first in every leaf."""
        ends = np.cumsum((0, *self.sizes))
        lead = x.shape[:-1]
        leaves = [
            x[..., start:stop].reshape((*lead, *shape)) if shape else x[..., start]
            for start, stop, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)

    def join(self, tree: Any) -> np.ndarray:
        """The rows (points, dim) of a pytree with the points first in every leaf."""
        leaves = [np.asarray(leaf, np.float64) for leaf in self.structure.flatten_up_to(tree)]
        return np.concatenate(
            [leaf.reshape(-1, size) for leaf, size in zip(leaves, self.sizes, strict=True)], axis=1
        )

    def by_name(self, tree: Any) -> dict[str, np.ndarray]:
        return dict(
            zip(self.names, map(np.asarray, self.structure.flatten_up_to(tree)), strict=True)
        )

    def parameters(self) -> Parameters:
        """The leaves as they are, by name."""
        return Parameters(
            self.names,
            lambda rows: self.by_name(self.split(np.asarray(rows))),
            lambda values: self.join(self.structure.unflatten(values[n] for n in self.names)),
        )
