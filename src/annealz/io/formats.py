"""The formats of model files: their endings, how their first bytes look, and what reads them.

This module imports neither the readers nor JAX: the command line lists the endings in its help. Another
package adds a format by an entry point of the group `annealz.formats` (docs/extending.md).
"""

import dataclasses
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from annealz.io.registry import Entry, Registry, call

_SUFFIX = re.compile(r"(\.[a-z0-9_-]+)+")


@dataclasses.dataclass(frozen=True)
class FileFormat(Entry):
    """A format of model files.

    Parameters
    ----------
    name : what messages call it
    description : one line, for help
    suffixes : endings of its files, in lower case, with the dot
    read : a function, or "module:function", of a path that gives the model and its record, a dictionary
        that may be empty or hold "name"
    accepts : a function, or "module:function", of the first 1024 bytes of a file that says whether it is
        one; by default the ending alone does
    has_parts : whether a file holds several models, so that `file/part` is one; `read` then takes
        (path, part), of which part may be None
    takes_names : whether its arrays may have any names, which --map then gives: `read` takes them, a
        dictionary, as one more argument
    package : which package declares it; annealz fills it in

    Examples
    --------
    >>> import annealz
    >>> import json
    >>> def read(path):
    ...     return annealz.RBM.checked(**json.loads(path.read_text())), {}
    >>> rbm_json = annealz.FileFormat("rbm-json", "an RBM as JSON", (".rbmjson",), read)
    >>> rbm_json.suffixes
    ('.rbmjson',)
    """

    noun: ClassVar[str] = "file format"

    suffixes: tuple[str, ...]
    read: str | Callable[..., Any]
    accepts: str | Callable[[bytes], bool] | None = None
    has_parts: bool = False
    takes_names: bool = False

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "suffixes", tuple(self.suffixes))
        if not self.suffixes or not all(map(_SUFFIX.fullmatch, self.suffixes)):
            raise ValueError(
                f"the endings of the format {self.name} must be like .npz, got {self.suffixes!r}."
            )

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.suffixes)})"

    def is_named(self, path: Path) -> bool:
        """Check whether the file has one of its endings."""
        return path.name.lower().endswith(self.suffixes)

    def knows(self, head: bytes) -> bool:
        """Check whether a file that begins so is one."""
        return self.accepts is not None and bool(call(self.owner, self.accepts, head))


def _own(module: str, name: str, description: str, *suffixes: str, **has: Any) -> FileFormat:
    """Return the format that a module of annealz reads by its function `load_…` and knows by `is_…`."""
    where = f"annealz.models.formats.{module}"
    read, accepts = f"{where}:load_{module}", f"{where}:is_{module}"
    return FileFormat(name, description, suffixes, read, accepts, **has)


_HDF5 = "of rbms, RestrictedBoltzmannMachines.jl, MATLAB 7.3, or plain datasets"
_NUMPY = "arrays of NumPy, or a model that annealz wrote"
_POTTS = "a Potts model, as lines of couplings J and fields h"
_NETWORK = "a Markov or Bayesian network of discrete variables"
_OWN = (
    _own("npz", "npz", _NUMPY, ".npz", takes_names=True),
    _own("mat", "MATLAB", "version 4 to 7; later ones are HDF5", ".mat", takes_names=True),
    _own("hdf5", "HDF5", _HDF5, ".h5", ".hdf5", has_parts=True, takes_names=True),
    _own("safetensors", "safetensors", "named tensors", ".safetensors", takes_names=True),
    _own("adabmdca", "adabmDCA", _POTTS, ".dat"),
    _own("uai", "UAI", _NETWORK, ".uai", has_parts=True),
)


class _Formats(Registry[FileFormat]):
    """Formats by name; no two may claim an ending of annealz's own."""

    def check(self, thing: FileFormat, owner: str) -> None:
        taken = {suffix for own in _OWN for suffix in own.suffixes}
        for suffix in thing.suffixes:
            if suffix in taken:
                raise ValueError(f"{owner} claims {suffix}, which annealz reads itself: rename it.")

    def of(self, path: Path, head: bytes) -> FileFormat | None:
        """Return the format of a file, or None.

        The endings of other packages come first, then the first bytes, then the endings of annealz's own.
        """
        known = self.usable()
        others = [one for one in known if one.package and one.is_named(path)]
        if len(others) > 1:
            raise ValueError(
                f"{path} could be read by {' and by '.join(one.owner for one in others)}: uninstall one."
            )
        if others:
            return others[0]
        likely = sorted(known, key=lambda one: not one.is_named(path))  # others are not imported
        by_head = (one for one in likely if one.knows(head))
        return next(by_head, None) or next((one for one in known if one.is_named(path)), None)


FORMATS = _Formats("annealz.formats", FileFormat, FileFormat.noun, {one.name: one for one in _OWN})


def suffixes(formats: Iterable[FileFormat]) -> str:
    """Write their endings for a sentence."""
    return ", ".join(suffix for one in formats for suffix in one.suffixes)
