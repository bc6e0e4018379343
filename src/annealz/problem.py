"""What is annealed: a model, a path that ends in it, and a kernel along the path.

Model, base, path and kernel are chosen here for all that anneals: whoever gives a path gives its base with
it, whoever gives a kernel keeps the model's path.
"""

import dataclasses
from pathlib import Path
from typing import Any

from annealz.formats.load import load_model
from annealz.kernels.abstract import AbstractKernel
from annealz.marginal import choose_marginal
from annealz.models.abstract import AbstractModel
from annealz.paths.abstract import AbstractPath

__all__ = ["Problem", "choose_problem"]

_USUAL_SWEEPS = 10_000_000
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

    def prepared(self, seed: int, sweeps: int = _USUAL_SWEEPS) -> "Problem":
        """The same with all decided that takes a pilot: which layer to anneal, and how the kernel steps.

        `sweeps` of the run to come, of which tuning the kernel may take a fiftieth.
        """
        path, marginal, spent, seconds = self.path, self.marginal, 0, 0.0
        if marginal == "auto":
            choice = choose_marginal(self.path.base, self.model, seed=seed)
            path, marginal = self.model.path(self.path.base, choice.marginal), choice.marginal
            spent, seconds = choice.sweeps, choice.seconds
        budget = max(int(_TUNING_SHARE * sweeps), _LEAST_TUNING)
        tuned = self.kernel.tuned(self.kernel.extend(path), seed=seed, budget=budget)
        return dataclasses.replace(
            self,
            path=path,
            kernel=tuned.kernel,
            marginal=marginal,
            pilot_sweeps=self.pilot_sweeps + spent + tuned.sweeps,
            pilot_seconds=self.pilot_seconds + seconds + tuned.seconds,
        )

    @property
    def states(self) -> AbstractPath:
        """The path of the states that the kernel moves."""
        return self.kernel.extend(self.path)

    @property
    def base_name(self) -> str:
        return getattr(self.path.base, "name", "the path's own")


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

    What is wrong with them is told here; what takes sweeps is left to `prepared`.
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
        layer = None
    else:
        first = found.marginals[0]
        marginal = first if marginal is None else marginal
        shown = first if marginal == "auto" else found.check_marginal(marginal)
        path = found.path(found.choose_base(base, data), shown)
        layer = marginal if len(found.marginals) > 1 else None
    return Problem(
        model=found,
        name=meta.get("name", found.name),
        path=path,
        kernel=found.kernel() if kernel is None else kernel,
        marginal=layer,
        exact_log_z=meta.get("exact_log_z"),
        source=meta.get("source"),
    )
