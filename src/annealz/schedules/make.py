"""From a registered rule to its schedule; that of another package is checked and signed."""

import dataclasses
import json

from annealz.io.registry import call
from annealz.io.schedules import ScheduleRule
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain


def make_schedule(rule: ScheduleRule, num_steps: int, terrain: Terrain | None = None) -> Schedule:
    """The schedule of a rule, from what its pilot saw where it needs one."""
    given = (terrain, num_steps) if rule.needs_pilot else (num_steps,)
    made = call(rule.owner, rule.rule, *given, **rule.options)
    return _signed(made, rule, num_steps, terrain) if rule.package else made


def _signed(made: object, rule: ScheduleRule, num_steps: int, terrain: Terrain | None) -> Schedule:
    """The same with what a report needs later, when the package may not be there."""
    if not isinstance(made, Schedule):
        raise ValueError(
            f"{rule.owner} must give an annealz.Schedule, got a {type(made).__name__}."
        )
    if made.num_steps != num_steps:
        raise ValueError(f"{rule.owner} must give {num_steps:,} steps, got {made.num_steps:,}.")
    provenance = dict(made.provenance)
    if terrain is not None:
        spent = {"pilot_sweeps": terrain.sweeps, "pilot_seconds": terrain.seconds}
        provenance = {**terrain.provenance, **provenance, **spent}
    provenance |= {"description": rule.description, "package": rule.package}
    try:
        json.dumps(provenance, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{rule.owner} must have a provenance of JSON values: {error}.") from error
    seen = terrain if made.terrain is None else made.terrain
    return dataclasses.replace(made, name=rule.name, provenance=provenance, terrain=seen)
