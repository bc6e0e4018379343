"""What is annealed: a model, a path that ends in it, and a kernel along the path.

Model, base, path and kernel are chosen here for all that anneals: whoever gives a path gives its base with
it, whoever gives a kernel keeps the model's path.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from annealz.core.registry.schedules import has_pilot
from annealz.core.versions import versions
from annealz.engine.anneal import Progress
from annealz.kernels.abstract import AbstractKernel
from annealz.models.abstract import AbstractModel
from annealz.models.formats.load import load_model
from annealz.paths.abstract import AbstractPath
from annealz.schedules.choose import DEFAULT_NUM_STEPS
from annealz.schedules.mixing import mixing
from annealz.schedules.schedule import Schedule
from annealz.schedules.terrain import Terrain
from annealz.workflows.pilots.base_search import choose_second, search_bases
from annealz.workflows.settings import Given, SecondBase

__all__ = ["Problem", "choose_problem"]

_USUAL_CHAINS = 1000
_TUNING_SHARE, _LEAST_TUNING = 0.02, 3000


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
    """What the model's file records."""
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

    def prepared(
        self,
        seed: int,
        num_steps: int = DEFAULT_NUM_STEPS,
        num_chains: int = _USUAL_CHAINS,
        *,
        second_opinion: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> "Problem":
        """The same with all decided that takes a pilot: base, and how the kernel steps.

        `num_steps` and `num_chains` are those of the run to come, of whose sweeps tuning the kernel may
        take a fiftieth and a search for bases a third. With `second_opinion` a second path, from an
        unlike base, where the model has one.
        """
        path, spent, seconds = self.path, 0, 0.0
        layer = self.marginal or self.model.marginals[0]
        options: dict[str, Any] = {"seed": seed, "num_steps": num_steps, "num_chains": num_chains}
        options["on_progress"] = on_progress
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
            spent, seconds = found.sweeps, found.seconds
        second = found.second if found is not None and second_opinion else None
        budget = max(int(_TUNING_SHARE * num_steps * num_chains), _LEAST_TUNING)
        tuned = self.kernel.tuned(self.kernel.extend(path), seed=seed, budget=budget)
        return dataclasses.replace(
            self,
            path=path,
            kernel=tuned.kernel,
            pilot_sweeps=self.pilot_sweeps + spent + tuned.sweeps,
            pilot_seconds=self.pilot_seconds + seconds + tuned.seconds,
            is_open=False,
            base_reason=None if found is None else found.reason,
            second_path=None if second is None else second.path,
            second_terrain=None if second is None else second.terrain,
        )

    def is_searched(self, second_opinion: bool) -> bool:
        """Whether `prepared` will look for a base, the first or the second."""
        wants_second = second_opinion and self.is_own_path and bool(self.model.named_bases())
        return self.is_open or wants_second

    @property
    def states(self) -> AbstractPath:
        """The path of the states that the kernel moves."""
        return self.kernel.extend(self.path)

    @property
    def base_name(self) -> str:
        return getattr(self.path.base, "name", "the path's own")

    @property
    def has_fitted_base(self) -> bool:
        """Whether evaluations of a density were spent on the base."""
        return getattr(self.path.base, "evaluations", 0) > 0

    @property
    def second_base(self) -> SecondBase | None:
        """Where the second opinion starts, if there is one."""
        if self.second_path is None:
            return None
        return SecondBase(base=getattr(self.second_path.base, "name", "second"))

    def second_schedule(self, first: Schedule) -> Schedule | None:
        """Of the second opinion: planned by what its pilot saw, where the first was planned by a pilot."""
        if self.second_path is None:
            return None
        if self.second_terrain is None or not has_pilot(first.name):
            return first
        return mixing(self.second_terrain, first.num_steps)

    def charged(self, sweeps: int, seconds: float) -> "Problem":
        """The same with more spent on pilots."""
        return dataclasses.replace(
            self,
            pilot_sweeps=self.pilot_sweeps + sweeps,
            pilot_seconds=self.pilot_seconds + seconds,
        )

    def known_log_z(self, given: float | None = None) -> float | None:
        """The exact value: given, recorded in the model's file, or quick to enumerate."""
        known = self.exact_log_z if given is None else given
        return self.model.exact_log_z_if_cheap() if known is None else known

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
            "base_evaluations": getattr(base, "evaluations", 0),
            "versions": versions(),
        }


def choose_problem(
    model: AbstractModel | str | Path,
    *,
    base: Any = "auto",
    data: Any = None,
    marginal: str | None = None,
    path: AbstractPath | None = None,
    kernel: AbstractKernel | None = None,
) -> Problem:
    """The model by its name or itself, with the base, path and kernel that are given or its own.

    What is wrong with them is reported here; what takes sweeps is left to `prepared`.
    """
    found: AbstractModel
    meta: dict[str, Any] = {}
    if isinstance(model, str | Path):
        found, meta = load_model(model)
    elif isinstance(model, AbstractModel):
        found = model
        found.check()
    else:
        raise ValueError(
            f"model must be an annealz model, a packaged name or a file, got {type(model).__name__}: "
            "derive it from annealz.AbstractModel."
        )
    for name, given, kind in (("path", path, AbstractPath), ("kernel", kernel, AbstractKernel)):
        if given is not None and not isinstance(given, kind):
            raise ValueError(
                f"{name} must be an annealz.{kind.__name__}, got {type(given).__name__}."
            )
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
        is_open = (
            is_asked and getattr(chosen, "name", None) != "base-rate" and bool(found.named_bases())
        )
    return Problem(
        model=found,
        name=meta.get("name", found.name),
        path=path,
        kernel=found.kernel() if kernel is None else kernel,
        marginal=layer,
        exact_log_z=meta.get("exact_log_z"),
        source=meta.get("source"),
        is_open=is_open,
        is_fitted=is_fitted,
        is_own_path=is_own,
    )
