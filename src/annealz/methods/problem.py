"""What is annealed: a model, a path that ends in it, and a kernel along the path.

Model, base, path and kernel are chosen here for all that anneals: whoever gives a path gives its base with
it, whoever gives a kernel keeps the model's path.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealz.bases.bernoulli import ROWS_OF_MEANS, BernoulliBase
from annealz.core.versions import versions
from annealz.diagnostics.findings import Finding, Kind
from annealz.engine.anneal import Progress
from annealz.io.registry.schedules import has_pilot
from annealz.kernels.abstract import AbstractKernel
from annealz.kernels.adaptation import AbstractTunedKernel
from annealz.methods.hints import hint
from annealz.methods.settings import Given, SecondBase
from annealz.models.abstract import AbstractModel
from annealz.models.formats.load import read_model
from annealz.paths.abstract import AbstractPath
from annealz.pilots.base_search import choose_second, search_bases
from annealz.schedules.choose import DEFAULT_NUM_STEPS
from annealz.schedules.increments import from_increments
from annealz.schedules.mixing import mixing
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain

__all__ = ["Problem", "choose_problem"]

_USUAL_CHAINS = 1000
_FEW_UNITS = 10  # of two states each: fewer states than a run has chains
_TUNING_SHARE, _LEAST_TUNING = 0.02, 3000
_STEPS_A_TEMPERATURE = 1.5  # times their number: steps of the second run of a density
_LEAST_SECOND_STEPS, _MOST_SECOND_STEPS = 50, 1000


@dataclasses.dataclass(frozen=True)
class Problem:
    """Ready to be annealed; the sweeps and seconds that choosing it took."""

    model: AbstractModel
    name: str
    path: AbstractPath
    kernel: AbstractKernel
    marginal: str | None
    """The layer that is annealed, of a model that has several; auto until it is prepared."""
    exact_log_z: float | None = None
    """What is known: recorded in the model's file, given, or enumerated."""
    source: str | None = None
    """Where the model was imported from, module:name."""
    pilot_sweeps: int = 0
    pilot_seconds: float = 0.0
    is_open: bool = False
    """Whether the base is still to be searched for; `path` then starts from a stand-in."""
    is_fitted: bool = False
    """Whether a fitted base was asked for by name."""
    is_own_path: bool = True
    """Whether the path is the model's own, so that others like it can be made."""
    base_reason: str | None = None
    """Why the base was taken, where it was searched for."""
    second_path: AbstractPath | None = None
    """From an unlike base, for a second opinion."""
    second_terrain: Terrain | None = None
    """What a pilot saw of it."""
    second_kernel: AbstractKernel | None = None
    """The transition along the second path, where it is not the first one's."""
    second_temperatures: int = 0
    """Temperatures of equal difficulty that a pilot needed along it."""
    wanted_base: str = "auto"
    """The name of a base that a pilot has to find."""
    pilot_evaluations: int = 0
    """Of a density, by pilots, beside those of their sweeps."""
    rounding: float | None = None
    """Of one value of a density, where it was measured."""
    findings: tuple[Finding, ...] = ()
    """What pilots found that speaks against annealing."""
    is_unconfirmed: bool = False
    """Whether a time limit left no second base."""
    is_simple: bool = False
    """Whether the exact log Z stands for the search of bases and the second opinion."""

    def prepared(
        self,
        seed: int,
        num_steps: int = DEFAULT_NUM_STEPS,
        num_chains: int = _USUAL_CHAINS,
        *,
        second_opinion: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
        deadline: float | None = None,
    ) -> "Problem":
        """The same with all decided that takes a pilot: base, and how the kernel steps.

        `num_steps` and `num_chains` are those of the run to come, of whose sweeps tuning the kernel may
        take a fiftieth and a search for bases a third. With `second_opinion` a second path, from an
        unlike base, where the model has one. After the `deadline`, by `time.monotonic`, no further base is
        tried.
        """
        if self.is_open and self.model.searched_bases:
            return self._density_prepared(seed, num_steps, num_chains, second_opinion)
        path, spent, seconds, starts = self.path, 0, 0.0, 0
        layer = self.marginal or self.model.marginals[0]
        options: dict[str, Any] = {"seed": seed, "num_steps": num_steps, "num_chains": num_chains}
        options |= {"on_progress": on_progress, "deadline": deadline}
        found = None
        if self.is_open:
            found = search_bases(
                self.model, layer, self.kernel, is_fitted=self.is_fitted, **options
            )
            assert found.first is not None
            path = found.first.path
        elif self.is_searched(second_opinion):
            found = choose_second(self.model, layer, self.kernel, path.base, **options)
        if found is not None:
            spent, seconds, starts = found.sweeps, found.seconds, found.starts
        findings = self.findings
        if found is not None:
            findings = (*findings, *self.model.findings(found.states))
        second = found.second if found is not None and second_opinion else None
        budget = max(int(_TUNING_SHARE * num_steps * num_chains), _LEAST_TUNING)
        tuned = self.kernel.tuned(self.kernel.extend(path), seed=seed, budget=budget)
        return dataclasses.replace(
            self,
            path=path,
            kernel=tuned.kernel,
            pilot_sweeps=self.pilot_sweeps + spent + tuned.sweeps,
            pilot_seconds=self.pilot_seconds + seconds + tuned.seconds,
            pilot_evaluations=self.pilot_evaluations + starts + tuned.starts,
            is_open=False,
            base_reason=self.base_reason if found is None else found.reason,
            second_path=None if second is None else second.path,
            second_terrain=None if second is None else second.terrain,
            findings=findings,
            is_unconfirmed=found is not None and found.is_cut and second is None,
        )

    def _density_prepared(
        self, seed: int, num_steps: int, num_chains: int, second_opinion: bool
    ) -> "Problem":
        """The same of a density, whose bases come with kernels of their own."""
        from annealz.models.log_density import LogDensity
        from annealz.pilots.densities.search import search_density

        assert isinstance(self.model, LogDensity)
        found = search_density(self.model, self.kernel, name=self.wanted_base, seed=seed)
        path = self.model.path(found.first)
        budget = max(int(_TUNING_SHARE * num_steps * num_chains), _LEAST_TUNING)
        tuned = self.kernel.tuned(self.kernel.extend(path), seed=seed, budget=budget)
        second_path = second_kernel = None
        sweeps, starts = tuned.sweeps, tuned.starts
        seconds, temperatures = found.seconds + tuned.seconds, found.second_temperatures
        if second_opinion and found.second is not None:
            second_path, second_kernel = self.model.path(found.second), found.second_kernel
            if second_kernel is None:
                states = self.kernel.extend(second_path)
                again = self.kernel.tuned(states, seed=seed, budget=_LEAST_TUNING)
                second_kernel = again.kernel
                sweeps, starts = sweeps + again.sweeps, starts + again.starts
                seconds += again.seconds
        return dataclasses.replace(
            self,
            path=path,
            kernel=tuned.kernel,
            pilot_sweeps=self.pilot_sweeps + sweeps,
            pilot_seconds=self.pilot_seconds + seconds,
            pilot_evaluations=self.pilot_evaluations + found.evaluations + starts,
            is_open=False,
            base_reason=found.reason,
            second_path=second_path,
            second_kernel=second_kernel,
            second_temperatures=temperatures,
            rounding=found.rounding,
            findings=(*self.findings, *found.findings),
        )

    def simple(self) -> "Problem":
        """The same without a search for bases and a second opinion, where the model has few states.

        Every chain can come to every one of them, and the exact log Z, which no estimate may contradict,
        says more than a second one.
        """
        flat = self.model.flat_base()
        if not isinstance(flat, BernoulliBase) or flat.num_units > _FEW_UNITS or self.is_fitted:
            return self
        known = self.with_exact()
        if known.exact_log_z is None:
            return self
        path = self.model.path(flat, self.marginal or self.model.marginals[0])
        path = path if self.is_open else self.path
        reason = (
            f"the exact log Z of {2**flat.num_units:,} states is known, no other base was tried"
        )
        return dataclasses.replace(
            known, path=path, is_simple=True, is_open=False, base_reason=reason
        )

    def is_searched(self, second_opinion: bool) -> bool:
        """Whether `prepared` will look for a base, the first or the second."""
        wants_second = second_opinion and self.is_own_path and bool(self.model.named_bases())
        return self.is_open or (wants_second and not self.is_simple)

    @property
    def states(self) -> AbstractPath:
        """The path of the states that the kernel moves."""
        return self.kernel.extend(self.path)

    @property
    def _is_uncounted(self) -> bool:
        """Whether the density is evaluated beside sweeps and starts, because nothing is carried."""
        is_carried = getattr(self.states, "carries_value", False)
        return self.kernel.evaluations is not None and not is_carried

    @property
    def offset(self) -> float | None:
        """What the path subtracts from a log density, and adds to log Z."""
        offset = getattr(self.path.base, "offset", None)
        return None if offset is None else float(offset)

    @property
    def base_name(self) -> str:
        return getattr(self.path.base, "name", "the path's own")

    @property
    def second_base(self) -> SecondBase | None:
        """Where the second opinion starts, if there is one."""
        if self.second_path is None:
            return None
        return SecondBase(
            base=getattr(self.second_path.base, "name", "second"),
            evaluations_a_sweep=None
            if self.second_kernel is None
            else self.second_kernel.evaluations,
        )

    def second_schedule(self, first: Schedule) -> Schedule | None:
        """Of the second opinion: planned by what its pilot saw, where the first was planned by a pilot."""
        if self.second_path is None:
            return None
        if isinstance(self.second_kernel, AbstractTunedKernel):
            return _along_temperatures(self.second_kernel, self.second_temperatures, first)
        if self.second_terrain is None or not has_pilot(first.name):
            return first
        return mixing(self.second_terrain, first.num_steps)

    @property
    def second_states(self) -> AbstractPath:
        """The path of the states that the kernel moves along the second path."""
        assert self.second_path is not None
        return (self.second_kernel or self.kernel).extend(self.second_path)

    def charged(self, sweeps: int, seconds: float, starts: int = 0) -> "Problem":
        """The same with more spent on pilots; `starts` are evaluations beside those of the sweeps."""
        return dataclasses.replace(
            self,
            pilot_sweeps=self.pilot_sweeps + sweeps,
            pilot_seconds=self.pilot_seconds + seconds,
            pilot_evaluations=self.pilot_evaluations + starts,
        )

    def with_exact(self, given: float | None = None) -> "Problem":
        """The same with the exact log Z: given, known already, or quick to enumerate, which is charged."""
        known = self.exact_log_z if given is None else given
        if known is not None:
            return dataclasses.replace(self, exact_log_z=known)
        known = self.model.exact_log_z_if_cheap()
        spent = 0 if known is None else self.model.num_enumerated
        return dataclasses.replace(self.charged(0, 0.0, spent), exact_log_z=known)

    def described(self, given: Given) -> dict[str, Any]:
        """What the settings of every run hold of it, by name."""
        base = self.path.base
        return {
            "model": self.name,
            "model_digest": self.model.digest,
            "source": self.source,
            "base": self.base_name,
            "base_digest": getattr(base, "digest", None),
            "marginal": self.marginal,
            "given": given,
            "evaluations_a_sweep": self.kernel.evaluations,
            "base_evaluations": self.pilot_evaluations,
            "is_uncounted": self._is_uncounted or None,
            "versions": versions(),
        }


