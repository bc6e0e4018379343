"""Functions of JAX that count the points at which they are computed, a whole batch at a time.

    value                              one, with or without its gradient
    derivative of the gradient         one for each direction, with value and gradient: dim second
                                       derivatives, along all coordinates, are dim evaluations

A zero that comes from the host is added to what is computed, so that no compiler can leave the call out
where the value is used. Under `vmap` a batch is one call, whose shape says how many points it has: that is
quick, and rows that only fill a batch up are counted.
"""

import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

__all__ = ["Counted"]


class Counted:
    """fn of one position, (dim,) or of any shape, which counts.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> fn = Counted(lambda x: -0.5 * jnp.sum(x**2))
    >>> values = jax.vmap(fn)(jnp.zeros((7, 2)))
    >>> fn.since(), fn.since()
    (7, 0)
    """

    def __init__(self, fn: Callable[[Any], Any]):
        self._count, self._lock = 0, threading.Lock()

        @jax.custom_jvp
        def value(x):
            return fn(x) + self._zero(x)

        @value.defjvp
        def _(primals, tangents):
            value, gradient = both(primals[0])
            return value, (gradient * tangents[0]).sum()

        @jax.custom_jvp
        def both(x):
            zero = self._zero(x)
            value, gradient = jax.value_and_grad(fn)(x)
            return value + zero, gradient + zero

        @both.defjvp
        def _(primals, tangents):
            x, along = primals[0], tangents[0]
            zero = self._zero(x, along)
            value, gradient = jax.value_and_grad(fn)(x)
            turned = jax.jvp(jax.grad(fn), (x,), (along,))[1]
            found = value + zero, gradient + zero
            return found, ((gradient * along).sum(), turned + zero)

        self._value = value

    def __call__(self, x):
        return self._value(x)

    def since(self) -> int:
        """Evaluations since this was asked last."""
        jax.effects_barrier()
        count, self._count = self._count, 0
        return count

    def _zero(self, *points):
        """0, from the host, which learns of as many points as there are."""
        ndim = points[0].ndim

        def count(*points):
            batch = np.broadcast_shapes(*(x.shape[: x.ndim - ndim] for x in points))
            with self._lock:  # blocks run side by side
                self._count += int(np.prod(batch))
            return np.zeros(batch, np.float32)

        shape = jax.ShapeDtypeStruct((), np.float32)  # whatever the precision of the points
        rows = [x.astype(np.float32) for x in points]
        zero = jax.pure_callback(count, shape, *rows, vmap_method="expand_dims")
        return zero.astype(points[0].dtype)
