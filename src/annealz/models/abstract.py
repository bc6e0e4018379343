"""A model: an unnormalised distribution p*(x), and how it likes to be annealed.

    model -> base (exact draws, exact log Z) -> path from base to model -> kernel along the path

A model names its base, path and kernel by default; whoever estimates its log Z may give others. A new model
must define its name, its base, its kernel, and its path or its `log_density`.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from annealz.bases.abstract import AbstractBase
from annealz.bases.bernoulli import BernoulliBase
from annealz.bases.categorical import CategoricalBase
from annealz.bases.gaussian import GaussianBase
from annealz.bases.mixture import MixtureBase
from annealz.core.errors import InputError
from annealz.diagnostics.findings import Finding
from annealz.io.fingerprint import fingerprint
from annealz.kernels.abstract import AbstractKernel
from annealz.models.contraction import Factors
from annealz.paths.abstract import AbstractPath
from annealz.paths.mixture import mixture_path
from annealz.paths.tempered import TemperedPath


class AbstractModel(eqx.Module):
    """An unnormalised distribution that can be annealed.

    Examples
    --------
    >>> import annealz  # docs/extending.md has a model of one's own
    >>> isinstance(annealz.Ising.square(4, 0.3), annealz.AbstractModel)
    True
    """

    marginals: ClassVar[tuple[str, ...]] = ("visible",)
    """The sets of variables that may be annealed, the others summed out."""
    sums_out_own: ClassVar[bool] = False
    """Whether what a path sums out is the model's own, as a colour of an Ising graph: entropy counts it."""
    usual_chains: ClassVar[int] = 1000
    """How many are annealed by default."""
    takes_data: ClassVar[bool] = False
    """Whether data, or their means, would give it a base rate to start from: `rate_base`."""
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

    def base(self) -> AbstractBase:
        """The base by default."""
        raise ValueError(f"{type(self).__name__} has no base: define `base`, or give one.")

    def choose_base(self, base: Any = "auto", data: Any = None) -> Any:
        """Return the base of this name, or the base that is given, if it fits.

        `data`, rows of them or their means, give the base rate; without them the means count that the model
        carries. "auto" is the base rate where it is known, and `base()` elsewhere.
        """
        if isinstance(base, AbstractBase):
            if data is not None:
                words = "serve to build a base, and a base is given"
                raise InputError("data", words, remedy="leave one of them out")
            self.check_base(base)
            return base
        named = self.named_bases()
        if named and isinstance(base, str) and base == "fitted":
            raise ValueError(
                "the base fitted is found by pilots, of an estimate: name another one here."
            )
        rates = ("base-rate",) if self.takes_data else ()
        names = ("auto", *rates, *named)
        if not isinstance(base, str) or base not in names:
            known = ", ".join((*names, "fitted") if named else names)
            raise InputError("base", f"must be one of {known}, or a base itself", base)
        if data is not None and not rates:
            words = "serve to build a base rate, which this model has not"
            raise InputError("data", words, remedy="leave them out")
        if data is not None and base in named:
            raise InputError("data", f"serve the base-rate base only, and the base is {base}")
        if base in named:
            return named[base]()
        rate = self.rate_base(data) if rates else None
        if rate is None and base != "auto":
            words = (
                "the base-rate base needs the training data, or their means or frequencies, and this "
                "model carries none"
            )
            others = " or ".join([*named][::-1])
            raise InputError("", words, remedy=f"give {{data}}, or choose the base {others}")
        return self.base() if rate is None else rate

    def check_base(self, base: AbstractBase) -> None:
        """Refuse a base that does not fit, by a ValueError."""
        return

    def rate_base(self, data: Any = None) -> AbstractBase | None:
        """Return the base of data, or of the means that the model carries, if it `takes_data`."""
        return None

    def flat_base(self) -> AbstractBase | None:
        """The base that prefers no state, where the model has one; mixtures are built on its path."""
        return None

    def named_bases(self) -> Mapping[str, Callable[[], AbstractBase]]:
        """Bases to choose between where nothing is known of the data, by name; none by default."""
        return {}

    def path(self, base, marginal: str = "visible") -> AbstractPath:
        """The path from this base to the model; by default the geometric one of their densities."""
        self.check_marginal(marginal)
        return TemperedPath(base, self)

    @abc.abstractmethod
    def kernel(self) -> AbstractKernel:
        """The transition along the path, by default."""

    def named_kernels(self) -> Mapping[str, Callable[[], AbstractKernel]]:
        """Transitions to choose between, by name, beside auto; none by default."""
        return {}

    def choose_kernel(self, kernel: Any = None) -> AbstractKernel:
        """The kernel of this name, None and "auto" the default one, or the kernel that is given."""
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

    def factors(self) -> Factors | None:
        """The model as a factor graph, for exact contraction: the number of states of every variable, and
        factors as (scope, log table). None of what is not discrete.
        """
        return None

    def findings(self, states: np.ndarray) -> tuple[Finding, ...]:
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


