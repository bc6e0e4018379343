"""A schedule by its name: a pilot is run where the rule needs one, then the schedule is frozen.

mixing                           g and tau along the path for a twentieth of the sweeps, then constant
                                 speed in √(g tau)
linear  sm08                     no pilot
varopt  varopt-0.009             survey of 1000 steps and 100 chains, then least variance, with no
                                 step above 0.009 (any number) by the paper's Algorithm 3
varopt-fixed-point               the same equation solved by the paper's iteration
gms13                            moments at 10 knots, 1000 chains, 6000 sweeps of which 1000 burn-in
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from annealz.anneal import Progress
from annealz.kernels.abstract import AbstractKernel
from annealz.names import SCHEDULE_NAMES
from annealz.paths.abstract import AbstractPath
from annealz.schedules.choose import DEFAULT_NUM_STEPS, check_num_steps, choose_schedule
from annealz.schedules.decelerate import check_max_step
from annealz.schedules.gms13 import gms13
from annealz.schedules.mixing import mixing
from annealz.schedules.schedule import Schedule
from annealz.schedules.varopt import varopt
from annealz.stages import begin
from annealz.survey import survey, survey_knots
from annealz.survey_mixing import LEAST_BUDGET, survey_mixing

__all__ = ["check_name", "check_schedule", "pilot_sweeps", "plan_schedule"]

MIXING_SHARE = 0.05  # of all sweeps, for the pilot of mixing

_PILOT = {"num_steps": 1000, "num_chains": 100}
_KNOTS = {"num_knots": 10, "num_chains": 1000}


def pilot_sweeps(name: str, total: int, pilot_scale: float = 1.0) -> int:
    """What the pilot of a named schedule may cost, where pilot and run take `total` sweeps."""
    if name == "mixing":
        return max(LEAST_BUDGET, int(MIXING_SHARE * total))
    if name == "gms13":
        return _KNOTS["num_knots"] * _KNOTS["num_chains"] * _num_updates(pilot_scale)
    return _PILOT["num_steps"] * _PILOT["num_chains"] if name.startswith("varopt") else 0


def plan_schedule(
    schedule: str | Path | Schedule | np.ndarray,
    path: AbstractPath,
    kernel: AbstractKernel,
    *,
    num_steps: int | None = None,
    num_chains: int = 1000,
    seed: int = 0,
    pilot_scale: float = 1.0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Schedule:
    """The schedule meant by a name, a file, an array of betas or a Schedule.

    `num_chains` of the run to come: with its steps, it tells how many sweeps the pilot of mixing may take.
    `pilot_scale` shrinks the number of sweeps of the gms13 pilot, which at the paper's size costs more
    than most runs. What the pilot cost is in `provenance["pilot_sweeps"]`.

    Examples
    --------
    >>> import annealz
    >>> from annealz.testing import random_rbm
    >>> path = annealz.GeometricPath(annealz.BernoulliBase.uniform(6), random_rbm(4, 6))
    >>> schedule = annealz.plan_schedule(
    ...     "mixing", path, annealz.BlockGibbs(), num_steps=100, num_chains=100
    ... )
    >>> schedule.name, schedule.num_steps, schedule.provenance["pilot_sweeps"] > 0
    ('mixing', 100, True)
    """
    if not _needs_pilot(schedule):
        return choose_schedule(schedule, num_steps, SCHEDULE_NAMES)
    name, num_steps = str(schedule), check_schedule(schedule, num_steps)
    begin(on_progress, "pilot")
    if name == "mixing":
        total = int(num_steps * num_chains / (1 - MIXING_SHARE))
        budget = pilot_sweeps(name, total)
        terrain = survey_mixing(path, kernel, budget=budget, seed=seed, on_progress=on_progress)
        begin(on_progress, "schedule")
        return mixing(terrain, num_steps)
    if name == "gms13":
        updates = _num_updates(pilot_scale)
        knots = survey_knots(
            path,
            kernel,
            **_KNOTS,
            num_updates=updates,
            num_burn_in=updates // 6,
            seed=seed,
            on_progress=on_progress,
        )
        begin(on_progress, "schedule")
        return gms13(knots, num_steps)
    method, max_step = _varopt_options(name)
    terrain = survey(path, kernel, **_PILOT, seed=seed, on_progress=on_progress)
    begin(on_progress, "schedule")
    return varopt(terrain, num_steps, method=method, max_step=max_step)


def _num_updates(pilot_scale: float) -> int:
    return max(12, round(6000 * pilot_scale))


def check_schedule(
    schedule: str | Path | Schedule | np.ndarray, num_steps: int | None = None
) -> int:
    """The steps that this schedule will have; refuses, before any pilot, what is none."""
    if not _needs_pilot(schedule):
        return choose_schedule(schedule, num_steps, SCHEDULE_NAMES).num_steps
    num_steps = check_num_steps(DEFAULT_NUM_STEPS if num_steps is None else num_steps)
    if str(schedule).startswith("varopt"):
        max_step = _varopt_options(str(schedule))[1]
        if max_step is not None:
            check_max_step(max_step, num_steps)
    return num_steps


def _needs_pilot(schedule) -> bool:
    if not isinstance(schedule, str) or Path(schedule).is_file():
        return False
    return schedule in ("gms13", "mixing", "varopt") or schedule.startswith("varopt-")


def check_name(name: str) -> None:
    """Refuse what is no name of a schedule; varopt- takes any largest step."""
    if name not in SCHEDULE_NAMES:
        try:
            is_known = name.startswith("varopt-") and np.isfinite(float(name[len("varopt-") :]))
        except ValueError:
            is_known = False
        if not is_known:
            names = ", ".join(SCHEDULE_NAMES)
            raise ValueError(f"unknown schedule {name!r}: choose one of {names}.")


def _varopt_options(name: str) -> tuple[str, float | None]:
    check_name(name)
    if name in ("varopt", "varopt-fixed-point"):
        return ("quadrature" if name == "varopt" else "fixed_point"), None
    return "quadrature", float(name.removeprefix("varopt-"))
