"""Problem: a model, a path that ends in it, and a kernel along the path.

Model, base, path and kernel are chosen here for all methods that need them: a path brings its base with it,
a kernel leaves the model's path.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealz.bases.bernoulli import ROWS_OF_MEANS, BernoulliBase
from annealz.core.cost import Cost
from annealz.core.errors import InputError
from annealz.diagnostics.findings import Finding, Kind
from annealz.engine.progress import Progress
from annealz.io.schedules import has_pilot
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.adaptation import AbstractTunedKernel
from annealz.methods.hints import hint
from annealz.models.abstract import AbstractModel
from annealz.models.formats.load import read_model
from annealz.paths.abstract import AbstractPath
from annealz.pilots.base_search import BaseSearch
from annealz.schedules.choose import DEFAULT_NUM_STEPS
from annealz.schedules.rules import mixing
from annealz.schedules.schedule import Schedule
from annealz.schedules.steps import from_increments
from annealz.schedules.terrain import Terrain

_DEFAULT_CHAINS = 1000
_MAX_ENUMERATED_UNITS = 10  # of two states each: fewer states than a run has chains
_TUNING_SHARE, _MIN_TUNING_SWEEPS = 0.02, 3000
_STEPS_PER_TEMPERATURE = 1.5  # times their number: steps of the second run of a density
_MIN_SECOND_STEPS, _MAX_SECOND_STEPS = 50, 1000


@dataclasses.dataclass(frozen=True)
class Second:
    """Where the chains of a second opinion go, and what a pilot saw of it."""

    path: AbstractPath
    """From an unlike base."""
    kernel: AbstractKernel | None = None
    """Their transition, where it is not the first one's."""
    terrain: Terrain | None = None
    temperatures: int = 0
    """Of equal difficulty, that a pilot needed; with a kernel of their own."""

    def schedule(self, first: Schedule) -> Schedule:
        """Return the schedule: planned by its pilot, if the first was by one.

        Of a density it has betas of equal difficulty, as many as bring the variance of log w to about 1.
        """
        if not isinstance(self.kernel, AbstractTunedKernel):
            if self.terrain is None or not has_pilot(first.name):
                return first
            return mixing(self.terrain, first.num_steps)
        assert self.kernel.tuning is not None
        knots = np.asarray(self.kernel.tuning.betas, np.float64)
        least = max(_STEPS_PER_TEMPERATURE * self.temperatures**2, _MIN_SECOND_STEPS)
        steps = int(max(least, min(first.num_steps, _MAX_SECOND_STEPS)))
        betas = np.interp(np.linspace(0, 1, steps + 1), np.linspace(0, 1, knots.size), knots)
        return from_increments(np.diff(betas), "temperatures", {"temperatures": self.temperatures})


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is sampled, and what it took to choose it."""

    model: AbstractModel
    name: str
    path: AbstractPath
    kernel: AbstractKernel
    marginal: str | None
    """The layer that is annealed, of a model that has several."""
    exact_log_z: float | None = None
    """What is known: recorded in the model's file, given, or enumerated."""
    source: str | None = None
    """Where the model was imported from, module:name."""
    cost: Cost = Cost()
    """Of the checks and pilots so far."""
    wanted_base: str | None = None
    """What pilots have to find: auto, fitted, or the name of a base of a density; None once it is decided.
    Until then `path` starts from a stand-in."""
    is_own_path: bool = True
    """Whether the path is the model's own, so that others like it can be made."""
    is_enumerated: bool = False
    """Whether the exact log Z replaces the search of bases and the second opinion."""
    base_reason: str | None = None
    """Why the base was taken, where it was searched for."""
    second: Second | None = None
    """Of the second opinion."""
    rounding: float | None = None
    """Of one value of a density, where it was measured."""
    findings: tuple[Finding, ...] = ()
    """What pilots found that speaks against annealing."""
    is_unconfirmed: bool = False
    """Whether a time limit left no second base."""

    def prepared(
        self,
        seed: int,
        num_steps: int = DEFAULT_NUM_STEPS,
        num_chains: int = _DEFAULT_CHAINS,
        *,
        second_opinion: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        deadline: float | None = None,
    ) -> "Problem":
        """Return the problem with base and kernel decided by pilots.

        `num_steps` and `num_chains` are those of the run to come, of whose sweeps tuning the kernel may
        take a fiftieth and a search for bases a third. With `second_opinion` a second path, from an
        unlike base, where the model has one. After the `deadline`, by `time.monotonic`, no further base is
        tried.
        """
        budget = max(int(_TUNING_SHARE * num_steps * num_chains), _MIN_TUNING_SWEEPS)
        if self.wanted_base is not None and self.model.searched_bases:
            return self._density_prepared(seed, budget, second_opinion)
        search = BaseSearch(
            self.model, self.layer, self.kernel, seed, num_steps, num_chains, on_progress, deadline
        )
        problem, choice = self, None
        if self.wanted_base is not None:
            choice = search.both(is_fitted=self.wanted_base == "fitted")
            assert choice.first is not None
            problem = dataclasses.replace(self, path=choice.first.path, base_reason=choice.reason)
        elif self.is_searched(second_opinion):
            choice = search.second(self.path.base)
        if choice is not None:
            found = choice.second if second_opinion else None
            problem = dataclasses.replace(
                problem,
                cost=problem.cost + choice.cost,
                second=None if found is None else Second(found.path, terrain=found.terrain),
                findings=(*self.findings, *self.model.findings(choice.states)),
                is_unconfirmed=choice.is_cut and found is None,
            )
        return dataclasses.replace(problem, wanted_base=None)._tuned(seed, budget)

    def _tuned(self, seed: int, budget: int) -> "Problem":
        """Return the problem with its kernel tuned on its path."""
        tuned = self.kernel.tuned(self.states, seed=seed, budget=budget)
        return dataclasses.replace(self, kernel=tuned.kernel, cost=self.cost + tuned.cost)

    def _density_prepared(self, seed: int, budget: int, second_opinion: bool) -> "Problem":
        """Return the problem of a density, whose bases come with kernels of their own."""
        from annealz.models.log_density import LogDensity
        from annealz.pilots.densities.search import search_density

        assert isinstance(self.model, LogDensity)
        assert self.wanted_base is not None
        choice = search_density(self.model, self.kernel, name=self.wanted_base, seed=seed)
        problem = dataclasses.replace(
            self,
            path=self.model.path(choice.first),
            cost=self.cost + Cost(0, choice.evaluations, choice.seconds),
            wanted_base=None,
            base_reason=choice.reason,
            rounding=choice.rounding,
            findings=(*self.findings, *choice.findings),
        )._tuned(seed, budget)
        if not second_opinion:
            return problem
        path, kernel, cost = self.model.path(choice.second), choice.second_kernel, problem.cost
        if kernel is None:
            tuned = self.kernel.tuned(
                self.kernel.extend(path), seed=seed, budget=_MIN_TUNING_SWEEPS
            )
            kernel, cost = tuned.kernel, cost + tuned.cost
        second = Second(path, kernel, temperatures=choice.second_temperatures)
        return dataclasses.replace(problem, cost=cost, second=second)

    def enumerated(self) -> "Problem":
        """Return the problem without a search for bases and a second opinion, if the model is small.

        Every chain can come to every state of such a model, and the exact log Z, which no estimate may
        contradict, says more than a second one.
        """
        flat = self.model.flat_base()
        if not isinstance(flat, BernoulliBase) or flat.num_units > _MAX_ENUMERATED_UNITS:
            return self
        known = self if self.wanted_base == "fitted" else self.with_exact()
        if known.exact_log_z is None or self.wanted_base == "fitted":
            return self
        path = self.path
        if self.wanted_base is not None:
            path = self.model.path(flat, self.layer)
        reason = (
            f"the exact log Z of {2**flat.num_units:,} states is known, no other base was tried"
        )
        return dataclasses.replace(
            known, path=path, is_enumerated=True, wanted_base=None, base_reason=reason
        )

    def is_searched(self, second_opinion: bool) -> bool:
        """Check whether `prepared` will look for a base, the first or the second."""
        wants_second = second_opinion and self.is_own_path and bool(self.model.named_bases())
        return self.wanted_base is not None or (wants_second and not self.is_enumerated)

    @property
    def layer(self) -> str:
        """The layer that is annealed."""
        return self.marginal or self.model.marginals[0]

    @property
    def states(self) -> AbstractPath:
        """The path of the states that the kernel moves."""
        return self.kernel.extend(self.path)

    @property
    def offset(self) -> float | None:
        """What the path subtracts from a log density, and adds to log Z."""
        offset = getattr(self.path.base, "offset", None)
        return None if offset is None else float(offset)

    @property
    def base_name(self) -> str:
        """The name of the base."""
        return getattr(self.path.base, "name", "the path's own")

    def along_second(self) -> tuple[AbstractPath, AbstractKernel]:
        """Return the path of the second chains' states, and the kernel that moves them."""
        assert self.second is not None
        kernel = self.second.kernel or self.kernel
        return kernel.extend(self.second.path), kernel

    def charged(self, cost: Cost) -> "Problem":
        """Return the problem with more spent on pilots."""
        return dataclasses.replace(self, cost=self.cost + cost)

    def with_exact(self, given: float | None = None) -> "Problem":
        """Return the problem with the exact log Z: given, known already, or quick to enumerate."""
        known = self.exact_log_z if given is None else given
        if known is not None:
            return dataclasses.replace(self, exact_log_z=known)
        known = self.model.exact_log_z_if_cheap()
        count = 0 if known is None else self.model.num_enumerated
        return dataclasses.replace(self.charged(Cost(evaluations=count)), exact_log_z=known)


