"""How a row of discrete states is given to a user's function: as whole numbers, or as ones and zeros.

    numbers    x (n,)      0 .. q - 1, int32 in JAX, int64 in NumPy
    one-hot    x (n, q)    1 where unit i has state k

The same code serves vectors of JAX and rows of NumPy; states come as floats (`paths/discrete.py`).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


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
        """What the function takes, of a state (dim,) or of rows (points, dim)."""
        if self.one_hot:
            states = np.arange(self.num_states)
            return (x[..., None] == states).astype(x.dtype)
        return x.astype(jnp.int32 if isinstance(x, jax.Array) else np.int64)

    def relaxed(self, x: jax.Array) -> jax.Array:
        """The state (dim,) as real numbers that a gradient may be taken in: (dim,) or (dim * states,)."""
        return self.split(x).ravel() if self.one_hot else x

    def unrelaxed(self, x: jax.Array) -> jax.Array:
        """Of these the argument of the function."""
        return x.reshape(self.dim, self.num_states) if self.one_hot else x
