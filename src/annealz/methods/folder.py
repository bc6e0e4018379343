"""The folder of one run: what it was given, where it stands, what came out.

inputs.npz       model, base and kernel as far as they can be stored (`families.py`), and the draws that a
                 reverse run was given to start from
schedule.json    the frozen schedule
checkpoint.npz   the run in the middle; gone when it is done. Of later parts: checkpoint-part-2.npz, …
part-1.npz       finished parts of a run that has several; gone when all are done
run.npz          log weights, traces and last states of the finished run; reverse.npz of the reverse one,
                 second.npz and probe.npz of the second opinion, over second-schedule.json
estimate.json    the result, as `annealz estimate --json` prints it
report.html      the result as a page, where `annealz report` made it
run.json         settings and versions; written first, so that it marks the folder as a run's
.lock            while a process writes here (`lock.py`)

Every archive carries a digest of run.json, and inputs.npz those of the schedules, so that a file of another
run is recognised. Nothing in a folder is ever imported or run.
"""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from annealz.engine.run import Run, Runs
from annealz.engine.run_arrays import run_from_arrays, run_to_arrays
from annealz.io.storage.archive import load_archive, save_archive
from annealz.io.storage.files import write_atomic
from annealz.io.storage.record import load_record, save_record
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.problem import Problem
from annealz.methods.problem_arrays import problem_from_arrays, problem_to_arrays
from annealz.methods.settings import (
    AnnealSettings,
    ExchangeSettings,
    ProblemSettings,
    RunSettings,
    read_settings,
)
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

__all__ = ["RunFolder"]

_FILES = (
    "run.json",
    "inputs.npz",
    "schedule.json",
    "checkpoint*.npz",
    "part-*.npz",
    "run.npz",
    "reverse.npz",
    "second-schedule.json",
    "second.npz",
    "probe.npz",
    "estimate.json",
)
_REPORT = "report.html"
_COMPANIONS = ("reverse", "second", "probe")
_FIRST_PART = "part-1"
_PUT_BACK = "put the file of this run back, or run it again with force=True"


