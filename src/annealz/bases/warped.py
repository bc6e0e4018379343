"""A base in other coordinates: u has the inner base, x = warp(u) (`warp.py`).

    p_A(x) = p_inner(u(x)) / |dx/du|

Its states are the coordinates z of the inner frame, u = m + S z. Where a path counts both ends as densities
of x with dx = |S| dz, the stretch log |dx/du| belongs to the model's log density.
"""

import equinox as eqx
from jaxtyping import Array, Bool, Float

from annealz.bases.frame import AbstractFrameBase
from annealz.bases.warp import Warp
from annealz.core.random import Bits


class WarpedBase(AbstractFrameBase):
    """A base with a frame, seen through a warp.

    Examples
    --------
    >>> import numpy as np
    >>> import annealz
    >>> from annealz.bases.warp import Warp, knots
    >>> from annealz.bases.warped import WarpedBase
    >>> t = knots(9)
    >>> warp = Warp.of(0, 2, 0 * t, np.zeros((9, 1)), np.exp(t)[:, None, None], np.array([1]))
    >>> base = WarpedBase(annealz.GaussianBase.standard(2), warp)
    >>> base.name, round(base.log_z, 4)  # log 2 pi
    ('standard', 1.8379)
    """

    inner: AbstractFrameBase
    warp: Warp
    name: str = eqx.field(static=True, default="")
    evaluations: int = eqx.field(static=True, default=0)
    """Of the density, that finding it took."""
    offset: Float[Array, ""] | None = None
    """What is subtracted from the log density that a path leads to (`paths/tempered.py`)."""

    def __init__(self, inner: AbstractFrameBase, warp: Warp):
        self.inner, self.warp = inner, warp
        self.name = inner.name  # pyright: ignore[reportAttributeAccessIssue]
        self.evaluations = getattr(inner, "evaluations", 0)
        self.offset = getattr(inner, "offset", None)

    @property
    def mean(self) -> Float[Array, " dim"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the frame of u."""
        return self.inner.mean

    @property
    def scale(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the frame of u."""
        return self.inner.scale

    @property
    def log_z(self) -> float:
        return self.inner.log_z

    def unnamed(self) -> "WarpedBase":
        """The same without names, for programs."""
        return WarpedBase(self.inner.unnamed(), self.warp)

    def sample_unit(self, bits: Bits, draw: int = 0) -> Float[Array, "chains dim"]:
        return self.inner.sample_unit(bits, draw)

    def log_density_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        return self.inner.log_density_unit(z)

    def log_density(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch"]:
        u = self.warp.inverse(x)
        return self.inner.log_density(u) - self.warp.log_stretch(u)

    def from_unit(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """x = warp(m + S z)."""
        return self.warp.forward(self.inner.from_unit(z))

    def to_unit(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """z of x."""
        return self.inner.to_unit(self.warp.inverse(x))

    def is_resolved(self, z: Float[Array, "*batch dim"]) -> Bool[Array, "*batch"] | bool:
        return self.inner.is_resolved(z) & self.warp.is_resolved(self.inner.from_unit(z))

    def log_stretch(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch"] | float:
        return self.inner.log_stretch(z) + self.warp.log_stretch(self.inner.from_unit(z))
