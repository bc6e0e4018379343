"""One estimate, asked for in several processes: the first runs it, the workers help, all get it."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec

from annealz.core.storage.archive import pack_archive, unpack_archive
from annealz.engine.run import Runs
from annealz.engine.run_arrays import run_from_arrays, run_to_arrays
from annealz.engine.workers.distributed import current_team
from annealz.engine.workers.team import LostProcess, Team
from annealz.kernels.abstract import AbstractKernel
from annealz.models.abstract import AbstractModel
from annealz.models.formats.python_object import is_import_path, load_object
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.workflows.estimate import Estimate
from annealz.workflows.runner import Observe, estimate_of, observers_of
from annealz.workflows.settings import AnnealSettings
from annealz.workflows.workers.assist import assist

__all__ = ["help_out", "leading", "together"]

Given = ParamSpec("Given")
_KINDS = (("model", AbstractModel), ("path", AbstractPath), ("kernel", AbstractKernel))


def together(function: Callable[Given, Estimate]) -> Callable[Given, Estimate]:
    """The function, called by all processes and run by the first."""

    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Given.args, **options: Given.kwargs) -> Estimate:
        team = current_team()
        if not team.is_leader:
            named = dict(signature.bind_partial(*arguments, **options).arguments)
            model = named.get("model")
            if isinstance(model, str) and is_import_path(model):
                named["model"] = load_object(model)  # by the word of this process's own caller
            given = {
                name: named.get(name) for name, kind in _KINDS if isinstance(named.get(name), kind)
            }
            observe = options.get("observe")
            estimate = help_out(team, observe, given)  # pyright: ignore[reportArgumentType]
            assert estimate is not None
            return estimate
        with leading(team):
            estimate = function(*arguments, **options)
            _hand_out(team, estimate)
        return estimate

    return call


@contextlib.contextmanager
def leading(team: Team) -> Iterator[None]:
    """What fails here stops the others too."""
    try:
        yield
    except BaseException as error:
        kinds = (("interrupt", KeyboardInterrupt), ("lost", LostProcess))
        why = next((name for name, kind in kinds if isinstance(error, kind)), "error")
        team.dismiss(why, str(error) or "process 0 was interrupted.")
        raise


def help_out(
    team: Team,
    observe: Observe | None = None,
    given: Mapping[str, Any] | None = None,
    *,
    wants_result: bool = True,
) -> Estimate | None:
    """Help with an estimate that process 0 leads; its result, if wanted.

    `given` the model, path or kernel that this process has, for what process 0 cannot send.
    """
    assist(team, observers_of(observe), given)
    team.answer("wants", is_wanted=wants_result)
    if not wants_result:
        return None
    message = team.listen()
    settings = AnnealSettings.read(message.fields["settings"], "what process 0 sent")
    arrays, meta = unpack_archive(message.payload, "what process 0 sent")
    seen = meta["terrain"]
    terrain = None if seen is None else Terrain.from_record(seen)
    schedule = Schedule(arrays.pop("betas"), meta["schedule"], meta["provenance"], terrain)
    runs = {}
    for name in Runs._fields:
        if name in meta:
            own = {
                k.removeprefix(f"{name}|"): v for k, v in arrays.items() if k.startswith(f"{name}|")
            }
            over = Schedule(own["betas"]) if name in ("second", "probe") else schedule
            runs[name] = run_from_arrays(own, meta[name], over)
    return estimate_of(settings, Runs(**runs))


def _hand_out(team: Team, estimate: Estimate) -> None:
    """Say that the estimate is done, and send it to those who want it."""
    if team.size == 1:
        return
    team.tell("done")
    answers = team.collect("wants")
    eager = {p for p, answer in answers.items() if answer.fields["is_wanted"]}
    if not eager:
        return
    schedule = estimate.run.schedule
    arrays, meta = {"betas": schedule.betas}, {}
    for name, run in estimate.runs._asdict().items():
        if run is not None:
            of_run, meta[name] = run_to_arrays(run)
            of_run |= {"betas": run.schedule.betas}
            arrays |= {f"{name}|{key}": array for key, array in of_run.items()}
    terrain = None if schedule.terrain is None else schedule.terrain.to_record()
    meta |= {"schedule": schedule.name, "provenance": schedule.provenance, "terrain": terrain}
    team.tell("result", pack_archive(arrays, meta), eager, settings=estimate.settings.to_dict())
