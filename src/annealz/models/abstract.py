"""A model: an unnormalised distribution p*(x), and how it likes to be annealed.

    model -> base (exact draws, exact log Z) -> path from base to model -> kernel along the path

A model names its base, path and kernel by default; whoever estimates its log Z may give others. A new model
must define its name, its base, its kernel, and its path or its `log_density`.
"""

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from annealz.core.errors import InputError
from annealz.io.fingerprint import fingerprint

if TYPE_CHECKING:  # they come later in the flow
    from annealz.bases.abstract import AbstractBase
    from annealz.diagnostics.findings import Finding
    from annealz.kernels.abstract import AbstractKernel
    from annealz.models.contraction import Factors
    from annealz.paths.abstract import AbstractPath


class AbstractModel(eqx.Module):
    """An unnormalised distribution that can be annealed.

    Examples
    --------
    >>> import annealz
    >>> import jax.numpy as jnp
    >>> class Ring(annealz.AbstractModel):
    ...     sites: int
    ...     name: str = "ring"
    ...
    ...     def log_density(self, x):
    ...         return (0.2 * x * jnp.roll(x, 1, -1) - 0.5 * x**2).sum(-1)
    ...
    ...     def base(self):
    ...         return annealz.GaussianBase.standard(self.sites)
    ...
    ...     def kernel(self):
    ...         return annealz.RandomWalk(step_size=0.5)
    >>> estimate = annealz.estimate_log_z(Ring(4), schedule="linear", num_steps=100, num_chains=100)
    >>> abs(estimate.log_z - 3.7629) < 5 * estimate.std_err  # 2 log 2 pi - log(0.84) / 2
    True
    """

    marginals: ClassVar[tuple[str, ...]] = ("visible",)
    """The sets of variables that may be annealed, the others summed out."""
    sums_out_own: ClassVar[bool] = False
    """Whether what a path sums out is the model's own, as a colour of an Ising graph: entropy counts it."""
    usual_chains: ClassVar[int] = 1000
    """How many are annealed by default."""
    searched_bases: ClassVar[tuple[str, ...]] = ()
    """Names of bases that only a pilot finds; `choose_base` gives a stand-in for them."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What to call it where nobody has named it."""

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of its parameters: the identity of the distribution."""
        return fingerprint(self, type(self).__qualname__)

    def base(self) -> "AbstractBase":
        """The base by default."""
        raise ValueError(f"{type(self).__name__} has no base: define `base`, or give one.")

    def choose_base(self, base: Any = "auto", data: Any = None) -> "AbstractBase":
        """The base of this name, "auto" the default one, or the base that is given, if it fits."""
        from annealz.bases.abstract import AbstractBase

        if data is not None:
            raise ValueError(
                f"data serve the bases of other models than {self.name}: leave them out."
            )
        if isinstance(base, AbstractBase):
            return base
        if base != "auto":
            raise ValueError(f"unknown base {base!r}: {self.name} knows auto, or give one itself.")
        return self.base()

    @property
    def takes_data(self) -> bool:
        """Whether data, or their means, would give it a base rate to start from."""
        return False

    def flat_base(self) -> "AbstractBase | None":
        """The base that prefers no state, where the model has one; mixtures are built on its path."""
        return None

    def named_bases(self) -> "Mapping[str, Callable[[], AbstractBase]]":
        """Bases to choose between where nothing is known of the data, by name; none by default."""
        return {}

    def path(self, base, marginal: str = "visible") -> "AbstractPath":
        """The path from this base to the model; by default the geometric one of their densities."""
        from annealz.paths.tempered import TemperedPath

        self.check_marginal(marginal)
        return TemperedPath(base, self)

    @abc.abstractmethod
    def kernel(self) -> "AbstractKernel":
        """The transition along the path, by default."""

    def named_kernels(self) -> "Mapping[str, Callable[[], AbstractKernel]]":
        """Transitions to choose between, by name, beside auto; none by default."""
        return {}

    def choose_kernel(self, kernel: Any = None) -> "AbstractKernel":
        """The kernel of this name, None and "auto" the default one, or the kernel that is given."""
        from annealz.kernels.abstract import AbstractKernel

        if isinstance(kernel, AbstractKernel):
            return kernel
        options = {"auto": self.kernel, **self.named_kernels()}
        if kernel is None or (isinstance(kernel, str) and kernel in options):
            return options[kernel or "auto"]()
        names = ", ".join(options)
        if isinstance(kernel, str):
            raise InputError(
                "kernel",
                f"must be one of {names}, which {self.name} knows, or a kernel itself",
                kernel,
            )
        raise ValueError(
            f"kernel must be an annealz.AbstractKernel or one of {names}, got {type(kernel).__name__}."
        )

    def log_density(self, x, /) -> Float[Array, " chains"]:
        """log p*(x) of every chain."""
        raise ValueError(f"{type(self).__name__} has no log_density: define it, or `path`.")

    def check(self) -> None:
        """Refuse parameters that make no distribution, by a ValueError."""
        return

    @property
    def num_checked(self) -> int:
        """Evaluations of its density that `check` takes."""
        return 0

    def check_marginal(self, marginal: str) -> str:
        """The marginal itself, if the model has it."""
        if marginal not in self.marginals:
            raise ValueError(
                f"marginal must be one of {', '.join(self.marginals)}, got {marginal!r}: "
                f"{self.name} has no other."
            )
        return marginal

    def factors(self) -> "Factors | None":
        """The model as a factor graph, for exact contraction: the number of states of every variable, and
        factors as (scope, log table). None of what is not discrete.
        """
        return None

    def findings(self, states: np.ndarray) -> "tuple[Finding, ...]":
        """What speaks against the moves of its kernel, by states (states, units) where chains ended."""
        return ()

    def exact_log_z_if_cheap(self) -> float | None:
        """log Z where it is known or found in no time."""
        return None

    @property
    def num_enumerated(self) -> int:
        """Evaluations of its density that `exact_log_z_if_cheap` takes, and `exact_draws`."""
        return 0

    def exact_log_z(self) -> float:
        """log Z in closed form or by enumeration, however long it takes."""
        raise ValueError(f"no way is known to compute log Z of {self.name} exactly.")

    @property
    def has_exact_draws(self) -> bool:
        """Whether `exact_draws` may be asked for."""
        return False

    def exact_draws(self, num_draws: int, seed: int, marginal: str = "visible") -> np.ndarray:
        """Independent draws (draws, ...) of the model's variables, those of this marginal."""
        raise ValueError(f"{self.name} has no exact draws.")