def digest_of_record(record: dict[str, Any]) -> str:
    """Of what run.json holds, the same before it is written and after it was read."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


class RunFolder:
    """One folder, one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._digest: str | None = None

    def checkpoint_of(self, part: str) -> Path:
        """Where a part of the run stands."""
        suffix = "" if part == _FIRST_PART else f"-{part}"
        return self.path / f"checkpoint{suffix}.npz"

    def has_progress(self) -> bool:
        """Whether there is something to resume from."""
        return any(
            True for kind in ("checkpoint*", "part-*") for _ in self.path.glob(f"{kind}.npz")
        )

    @property
    def source(self) -> str | None:
        """Where the model was imported from, module:name; to be shown, never to be followed."""
        record = self.path / "run.json"
        return load_record(record).get("source") if record.is_file() else None

    def is_done(self) -> bool:
        return (self.path / "run.npz").exists()

    @property
    def report(self) -> Path:
        """Where the page of the result belongs."""
        return self.path / _REPORT

    def check_done(self) -> None:
        """Refuse what is not a finished run."""
        if not (self.path / "run.json").is_file():
            what = "holds no run" if self.path.is_dir() else "is not the folder of a run"
            raise ValueError(
                f"{self.path} {what}: give the folder that 'annealz estimate --out' wrote."
            )
        if not self.is_done():
            raise ValueError(
                f"{self.path} holds an unfinished run: finish it first with 'annealz resume "
                f"{self.path}'."
            )

    def check(self, force: bool) -> None:
        """Refuse a place that cannot hold a run, or holds one already."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"the output {self.path} is a file: give a folder.")
        if self._present() and not force:
            state, way = "an unfinished run", f"resume it with 'annealz resume {self.path}', "
            if self.is_done():
                state, way = "a finished run", f"read it with 'annealz resume {self.path}', "
            raise ValueError(
                f"the output folder {self.path} already holds {state}: choose another, {way}or "
                "overwrite it with force=True."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path / ".probe", "")
            (self.path / ".probe").unlink()
        except OSError as error:
            raise self._refusal(error) from error

    def create(
        self,
        settings: RunSettings,
        problem: Problem,
        schedule: Schedule,
        draws: np.ndarray | None = None,
        second_schedule: Schedule | None = None,
    ) -> None:
        """Write down what the run is given, in place of what was there."""
        arrays, records = problem_to_arrays(problem)
        if draws is not None:
            arrays["draws"] = np.asarray(draws)
        schedules = {"schedule.json": schedule}
        if second_schedule is not None:
            schedules["second-schedule.json"] = second_schedule
        records["schedules"] = {name: one.digest for name, one in schedules.items()}
        record = settings.to_dict()
        self._digest = digest_of_record(record)
        try:
            for file in (*self._present(), *self._temporary(), self.report):
                file.unlink(missing_ok=True)
            save_record(self.path / "run.json", record)
            self._save("inputs.npz", arrays, records)
            for name, one in schedules.items():
                one.save(self.path / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                self.remove()
            raise self._refusal(error) from error

    def settings(self) -> AnnealSettings | ExchangeSettings:
        """What run.json holds."""
        file = self.path / "run.json"
        if not file.is_file():
            raise ValueError(f"{self.path} holds no run to resume: it has no run.json.")
        record = load_record(file)
        self._digest = digest_of_record(record)
        return read_settings(record, file)

    def inputs(self) -> tuple[AnnealSettings | ExchangeSettings, Schedule, np.ndarray | None]:
        """(settings, schedule, draws) as they were given."""
        settings = self.settings()
        arrays, records = self._load("inputs.npz")
        return settings, self._schedule("schedule.json", records), arrays.get("draws")

    def second_schedule(self) -> Schedule | None:
        """Of the second opinion, if there is one."""
        name, records = "second-schedule.json", self._load("inputs.npz")[1]
        is_known = name in records["schedules"] or (self.path / name).exists()
        return self._schedule(name, records) if is_known else None

    def problem(
        self,
        settings: ProblemSettings,
        *,
        model: AbstractModel | None = None,
        path: AbstractPath | None = None,
        kernel: AbstractKernel | None = None,
    ) -> Problem:
        """What is annealed, as it was given; what could not be stored must be given again."""
        arrays, records = self._load("inputs.npz")
        where = f"in {self.path}"
        return problem_from_arrays(
            arrays, records, settings, where=where, model=model, path=path, kernel=kernel
        )

    def save_part(self, part: str, run: Run) -> None:
        """Keep a finished part, and drop its checkpoint; a disk that refuses it stops nothing."""
        with contextlib.suppress(OSError):
            self._save_run(f"{part}.npz", run)
            self.checkpoint_of(part).unlink(missing_ok=True)

    def part(self, part: str, schedule: Schedule) -> Run | None:
        """A finished part over this schedule, if there is one."""
        return self._load_run(f"{part}.npz", schedule)

    def finish(self, runs: Runs, result: dict[str, Any]) -> None:
        """Save what came out, and drop what led to it."""
        write_atomic(self.path / "estimate.json", json.dumps(result, indent=1))
        companions = [name for name in _COMPANIONS if getattr(runs, name) is not None]
        for name in companions:
            self._save_run(f"{name}.npz", getattr(runs, name))
        self._save_run("run.npz", runs.forward, companions)  # last: it marks the run as done
        for kind in ("checkpoint*.npz", "part-*.npz"):
            for file in self.path.glob(kind):
                file.unlink(missing_ok=True)

    def runs(self) -> Runs:
        """The finished runs (without what observers carried)."""
        schedule, second = self.inputs()[1], self.second_schedule()
        for name in self._load("run.npz")[1]["companions"]:
            self._check_present(f"{name}.npz")
        forward = self._load_run("run.npz", schedule)
        assert forward is not None
        return Runs(
            forward,
            self._load_run("reverse.npz", schedule),
            None if second is None else self._load_run("second.npz", second),
            None if second is None else self._load_run("probe.npz", schedule),
        )

    def _save_run(self, name: str, run: Run, companions: list[str] | None = None) -> None:
        arrays, meta = run_to_arrays(run)
        self._save(name, arrays, meta if companions is None else {**meta, "companions": companions})

    def _load_run(self, name: str, schedule: Schedule) -> Run | None:
        if not (self.path / name).exists():
            return None
        arrays, meta = self._load(name)
        meta.pop("companions", None)
        return run_from_arrays(arrays, meta, schedule)

    def _save(self, name: str, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """An archive, with a mark of the run that it belongs to."""
        save_archive(self.path / name, arrays, {**meta, "run": self._own_digest()})

    def _load(self, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """An archive of this run."""
        self._check_present(name)
        arrays, meta = load_archive(self.path / name)
        if meta.pop("run", None) != self._own_digest():
            raise self._foreign(name)
        return arrays, meta

    def _schedule(self, name: str, records: dict[str, Any]) -> Schedule:
        self._check_present(name)
        schedule = Schedule.load(self.path / name)
        if records["schedules"].get(name) != schedule.digest:
            raise self._foreign(name)
        return schedule

    def _own_digest(self) -> str:
        if self._digest is None:
            self._digest = digest_of_record(load_record(self.path / "run.json"))
        return self._digest

    def _check_present(self, name: str) -> None:
        if not (self.path / name).is_file():
            raise ValueError(f"{self.path / name} is missing: {_PUT_BACK}.")

    def _foreign(self, name: str) -> ValueError:
        return ValueError(
            f"{self.path / name} does not belong to the run of {self.path / 'run.json'}: {_PUT_BACK}."
        )

    def remove(self) -> None:
        """Delete the run's own files, and the folder if nothing else is in it."""
        if not self.path.is_dir():
            return
        for file in (*self._present(), *self._temporary(), self.report):
            file.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _present(self) -> list[Path]:
        return [file for kind in _FILES for file in sorted(self.path.glob(kind))]

    def _temporary(self) -> list[Path]:
        """What a killed process left behind in the middle of a write."""
        return list(self.path.glob(".*.tmp"))

    def _refusal(self, error: OSError) -> ValueError:
        return ValueError(
            f"cannot write to the output folder {self.path}: {error.strerror or error}."
        )
