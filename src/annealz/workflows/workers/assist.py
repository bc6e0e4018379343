"""The workers' part of a run: their blocks, as process 0 asks for them.

A worker decides nothing, prints nothing and writes nothing. What the run is given comes from process 0,
except functions to be observed, which every process must have been given alike.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from annealz.core.devices import local_devices
from annealz.core.storage.archive import pack_archive, unpack_archive
from annealz.engine.observers import AbstractObserver
from annealz.engine.work import Share, Work
from annealz.engine.workers.team import LostProcess, Message, Team, from_bytes, to_bytes
from annealz.schedules.schedule import Schedule
from annealz.workflows.problem import Problem
from annealz.workflows.problem_arrays import problem_from_arrays, problem_to_arrays
from annealz.workflows.settings import ProblemSettings

__all__ = ["assist", "pack_inputs"]


def pack_inputs(problem: Problem, schedule: Schedule, settings: ProblemSettings) -> bytes:
    """What a process needs to know of an estimate before it can help."""
    arrays, records = problem_to_arrays(problem)
    own = ProblemSettings.read(settings.to_dict()).to_dict()
    return pack_archive(arrays | {"betas": schedule.betas}, {"records": records, "settings": own})


def assist(
    team: Team, observers: Mapping[str, AbstractObserver], given: Mapping[str, Any] | None = None
) -> None:
    """Help with one estimate, until process 0 says that it is done.

    `given` the model, path or kernel that this process has, for what process 0 cannot send.
    """
    with (
        contextlib.closing(_Helper(team, observers, given or {})) as helper,
        team.interrupts_passed_on(),
    ):
        while (message := team.listen()).kind != "done":
            try:
                helper.obey(message)
            except (KeyboardInterrupt, LostProcess, _Stopped) as stopped:
                raise getattr(stopped, "reason", stopped) from None
            except Exception as error:
                team.answer("failed", text=str(error) or type(error).__name__)
                raise


class _Stopped(Exception):
    """Process 0 asked all to stop."""

    def __init__(self, why: str, text: str):
        kinds = {"interrupt": KeyboardInterrupt, "lost": LostProcess}
        self.reason = kinds.get(why, ValueError)(text)


class _Helper:
    def __init__(
        self, team: Team, observers: Mapping[str, AbstractObserver], given: Mapping[str, Any]
    ):
        self.team, self.observers, self.given = team, observers, given
        self.share: Share | None = None

    def close(self) -> None:
        if self.share is not None:
            self.share.close()

    def obey(self, message: Message) -> None:
        kind, fields, payload = message
        if kind == "stop":
            raise _Stopped(fields["why"], fields["text"])
        if kind == "inputs":
            arrays, meta = unpack_archive(payload, "what process 0 sent")
            settings = ProblemSettings.read(meta["settings"], "what process 0 sent")
            self.problem = problem_from_arrays(
                arrays, meta["records"], settings, where="of process 0", **self.given
            )
            self.schedule = Schedule(arrays["betas"])
        elif kind == "anneal":
            self._take_on(fields["terms"], fields["digest"])
        else:
            assert self.share is not None
            self._go_on(self.share, message)

    def _take_on(self, terms: dict, digest: str) -> None:
        missing = set(terms["observers"]) - self.observers.keys()
        if missing:
            raise ValueError(
                f"observe must be the same in all processes: {missing} is not known here."
            )
        observers = {name: self.observers[name] for name in terms.pop("observers")}
        problem = self.problem
        work = Work(problem.states, problem.kernel, observers, self.schedule, **terms)
        if work.digest() != digest:
            raise ValueError(
                "this process does not see the same run as process 0: give all the same observe, and "
                "the same version of annealz."
            )
        owners = self.team.owners(len(work.blocks[0]))
        self.close()
        self.share = Share(work, self._of(owners), local_devices())

    def _of(self, owners: list[int]) -> list[int]:
        return [i for i, owner in enumerate(owners) if owner == self.team.index]

    def _go_on(self, share: Share, message: Message) -> None:
        kind, fields, payload = message
        count = len(share.mine)
        if kind == "begin" and payload:
            share.begin(from_bytes(payload, [share.work.draws_like] * count))
        elif kind == "begin":
            share.begin()
        elif kind == "put":
            share.put(fields["step"], from_bytes(payload, [share.work.like] * count))
        elif kind == "advance":
            self.team.answer("parts", to_bytes(share.advance(fields["step"], fields["stop"])))
        elif kind == "blocks":
            self.team.answer("blocks", to_bytes(share.at(fields["step"])))
        else:
            raise ValueError(f"process 0 said {kind!r}, which is not understood.")