def choose_problem(
    model: AbstractModel | str | Path,
    *,
    base: Any = "auto",
    data: Any = None,
    marginal: str | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | str | None = None,
) -> Problem:
    """The model by its name or itself, with the base, path and kernel that are given or its own.

    What is wrong with them is reported here; what takes sweeps is left to `prepared`.
    """
    found: AbstractModel
    meta: dict[str, Any] = {}
    if isinstance(model, str | Path):
        found, meta = read_model(model)
    elif isinstance(model, AbstractModel):
        found = model
    else:
        raise ValueError(
            f"model must be an annealz model, a packaged name or a file, got {hint(model)}."
        )
    is_read = isinstance(model, str | Path) and "source" not in meta  # and was checked there
    if not is_read:
        found.check()
    if path is not None and not isinstance(path, AbstractPath):
        raise ValueError(f"path must be an annealz.AbstractPath, got {type(path).__name__}.")
    move = found.choose_kernel(kernel)
    if path is not None:
        if data is not None or not (isinstance(base, str) and base == "auto"):
            raise ValueError("a path has its own base: leave out base and data, or the path.")
        if marginal is not None:
            raise ValueError(f"a path has its own states: leave out marginal, got {marginal!r}.")
        layer, is_open, is_fitted, is_own = None, False, False, False
    else:
        is_own = True
        first = found.marginals[0]
        marginal = first if marginal is None else marginal
        found.check_marginal(marginal)
        is_fitted = isinstance(base, str) and base == "fitted" and bool(found.named_bases())
        is_asked = is_fitted or (isinstance(base, str) and base == "auto")
        if is_fitted and data is not None:
            raise ValueError("data serve the base-rate base only, got base 'fitted'.")
        chosen = found.flat_base() if is_fitted else found.choose_base(base, data)
        path = found.path(chosen, marginal)
        layer = marginal if len(found.marginals) > 1 else None
        is_open = (isinstance(base, str) and base in found.searched_bases) or (
            is_asked and getattr(chosen, "name", None) != "base-rate" and bool(found.named_bases())
        )
    return Problem(
        model=found,
        name=meta.get("name", found.name),
        path=path,
        kernel=move,
        marginal=layer,
        exact_log_z=meta.get("exact_log_z"),
        source=meta.get("source"),
        is_open=is_open,
        is_fitted=is_fitted,
        is_own_path=is_own,
        wanted_base=base if isinstance(base, str) else "auto",
        pilot_evaluations=found.num_checked,
        findings=(*_guessed(meta), *_of_means(data), *_unused(meta, data)),
    )


