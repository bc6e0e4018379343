"""Functions of JAX that count the points at which they are computed, a whole batch at a time.

    value                              one, with or without its gradient
    derivative of the gradient         one for every direction, so that second derivatives are dim

Nothing is added to a value but a zero that comes from the host, so that no compiler can leave it out where
the value is used. Under `vmap` a batch is one call: the points of it are counted by its shape. What is
computed for rows that only fill a batch up is counted, and so is what nobody reads while it is computed.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

__all__ = ["Counted"]


class Counted:
    """fn(x) of one position (dim,), with the number of evaluations in `count`.

    Parameters
    ----------
    fn : log density of one position, of JAX
    """

    def __init__(self, fn: Callable[[Any], Any]):
        self.count = 0

        def add(x, *_):
            self.count += int(np.prod(np.broadcast_shapes(x.shape[:-1], *(t.shape[:-1] for t in _))))
            return np.zeros(np.broadcast_shapes(x.shape[:-1], *(t.shape[:-1] for t in _)), x.dtype)

        def one(*x):
            shape = jax.ShapeDtypeStruct((), x[0].dtype)
            return jax.pure_callback(add, shape, *x, vmap_method="expand_dims")

        @jax.custom_jvp
        def value(x):
            return fn(x) + one(x)

        @value.defjvp
        def _(primals, tangents):
            value, gradient = both(primals[0])
            return value, gradient @ tangents[0]

        @jax.custom_jvp
        def both(x):
            value, gradient = jax.value_and_grad(fn)(x)
            zero = one(x)
            return value + zero, gradient + zero

        @both.defjvp
        def _(primals, tangents):
            x, along = primals[0], tangents[0]
            value, gradient = both(x)
            turned = jax.jvp(jax.grad(fn), (x,), (along,))[1] + one(x, along)
            return (value, gradient), (gradient @ along, turned)

        self.value = value

    def __call__(self, x):
        return self.value(x)

    def since(self) -> int:
        """Evaluations since this was asked last."""
        jax.effects_barrier()
        count, self.count = self.count, 0
        return count
