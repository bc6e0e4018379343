"""What to type to get the same number again.

A run is a function of its model, settings and seed, so that the command is made from the record of the run.
What a record cannot hold (data, Python objects) stands as a word in capitals, or as a name, with a note.
"""

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from annealz.diagnostics.findings import option_words
from annealz.io.schedules import SCHEDULES
from annealz.methods.nested.settings import NestedSettings
from annealz.methods.settings import AnnealSettings, ExchangeSettings

__all__ = ["Again", "compare_again", "estimate_again", "exchange_again", "nested_again"]


class Again(NamedTuple):
    """The command or call, and what must be said with it."""

    text: str
    notes: list[str]
    is_exact: bool = True
    """Whether it gives the same bits, and not only as good a number."""


def estimate_again(
    settings: AnnealSettings,
    schedule_name: str,
    num_steps: int,
    changes: Mapping[str, Any] | None = None,
) -> Again:
    """The command of an estimate, or the call if only Python can reproduce it; with these changes."""
    asked, given = settings.asked, settings.given
    target, is_planned = settings.target_std_err, asked.schedule is not None
    options: dict[str, Any] = {"map": asked.map, "schedule": asked.schedule}
    if target is None:
        options |= {"num_steps": num_steps, "num_chains": settings.num_chains}
        if settings.max_seconds is not None:
            options |= {"num_steps": asked.num_steps, "num_chains": asked.num_chains}
    else:
        options |= {"num_steps": asked.num_steps}
    if asked.schedule is not None and _is_file(asked.schedule, schedule_name):
        options["num_steps"] = None  # the file has them
    options |= {
        "target_std_err": target,
        "max_seconds": settings.max_seconds,
        "seed": settings.seed,
        "base": asked.base if not given.path else None,
        "marginal": asked.marginal if not given.path else None,
        "kernel": asked.kernel,
        "data": asked.data or None,
        "resample": settings.resample,
        "two_sided": settings.two_sided or None,
        "draws": "exchange" if settings.draws == "exchange" else None,
        "second_opinion": None if settings.second_opinion else False,
        "along": settings.along,
    }
    options = _changed(options, changes or {})
    notes = _notes(asked.model, settings.model_digest, options.get("data"))
    is_exact = options.get("max_seconds") is None
    if not is_exact:
        notes.append("how many chains a time limit allows depends on the machine")
    objects = given.names
    objects += ["draws"] if settings.draws == "given" else []
    objects += [] if is_planned else ["schedule"]
    objects += ["observe"] if asked.observe else []
    if asked.model is not None and not objects:
        return Again(_command("estimate", asked.model, options), notes, is_exact)
    notes += [f"{', '.join(objects)}: the objects that were given"] if objects else []
    return Again(_call("estimate_log_z", asked.model, options, objects), notes, is_exact)


def _changed(options: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The options of another run that may do better."""
    if "method" in changes:  # another method has options of its own
        return {"map": options.get("map"), **changes}
    if "base" in changes:  # data serve another one
        options = {name: value for name, value in options.items() if name not in ("base", "data")}
    return {**options, **changes}


def exchange_again(settings: ExchangeSettings, num_sweeps: int | None = None) -> Again:
    """The command of an estimate by replica exchange, or the call; with other sweeps if given."""
    asked, given = settings.asked, settings.given
    names = ("num_rungs", "num_ensembles", "num_sweeps", "seed")
    options: dict[str, Any] = {name: getattr(settings, name) for name in names}
    options["num_sweeps"] = num_sweeps or settings.num_sweeps
    options["map"] = asked.map
    options |= {
        "base": asked.base if not given.path else None,
        "marginal": asked.marginal if not given.path else None,
        "kernel": asked.kernel,
        "data": asked.data or None,
    }
    notes = _notes(asked.model, settings.model_digest, options["data"])
    objects = given.names
    if asked.model is not None and not objects and not settings.num_draws:
        command = _command("estimate", asked.model, {"method": "exchange", **options})
        return Again(command, notes)
    options["num_draws"] = settings.num_draws or None
    notes += [f"{', '.join(objects)}: the objects that were given"] if objects else []
    return Again(_call("exchange_log_z", asked.model, options, objects), notes)


def nested_again(settings: NestedSettings, changes: Mapping[str, Any] | None = None) -> Again:
    """The command of an estimate by nested sampling, or the call; with these changes."""
    options: dict[str, Any] = {
        "num_live": settings.num_live,
        "num_runs": settings.num_runs,
        "num_inner_steps": settings.num_inner_steps,
        "max_evaluations": settings.max_evaluations,
        "base": settings.asked_base,
        "seed": settings.seed,
        **(changes or {}),
    }
    notes = _notes(settings.asked, settings.model_digest, None)
    usual = max(1, settings.num_live // settings.num_runs // 5)
    is_usual = settings.num_delete == usual and settings.tolerance == 1e-2
    if settings.asked is not None and is_usual and not settings.is_given:
        return Again(_command("estimate", settings.asked, {"method": "nested", **options}), notes)
    if not is_usual:
        options |= {"num_delete": settings.num_delete, "tolerance": settings.tolerance}
    objects = ["base"] if settings.is_given else []
    notes += ["base: the object that was given"] if objects else []
    return Again(_call("nested_log_z", settings.asked, options, objects), notes)


def compare_again(provenance: dict[str, Any]) -> Again:
    """The same of a comparison."""
    names = ("num_steps", "num_chains", "num_replicates", "seed", "base")
    options = {"schedules": provenance["schedules"]} | {name: provenance[name] for name in names}
    options["map"] = provenance.get("map")
    options["data"] = provenance["data"] or None
    objects = [name for name, is_given in provenance["given"].items() if is_given]
    notes = _notes(provenance["model"], provenance["model_digest"], options["data"])
    if provenance["model"] is not None and not objects:
        return Again(_command("compare", provenance["model"], options), notes)
    notes += [f"{', '.join(objects)}: the objects that were given"] if objects else []
    return Again(_call("compare_schedules", provenance["model"], options, objects), notes)


def _notes(model: str | None, digest: str, data: bool | None) -> list[str]:
    notes = []
    if model is None:
        notes.append(f"model: the one whose digest begins with {digest[:12]}")
    if data:
        notes.append("DATA: the file of data that the base rate came from")
    return notes


def _command(name: str, model: str, options: dict[str, Any]) -> str:
    words = ["annealz", name, model]
    for option, value in options.items():
        words += [] if value is None else option_words(option, value)
    return shlex.join(words)


def _call(name: str, model: str | None, options: dict[str, Any], objects: list[str]) -> str:
    shown = {key: repr(value) for key, value in options.items() if value is not None}
    if "data" in shown:
        shown["data"] = "DATA"
    shown |= {key: key for key in objects}
    first = "model" if model is None else repr(model)
    if "map" in shown:
        first = f"annealz.load_model({first}, map={shown.pop('map')})"
    lines = [f"    {line}," for line in (first, *(f"{k}={v}" for k, v in shown.items()))]
    return "\n".join([f"annealz.{name}(", *lines, ")"])


def _is_file(asked: str, schedule_name: str) -> bool:
    """Whether a schedule was asked for by a file; the rule of a name may not be installed here."""
    return asked != schedule_name and SCHEDULES.quietly(asked) is None
