"""What a run is asked for beside its problem and its schedule, checked."""

import dataclasses
from typing import Any

import numpy as np

from annealz.core.numerics import whole_number
from annealz.core.random import check_seed
from annealz.diagnostics.along import check_betas
from annealz.diagnostics.stated import ROUNDING

__all__ = ["DEFAULT_NUM_CHAINS", "Options"]

DEFAULT_NUM_CHAINS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """As the arguments of `estimate_log_z`; what contradicts itself is refused."""

    num_steps: int | None
    num_chains: int | None
    target_std_err: float | None
    max_seconds: float | None
    resample: float | None
    two_sided: bool
    second_opinion: bool
    draws: Any
    along: Any
    seed: int
    record_every: int | None
    checkpoint_seconds: float
    usual_chains: int = DEFAULT_NUM_CHAINS
    """Where their number is not given."""

    def __post_init__(self):
        for name in ("num_steps", "num_chains", "record_every"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        self._check_numbers()
        self._check_together()
        along = None if self.along is None else check_betas(self.along).tolist()
        object.__setattr__(self, "along", along)
        object.__setattr__(self, "seed", check_seed(self.seed))

    @property
    def chains(self) -> int:
        """N, as given or by default."""
        return self.usual_chains if self.num_chains is None else self.num_chains

    @property
    def is_default(self) -> bool:
        """Whether neither length nor method of the run is asked for, and a second opinion not refused."""
        asked = (
            self.num_steps,
            self.num_chains,
            self.target_std_err,
            self.max_seconds,
            self.resample,
        )
        return self.second_opinion and not self.two_sided and asked == (None,) * len(asked)

    @property
    def are_exchanged(self) -> bool:
        """Whether the reverse run starts from draws of replica exchange."""
        return isinstance(self.draws, str)

    def _check_numbers(self) -> None:
        for name in ("num_chains", "record_every"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}.")
        for name in ("target_std_err", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"{name} must be a positive number, got {value}.")
        target = self.target_std_err
        if target is not None and target <= ROUNDING:
            raise ValueError(
                f"target_std_err must be above {ROUNDING:g}, the error of float32, got {target:g}."
            )

    def _check_together(self) -> None:
        """Refuse options that contradict each other."""
        if self.target_std_err is not None and self.num_chains is not None:
            raise ValueError(
                "num_chains and target_std_err cannot both be given: the wanted error decides the "
                "number of chains; leave one out."
            )
        for name in ("target_std_err", "max_seconds"):
            for other in ("resample", "two_sided"):
                if getattr(self, name) is not None and getattr(self, other) not in (None, False):
                    raise ValueError(f"{name} and {other} cannot both be given: leave one out.")
        if self.resample is not None and self.two_sided:
            raise ValueError(
                "resample and two_sided cannot both be given: resampled chains have no reverse; leave "
                "one out."
            )
        if isinstance(self.draws, str) and self.draws != "exchange":
            raise ValueError(
                f'draws must be states of the model, or "exchange", got {self.draws!r}.'
            )
        if self.draws is not None and not self.two_sided:
            raise ValueError("draws are where a reverse run starts: give two_sided=True with them.")
