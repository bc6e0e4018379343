"""Units of unlike numbers of states, or with states that never occur: softmax units with a mask.

All have q indicators, q the largest number of states. A state that a unit has not got has a logit of -1e4:
exp(-1e4) is 0 in float32 and in float64, so that it is never drawn and adds nothing to A(z), and sums stay
finite.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from annealz.core.units import AbstractStateUnits, SoftmaxUnits

NEVER = -1e4


class MixedUnits(AbstractStateUnits):
    """Units of up to `num_states` values, some of which some units have not got.

    Fields are those of `SoftmaxUnits`, with -1e4 where a unit lacks the state.
    """

    allowed: Bool[Array, "units states"]
    num_states: int = eqx.field(static=True)

    def encode(self, x):
        return self._plain.encode(x)

    def log_z(self, fields):
        return self._plain.log_z(fields)

    def log_z_difference(self, low, step):
        return self._plain.log_z_difference(low, step)

    def mean(self, fields):
        return self._plain.mean(fields)

    def sample(self, bits, fields, draw: int):
        fields = fields.reshape(*fields.shape[:-1], -1, self.num_states)
        sums = jnp.cumsum(jnp.exp(fields - fields.max(-1, keepdims=True)), -1)
        # never 0, so that a first state without weight is passed
        uniforms = jnp.maximum(bits.uniforms(fields.shape[-2], draw), jnp.float32(2.0**-32))
        level = uniforms[..., None] * sums[..., -1:]
        return (level > sums[..., :-1]).sum(-1).astype(jnp.float32)

    def exact_log_z(self, fields):
        return self._plain.exact_log_z(fields)

    def natural(self, means: np.ndarray) -> np.ndarray:
        """log of the frequencies (..., units * states), which are shared by the states that there are."""
        allowed = np.asarray(self.allowed)
        apart = np.where(allowed, means.reshape(*means.shape[:-1], *allowed.shape), 0.0)
        apart = apart / apart.sum(-1, keepdims=True)
        logits = np.where(allowed, np.log(np.where(allowed, apart, 1.0)), NEVER)
        return logits.reshape(means.shape)

    @property
    def _plain(self) -> SoftmaxUnits:
        return SoftmaxUnits(self.num_states)
