"""How many chains a wanted standard error takes.

A sizing run of a tenth of the chains, at least 100, on the schedule of the run to come, tells the spread
of the weights; the error falls with the square root of the number of chains:

    N = 1.3 n (s / target)^2        s the standard error of the n chains of the sizing run

30 % more are taken, because few chains tell the spread roughly. The number is fixed before the run: a run
that went on until its error looked small would be biased low (E[Z-hat] = 0.975 Z was seen).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from annealz.anneal import Progress, anneal
from annealz.estimators import delta_std_err
from annealz.kernels.abstract import AbstractKernel
from annealz.paths.abstract import AbstractPath
from annealz.run import Run
from annealz.schedules.schedule import Schedule

__all__ = ["Forecast", "forecast"]

_MIN_CHAINS = 100
_MAX_CHAINS = 1_000_000
_RESERVE = 1.3


class Forecast(NamedTuple):
    """What a run should take, and the sizing run that says so."""

    num_steps: int
    num_chains: int
    target_std_err: float
    seconds: float
    sizing: Run

    @property
    def sweeps(self) -> int:
        return self.num_steps * self.num_chains

    def __str__(self) -> str:
        return (
            f"{self.num_chains:,} chains of {self.num_steps:,} steps should reach a standard error of "
            f"{self.target_std_err:g}: {self.sweeps:,} sweeps, about {self.seconds:.0f} s or less"
        )


def forecast(
    path: AbstractPath,
    kernel: AbstractKernel,
    schedule: Schedule,
    target_std_err: float,
    *,
    num_chains: int,
    seed: int,
    on_progress: Callable[[Progress], None] | None = None,
) -> Forecast:
    """The run that should reach this standard error; a ValueError where a million chains would not."""
    size = max(_MIN_CHAINS, num_chains // 10)
    sizing = anneal(
        path,
        kernel,
        schedule,
        num_chains=size,
        seed=seed,
        purpose="sizing",
        on_progress=on_progress,
    )
    std_err = delta_std_err(sizing.log_weights)
    needed = max(_MIN_CHAINS, _RESERVE * size * (std_err / target_std_err) ** 2)
    if not needed <= _MAX_CHAINS:
        reachable = std_err * np.sqrt(_RESERVE * size / _MAX_CHAINS)
        raise ValueError(
            f"target_std_err of {target_std_err:g} is out of reach with {schedule.num_steps:,} steps: it "
            f"would take {needed:.2g} chains, and with a million {reachable:.2g} can be reached; take more "
            "steps, or a larger error."
        )
    chains = int(np.ceil(needed))
    seconds = sizing.seconds * chains / size
    return Forecast(schedule.num_steps, chains, target_std_err, seconds, sizing)
