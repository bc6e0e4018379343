"""Plan: all that is decided before a run, by the request and by pilots.

The record of a plan (numbers, words, findings) is JSON in the folder of its run; its problem and its
schedules are arrays beside it. A finished run is read without its problem where that cannot be stored.
"""

import dataclasses
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from annealz.bases.abstract import AbstractBase
from annealz.core.cost import Cost
from annealz.core.devices import versions
from annealz.core.errors import InputError
from annealz.diagnostics.findings import Finding
from annealz.io.records import (
    Record,
    TypedRecord,
    finite,
    flag,
    line,
    list_of,
    number,
    optional,
    table,
    table_of,
    text,
    whole,
)
from annealz.io.serialise import restore, store
from annealz.kernels.abstract import AbstractKernel
from annealz.methods.problem import Problem, Second
from annealz.methods.request import Request
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath
from annealz.schedules.schedule import Schedule

_FAMILIES = {
    "model": AbstractModel,
    "base": AbstractBase,
    "second": AbstractBase,
    "kernel": AbstractKernel,
    "second-kernel": AbstractKernel,
}
Arrays = dict[str, np.ndarray]


_COST = Record("a cost", {"sweeps": whole, "evaluations": whole, "seconds": finite})


def read_cost(value: Any) -> Cost:
    """Return a cost within a record."""
    record = _COST.within(value)
    return Cost(**{name: record[name] for name in _COST.needed})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan(TypedRecord):
    """What every plan has."""

    what: ClassVar[str] = "the plan of a run"
    request_type: ClassVar[type[Request]] = Request

    request: Annotated[Any, table]
    model: Annotated[str, line]
    """What the model is called."""
    model_digest: Annotated[str, text]
    source: Annotated[str | None, optional(line)]
    """Where the model was imported from, module:name; shown, never imported from a file."""
    base: Annotated[str, text]
    base_digest: Annotated[str | None, optional(text)]
    marginal: Annotated[str | None, optional(text)]
    cost: Annotated[Cost, read_cost]
    """Of all pilots; evaluations are None for models whose cost is counted in sweeps."""
    exact_log_z: Annotated[float | None, optional(number)]
    evaluations_a_sweep: Annotated[int | None, optional(whole)]
    """Of the density, by the kernel; None where they are not counted."""
    is_density: Annotated[bool, flag] = False
    """Whether evaluations of a density are the cost of a sweep, counted or not."""
    offset: Annotated[float | None, optional(number)] = None
    """What the path subtracts from a log density, and adds to log Z."""
    findings: Annotated[list[dict[str, Any]] | None, optional(list_of(table))] = None
    """What pilots found, as records."""
    versions: Annotated[dict[str, str], table_of(text)] = dataclasses.field(
        default_factory=versions
    )
    problem: Problem | None = dataclasses.field(default=None, compare=False)
    """What is sampled; None where a finished run was read without its model."""
    start: np.ndarray | None = dataclasses.field(default=None, compare=False)
    """States that chains start from, where these were decided before the run."""

    @classmethod
    def of(cls, request: Request, problem: Problem, **decided: Any) -> Self:
        """Return the plan of a problem."""
        base, each = problem.path.base, problem.kernel.evaluations
        is_counted = each is None or getattr(problem.states, "carries_value", False)
        return cls(
            request=request,
            problem=problem,
            model=problem.name,
            model_digest=problem.model.digest,
            source=problem.source,
            base=problem.base_name,
            base_digest=getattr(base, "digest", None),
            marginal=problem.marginal,
            cost=problem.cost,
            exact_log_z=problem.exact_log_z,
            evaluations_a_sweep=each if is_counted else None,
            is_density=each is not None,
            offset=problem.offset,
            findings=[finding.to_record() for finding in problem.findings] or None,
            **decided,
        )

    @property
    def known_findings(self) -> list[Finding]:
        """What pilots found."""
        return [Finding.from_record(record) for record in self.findings or ()]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        record = super().to_dict()
        costs = {n: dataclasses.asdict(v) for n, v in record.items() if isinstance(v, Cost)}
        return {**record, **costs, "method": self.request.method}

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Schedules by name, which are stored beside the record."""
        return {}

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return what a folder holds beside the record, as named arrays and JSON records."""
        problem, arrays, records = self.problem, {}, {}
        assert problem is not None
        things = {"model": problem.model, "base": problem.path.base, "kernel": problem.kernel}
        if problem.second is not None:
            things |= {"second": problem.second.path.base, "second-kernel": problem.second.kernel}
        for name, thing in things.items():
            stored = None if thing is None else store(thing)
            if stored is not None:
                arrays |= {f"{name}:{key}": array for key, array in stored[0].items()}
                records[name] = stored[1]
        if self.start is not None:
            arrays["start"] = np.asarray(self.start)
        for name, schedule in self.schedules.items():
            records[f"schedule:{name}"] = schedule.to_record()
        return arrays, records

    @classmethod
    def restored(
        cls,
        record: dict[str, Any],
        arrays: Arrays,
        records: dict[str, Any],
        where: str,
        *,
        model: AbstractModel | None = None,
        observe: Any = None,
        is_done: bool = False,
        **objects: Any,
    ) -> Self:
        """Return the plan that a folder holds; what could not be stored is given again.

        `where` the run is, for messages. A run that is done needs no problem.
        """
        plan = cls.read(record, where)
        request = cls.request_type.read(plan.request, where)
        if observe is not None:
            request = dataclasses.replace(request, observe=observe)
        parts = {name.partition(":")[::2]: value for name, value in records.items()}
        schedules = {n: Schedule.from_record(v) for (k, n), v in parts.items() if k == "schedule"}
        plan = dataclasses.replace(plan, request=request, start=arrays.get("start"), **schedules)
        check_model(model, plan, where)
        if is_done and model is None and "model" not in records:
            return plan
        try:
            problem = _problem(plan, arrays, records, where, model=model, **objects)
        except ValueError:
            if is_done and model is None:
                return plan
            raise
        return dataclasses.replace(plan, problem=problem)