def _of_means(data: Any) -> tuple[Finding, ...]:
    """What is to be said of means that were given instead of rows."""
    array = np.empty(0) if data is None else np.asarray(data)
    count = int(((array == 0) | (array == 1)).sum()) if array.ndim == 1 else 0
    if not count:
        return ()
    return (Finding.of(Kind.SMOOTHED_MEANS, total=array.size, count=count, rows=ROWS_OF_MEANS),)


def _guessed(meta: dict[str, Any]) -> tuple[Finding, ...]:
    """What is to be said of arrays whose names were guessed."""
    names = meta.get("guessed_names")
    return () if names is None else (Finding.of(Kind.GUESSED_NAMES, names=names),)


def _unused(meta: dict[str, Any], data: Any) -> tuple[Finding, ...]:
    """What is to be said of an array in the model's file that looks like means, under another name."""
    name = meta.get("unused_means")
    if name is None or data is not None:
        return ()
    return (Finding.of(Kind.UNUSED_MEANS, name=name),)


def _along_temperatures(
    kernel: AbstractTunedKernel, temperatures: int, first: Schedule
) -> Schedule:
    """Betas of equal difficulty, as many as bring the variance of log w to about 1."""
    assert kernel.tuning is not None
    knots = np.asarray(kernel.tuning.betas, np.float64)
    least = max(_STEPS_A_TEMPERATURE * temperatures**2, _LEAST_SECOND_STEPS)
    steps = int(max(least, min(first.num_steps, _MOST_SECOND_STEPS)))
    places = np.linspace(0, 1, steps + 1)
    betas = np.interp(places, np.linspace(0, 1, knots.size), knots)
    return from_increments(np.diff(betas), "temperatures", {"temperatures": temperatures})
