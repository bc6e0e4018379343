"""Request: what a caller asked for, one frozen dataclass per method.

A field is declared once, with its default, its help text and the reason why other methods do not take it:

    num_chains: Annotated[int | None, optional(whole)] = option(None, "Chains N (default: 1000).")

The options of the command line, the exclusions, the record in a run's folder, and the command or call that
reproduces a run all follow from the fields, which are read without JAX. Values that JSON cannot hold
(arrays, bases, paths, kernels, functions) are recorded by their names in `objects`.
"""

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annealz.core.errors import InputError
from annealz.diagnostics.findings import in_python, option_words
from annealz.io.records import TypedRecord, line, list_of, number, optional, text, whole

_NO_LAYERS = "densities have no layers"


def option(default: Any, help: str = "", *, is_in_cli: bool = True, **reasons: str) -> Any:
    """Return a field of a request; `reasons` say, by method, why that method does not take it."""
    metadata = {"help": help, "is_in_cli": is_in_cli, "reasons": reasons}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Reproduction:
    """The command or the call that makes a result again."""

    text: str
    notes: tuple[str, ...] = ()
    """What the text leaves open: data and objects that no file holds."""
    is_exact: bool = True
    """Whether it gives the same bits, and not only as good a number."""

    @property
    def is_command(self) -> bool:
        """Whether the command line can do it."""
        return self.text.startswith("annealz ")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request(TypedRecord):
    """What every method is asked for."""

    what: ClassVar[str] = "what was asked for"
    method: ClassVar[str] = ""
    """The name of the method that takes it."""
    command: ClassVar[tuple[str, str]] = ("estimate", "estimate_log_z")
    """The command and the function that take it."""

    model: Annotated[Any, optional(line)] = None
    """A name, a file, or the model itself."""
    map: Annotated[str | None, optional(line)] = None
    """What the arrays of the model's file are called."""
    base: Annotated[Any, optional(text)] = option(
        "auto", "Where to start: of an RBM {bases}; docs/models.md, docs/densities.md."
    )
    seed: Annotated[int, whole] = option(0, "All randomness is a function of it.")
    exact_log_z: Annotated[float | None, optional(number)] = option(None, is_in_cli=False)
    objects: Annotated[list[str], list_of(text)] = dataclasses.field(default_factory=list)
    """Names of the arguments that were given as Python objects."""

    def __post_init__(self):
        from annealz.core.random import check_seed

        if isinstance(self.model, Path):
            object.__setattr__(self, "model", str(self.model))
        if isinstance(self.model, str) and self.map is None:
            object.__setattr__(self, "map", getattr(self.model, "map", None))
        object.__setattr__(self, "seed", check_seed(self.seed))
        if not self.objects:
            object.__setattr__(self, "objects", [n for n in self.names() if self.is_object(n)])

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the arguments, in their order."""
        return [one.name for one in dataclasses.fields(cls) if one.name not in ("model", "objects")]

    def is_object(self, name: str) -> bool:
        """Check whether this argument is an object that JSON does not hold."""
        value = getattr(self, name)
        items = value if isinstance(value, list | tuple) else [value]
        return not all(isinstance(item, str | int | float | None) for item in items)

    def to_dict(self) -> dict[str, Any]:
        """Return the values that JSON holds."""
        hidden = {*self.objects, *(() if isinstance(self.model, str) else ("model",))}
        known = {n: getattr(self, n) for n in ("model", *self.names()) if n not in hidden}
        known = {n: str(v) if isinstance(v, str) else v for n, v in known.items()}
        return {n: v for n, v in known.items() if v is not None} | {"objects": self.objects}

    def reproduction(
        self,
        changes: Mapping[str, Any] | None = None,
        digest: str = "",
        command: str | None = None,
    ) -> Reproduction:
        """Return the command that makes the same result, or one with `changes`.

        Where objects were given it is a call in Python, in which names stand for them.
        """
        changes = dict(changes or {})
        options: dict[str, Any] = {"method": self.method} if self.method != "annealing" else {}
        method = changes.pop("method", None)
        if method is not None:  # which has options of its own
            options = {"map": self.map, "method": method, "seed": self.seed}
        else:
            options |= self._given()
        if "base" in changes:  # data serve another one
            options.pop("data", None)
        options |= changes
        objects = [name for name in self.objects if name in options or name == "path"]
        objects = [name for name in objects if name not in changes and name != "data"]
        notes = []
        model = self.model if isinstance(self.model, str) else None
        if model is None:
            start = f" whose digest begins with {digest[:12]}" if digest else ""
            notes.append(f"model: the model{start}")
        if "data" in options:
            options["data"] = True
            notes.append("DATA: the file of data that the base rate came from")
        if objects:
            notes.append(f"{', '.join(objects)}: the objects that were given")
        is_exact = options.get("max_seconds") is None
        if not is_exact:
            notes.append("how many chains a time limit allows depends on the machine")
        in_cli = {f.name for f in dataclasses.fields(self) if f.metadata.get("is_in_cli", True)}
        is_command = (
            model is not None
            and not objects
            and not (options.keys() - in_cli - {"method"} - changes.keys())
        )
        written = (
            self._command(command, model, options) if is_command else self._call(options, objects)
        )
        return Reproduction(written, tuple(notes), is_exact)

    def _given(self) -> dict[str, Any]:
        """Return the arguments that differ from their defaults."""
        defaults = {one.name: one.default for one in dataclasses.fields(self)}
        names = [name for name in self.names() if name in self.objects or (
            getattr(self, name) is not None and getattr(self, name) != defaults[name]
        )]  # fmt: skip
        return {name: getattr(self, name) for name in names} | {"seed": self.seed}

    def _command(self, command: str | None, model: Any, options: Mapping[str, Any]) -> str:
        words = ["annealz", command or self.command[0], str(model)]
        for name, value in options.items():
            words += [] if value is None else option_words(name, value)
        return shlex.join(words)

    def _call(self, options: Mapping[str, Any], objects: list[str]) -> str:
        shown = {
            name: in_python(name, value) for name, value in options.items() if value is not None
        }
        shown |= {name: f"{name}={name}" for name in objects}
        model = repr(str(self.model)) if isinstance(self.model, str) else "model"
        if shown.pop("map", None):
            model = f"annealz.load_model({model}, map={self.map!r})"
        lines = [f"    {words}," for words in (model, *shown.values())]
        return "\n".join([f"annealz.{self.command[1]}(", *lines, ")"])

    def check_whole(self, least: Mapping[str, int]) -> None:
        """Turn arguments into whole numbers, at least as large as this; None stays."""
        from annealz.core.numerics import whole_number

        for name, smallest in least.items():
            value = getattr(self, name)
            if value is None:
                continue
            count = whole_number(name, value)
            if isinstance(value, bool) or count < smallest:
                raise InputError(name, f"must be at least {smallest}", value)
            object.__setattr__(self, name, count)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathRequest(Request):
    """What a method along a path from a base to the model is asked for."""

    data: Annotated[Any, optional(text)] = option(
        None,
        "Training data or means for the base rate: npy, npz, IDX.",
        nested="they serve bases of binary layers",
    )
    marginal: Annotated[str | None, optional(text)] = option(
        None, "The layer annealed, of models with two: {marginals}.", nested=_NO_LAYERS
    )
    path: Annotated[Any, optional(text)] = option(None, is_in_cli=False)
    kernel: Annotated[Any, optional(text)] = option(
        None,
        "The transition: clusters or gibbs of Ising and Potts models, gradient or gibbs of discrete "
        "functions.",
        nested="it has walks of its own",
    )