class AbstractUnitModel(AbstractModel):
    """A model of units that are annealed from a product of them, or from a mixture of products."""

    @abc.abstractmethod
    def flat_base(self) -> Any:
        """The base that prefers no state."""

    def base(self) -> AbstractBase:
        return self.flat_base()

    @abc.abstractmethod
    def named_bases(self) -> Mapping[str, Callable[[], AbstractBase]]: ...

    def check_base(self, base: AbstractBase) -> None:
        flat = self.flat_base()
        if isinstance(base, MixtureBase):  # the path says whether it fits
            return
        if not isinstance(base, type(flat)):
            kind = type(flat).__name__
            raise InputError("base", f"must be a {kind} or a MixtureBase", type(base).__name__)
        for what, name in (("units", "num_units"), ("units", "dim"), ("states", "num_states")):
            given, own = getattr(base, name, None), getattr(flat, name, None)
            if given != own:
                raise ValueError(f"the base has {given} {what} and the model {own}.")

    def path(self, base, marginal: str | None = None) -> AbstractPath:
        layer = self.check_marginal(self.marginals[0] if marginal is None else marginal)
        if isinstance(base, MixtureBase):
            return self.mixture_path(base, layer)
        return self.product_path(base, layer)

    @abc.abstractmethod
    def product_path(self, base: Any, marginal: str) -> AbstractPath:
        """Return the path from a base of one component."""

    def mixture_path(self, base: MixtureBase, marginal: str) -> AbstractPath:
        """Return the path from a mixture."""
        return mixture_path(base, self.product_path(self.flat_base(), marginal), self.name)


class AbstractEquivalent(AbstractModel):
    """A model whose exact answers are those of another one, plus a constant of log p*; if there is one."""

    @abc.abstractmethod
    def equivalent(self) -> tuple[AbstractModel, float] | None:
        """Return the other model, of the same states, and the constant."""

    def exact_log_z_if_cheap(self) -> float | None:
        if (pair := self.equivalent()) is None:
            return super().exact_log_z_if_cheap()
        log_z = pair[0].exact_log_z_if_cheap()
        return None if log_z is None else log_z + pair[1]

    def exact_log_z(self) -> float:
        """log Z of the other model, plus the constant."""
        pair = self.equivalent()
        return super().exact_log_z() if pair is None else pair[0].exact_log_z() + pair[1]

    @property
    def has_exact_draws(self) -> bool:
        pair = self.equivalent()
        return super().has_exact_draws if pair is None else pair[0].has_exact_draws

    def exact_draws(self, num_draws: int, seed: int, marginal: str | None = None) -> np.ndarray:
        pair = self.equivalent()
        if pair is None:
            return super().exact_draws(num_draws, seed)
        return pair[0].exact_draws(num_draws, seed, marginal or self.marginals[0])


@eqx.filter_jit
def log_density_at_end(path: Any, rows: Any) -> Array:
    """Return log p* of rows of states at the end of a path, as one program."""
    return path.log_density(rows, 1.0)


class Visible(NamedTuple):
    """What one example of a model's visible variables is; None for what is not known."""

    num_units: int | None
    num_states: int | None
    """Of every unit, counted from 0; None of real ones."""
    is_real: bool


def visible_of(model: AbstractModel) -> Visible:
    """The visible variables of a model: those of its flat base, or of a density its dimensions."""
    base = model.flat_base()
    if isinstance(base, BernoulliBase):
        return Visible(base.num_units, 2, False)
    if isinstance(base, CategoricalBase):
        num_units, num_states = base.logits.shape
        return Visible(num_units, num_states, False)
    if isinstance(base, GaussianBase):
        return Visible(base.dim, None, True)
    dim = getattr(model, "dim", None)
    return Visible(dim, None, dim is not None)
