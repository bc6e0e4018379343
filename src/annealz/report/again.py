"""What to type to get the same number again.

A run is a function of its model, settings and seed, so that the command is made from the record of the run.
What a record cannot hold (data, Python objects) stands as a word in capitals, or as a name, with a note.
Runs recorded before `asked` was part of the settings lack the model's file and how the schedule was given.
"""

import shlex
from typing import Any, NamedTuple

from annealz.names import SCHEDULE_NAMES, packaged_models

__all__ = ["Again", "compare_again", "estimate_again", "exchange_again"]


class Again(NamedTuple):
    """The command or call, and what must be said with it."""

    text: str
    notes: list[str]
    is_exact: bool = True
    """Whether it gives the same bits, and not only as good a number."""


def estimate_again(
    settings: dict[str, Any],
    schedule_name: str,
    num_steps: int,
    num_chains: int | None = None,
) -> Again:
    """The command of an estimate, or the call where only Python can make it again."""
    asked, given = settings.get("asked"), settings["given"]
    old = {
        "model": settings.get("source") or _if_packaged(settings["model"]) or "MODEL",
        "schedule": schedule_name if schedule_name in SCHEDULE_NAMES else None,
        "base": settings["base"],
        "marginal": settings["marginal"],
    }
    asked = old if asked is None else asked
    if (
        "second_opinion" not in settings and asked["base"] == "auto"
    ):  # before bases were searched for
        asked = asked | {"base": settings["base"]}
    target, is_planned = settings["target_std_err"], asked["schedule"] is not None
    options: dict[str, Any] = {"schedule": asked["schedule"]}
    if target is None:
        options |= {"num_steps": num_steps, "num_chains": num_chains or settings["num_chains"]}
        if settings.get("max_seconds") is not None:
            options |= {name: asked.get(name) for name in ("num_steps", "num_chains")}
    else:
        options |= {"num_steps": asked.get("num_steps")}
    if is_planned and asked["schedule"] not in SCHEDULE_NAMES and _is_file(asked["schedule"]):
        options["num_steps"] = None  # the file has them
    options |= {
        "target_std_err": target,
        "max_seconds": settings.get("max_seconds"),
        "seed": settings["seed"],
        "base": asked["base"] if not given["path"] else None,
        "marginal": asked["marginal"] if not given["path"] else None,
        "data": bool(asked.get("data")) or None,
        "resample": settings.get("resample"),
        "two_sided": settings.get("two_sided") or None,
        "draws": "exchange" if settings.get("draws") == "exchange" else None,
        "second_opinion": None if settings.get("second_opinion") else False,
        "along": settings.get("along"),
    }
    notes = _notes(asked["model"], settings["model_digest"], options["data"])
    is_exact = options["max_seconds"] is None
    if not is_exact:
        notes.append("how many chains a time limit allows depends on the machine")
    objects = [name for name in ("path", "kernel", "base") if given.get(name)]
    objects += ["draws"] if settings.get("draws") == "given" else []
    objects += [] if is_planned else ["schedule"]
    objects += ["observe"] if asked.get("observe") else []
    if asked["model"] is not None and not objects:
        return Again(_command("estimate", asked["model"], options), notes, is_exact)
    notes += [f"{', '.join(objects)}: the objects that were given"] if objects else []
    return Again(_call("estimate_log_z", asked["model"], options, objects), notes, is_exact)


def exchange_again(settings: dict[str, Any], num_sweeps: int | None = None) -> Again:
    """The command of an estimate by replica exchange, or the call; with other sweeps if given."""
    asked, given = settings["asked"], settings["given"]
    names = ("num_rungs", "num_ensembles", "num_sweeps", "seed")
    options: dict[str, Any] = {name: settings[name] for name in names}
    options["num_sweeps"] = num_sweeps or settings["num_sweeps"]
    options |= {
        "base": asked["base"] if not given["path"] else None,
        "marginal": asked["marginal"] if not given["path"] else None,
        "data": asked["data"] or None,
    }
    notes = _notes(asked["model"], settings["model_digest"], options["data"])
    objects = [name for name in ("path", "kernel", "base") if given[name]]
    if asked["model"] is not None and not objects and not settings["num_draws"]:
        renamed = {"num_steps" if k == "num_sweeps" else k: v for k, v in options.items()}
        command = _command("estimate", asked["model"], {"method": "exchange", **renamed})
        return Again(command, notes)
    options["num_draws"] = settings["num_draws"] or None
    notes += [f"{', '.join(objects)}: the objects that were given"] if objects else []
    return Again(_call("exchange_log_z", asked["model"], options, objects), notes)


def compare_again(provenance: dict[str, Any]) -> Again:
    """The same of a comparison."""
    names = ("num_steps", "num_chains", "num_replicates", "seed", "base")
    options = {"schedules": provenance["schedules"]} | {name: provenance[name] for name in names}
    options["data"] = provenance["data"] or None
    objects = [name for name, is_given in provenance["given"].items() if is_given]
    notes = _notes(provenance["model"], provenance["model_digest"], options["data"])
    if provenance["model"] is not None and not objects:
        return Again(_command("compare", provenance["model"], options), notes)
    notes += [f"{', '.join(objects)}: the objects that were given"] if objects else []
    return Again(_call("compare_schedules", provenance["model"], options, objects), notes)


def _notes(model: str | None, digest: str, data: bool | None) -> list[str]:
    notes = []
    if model is None or model == "MODEL":
        what = "model" if model is None else "MODEL"
        notes.append(f"{what}: the one whose digest begins with {digest[:12]}")
    if data:
        notes.append("DATA: the file of data that the base rate came from")
    return notes


def _command(name: str, model: str, options: dict[str, Any]) -> str:
    words = ["annealz", name, shlex.quote(model)]
    for option, value in options.items():
        if value is None:
            continue
        name = option.removeprefix("num_").replace("_", "-")
        words.append(f"--no-{name}" if value is False else f"--{name}")
        if option == "data":
            words.append("DATA")
        elif isinstance(value, list):
            words.append(",".join(str(one) for one in value))
        elif not isinstance(value, bool):
            words.append(shlex.quote(str(value)))
    return " ".join(words)


def _call(name: str, model: str | None, options: dict[str, Any], objects: list[str]) -> str:
    shown = {key: repr(value) for key, value in options.items() if value is not None}
    if "data" in shown:
        shown["data"] = "DATA"
    shown |= {key: key for key in objects}
    first = "model" if model is None else repr(model)
    lines = [f"    {line}," for line in (first, *(f"{k}={v}" for k, v in shown.items()))]
    return "\n".join([f"annealz.{name}(", *lines, ")"])


def _if_packaged(name: str) -> str | None:
    return name if name in packaged_models() else None


def _is_file(schedule: str) -> bool:
    return not schedule.startswith("varopt-")