def check_model(model: AbstractModel | None, plan: Plan, where: str) -> None:
    """Refuse a model that is not the one of the run."""
    if model is not None and model.digest != plan.model_digest:
        raise ValueError(
            f"the run {where} is of another model than the one given: give {plan.model} as it was."
        )


def _problem(
    plan: Plan,
    arrays: Arrays,
    records: dict[str, Any],
    where: str,
    *,
    model: AbstractModel | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
) -> Problem:
    """Return the problem of a stored plan."""

    def stored(name: str) -> Any:
        if name not in records:
            return None
        start = f"{name}:"
        own = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
        thing = restore(own, records[name])
        if not isinstance(thing, _FAMILIES[name]):
            raise ValueError(
                f"the run {where} is damaged: it holds a {type(thing).__name__} as its {name}."
            )
        return thing

    objects = plan.request.objects
    model = stored("model") or model
    if model is None:
        what, remedy = f"{plan.model}, a model that cannot be stored", "give it again by {model}"
        if plan.source:
            what = f"a model imported from {plan.source}, and annealz never imports modules named by a file"
            remedy = f"if the module is yours, give {plan.source} again by {{model}}"
        raise InputError("", f"the run {where} is of {what}", remedy=remedy)
    model.check()
    check_model(model, plan, where)
    for name, thing in (("path", path), ("kernel", kernel)):
        if thing is None and name in objects and name not in records:
            raise ValueError(
                f"the run {where} was given a {name} that cannot be stored: give it again, "
                f"{name}={name}."
            )
    layer = plan.marginal or model.marginals[0]
    if path is None:
        base = stored("base")
        if base is None and "base" in objects:
            raise ValueError(
                f"the run {where} was given a base that cannot be stored: give the path that starts from "
                "it, path=path."
            )
        if base is None:
            base = _named_base(model, plan.base).with_offset(plan.offset)
        path = model.path(base, layer)
    base, wanted = stored("second"), getattr(plan, "second", None)
    if base is None and wanted is not None and wanted.base == "prior":
        base = model.choose_base("prior").with_offset(plan.offset)
    second = None if base is None else Second(model.path(base, layer), stored("second-kernel"))
    return Problem(
        model,
        plan.model,
        path,
        stored("kernel") or kernel or model.kernel(),
        plan.marginal,
        is_own_path="path" not in objects,
        second=second,
    )


def _named_base(model: AbstractModel, name: str) -> Any:
    """Return a base that could not be stored."""
    try:
        return model.choose_base(name)
    except ValueError:  # a name that the base gave itself
        return model.choose_base("auto")