def read_target(model: Any) -> tuple[AbstractModel, dict[str, Any]]:
    """Return a model, given as it is, by its name or by its file, and what is known of it."""
    if isinstance(model, str | Path):
        target, meta = read_model(model)
        if "source" in meta:  # others were checked when they were read
            target.check()
        return target, meta
    if not isinstance(model, AbstractModel):
        raise InputError(
            "model", f"must be an annealz model, a packaged name or a file, got {hint(model)}"
        )
    model.check()
    return model, {}


def choose_problem(
    model: AbstractModel | str | Path | tuple[AbstractModel, dict[str, Any]],
    *,
    base: Any = "auto",
    data: Any = None,
    marginal: str | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | str | None = None,
) -> Problem:
    """Return the problem of a model with the base, path and kernel that are given, or its own.

    What is wrong with them is reported here; what takes sweeps is left to `Problem.prepared`.
    """
    target, meta = model if isinstance(model, tuple) else read_target(model)
    if path is not None and not isinstance(path, AbstractPath):
        raise InputError("path", f"must be an annealz.AbstractPath, got {type(path).__name__}")
    chosen_kernel = target.choose_kernel(kernel)
    name = base if isinstance(base, str) else None
    wanted, is_own_path = None, path is None
    if path is not None:
        if data is not None or name != "auto":
            raise ValueError("a path has its own base: leave out base and data, or the path.")
        if marginal is not None:
            raise ValueError(f"a path has its own states: leave out marginal, got {marginal!r}.")
    else:
        marginal = target.check_marginal(target.marginals[0] if marginal is None else marginal)
        has_named = bool(target.named_bases())
        is_fitted = name == "fitted" and has_named
        if is_fitted and data is not None:
            raise InputError("data", "serve the base-rate base only, and the base is fitted")
        start = target.flat_base() if is_fitted else target.choose_base(base, data)
        path = target.path(start, marginal)
        is_known = getattr(start, "name", None) == "base-rate" or not has_named
        if name in target.searched_bases or is_fitted or (name == "auto" and not is_known):
            wanted = name
        marginal = marginal if len(target.marginals) > 1 else None
    return Problem(
        target,
        meta.get("name", target.name),
        path,
        chosen_kernel,
        marginal,
        wanted_base=wanted,
        is_own_path=is_own_path,
        **_known(target, meta, data, path.base),
    )


def _known(target: AbstractModel, meta: dict[str, Any], data: Any, base: Any) -> dict[str, Any]:
    """Return what a problem holds of its model's file and of the data."""
    findings = []
    names, means = meta.get("guessed_names"), meta.get("unused_means")
    if names is not None:
        findings.append(Finding.of(Kind.GUESSED_NAMES, names=names))
    given = getattr(target, "visible_means", None) if data is None else data
    is_used = given is not None and getattr(base, "name", None) == "base-rate"
    array = np.asarray(given) if is_used else np.empty(0)
    count = int(((array == 0) | (array == 1)).sum()) if array.ndim == 1 else 0
    if count:
        rows = ROWS_OF_MEANS
        findings.append(Finding.of(Kind.SMOOTHED_MEANS, total=array.size, count=count, rows=rows))
    if means is not None and data is None:
        findings.append(Finding.of(Kind.UNUSED_MEANS, name=means))
    return {
        "exact_log_z": meta.get("exact_log_z"),
        "source": meta.get("source"),
        "cost": Cost(evaluations=target.num_checked),
        "findings": tuple(findings),
    }
