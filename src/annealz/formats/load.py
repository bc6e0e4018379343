"""A model by its packaged name, from a file, or by the import path of a Python object."""

from importlib import resources
from pathlib import Path
from typing import Any

from annealz.formats.npz import load_rbm
from annealz.formats.python_object import is_import_path, load_object

__all__ = ["DEFAULT_MODEL", "load_model", "packaged_models"]

DEFAULT_MODEL = "mnist-pcd-20"


def packaged_models() -> dict[str, Path]:
    """The files of the models that come with annealz, by name."""
    folder = Path(str(resources.files("annealz.models") / "packaged"))
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}


def load_model(name: str | Path) -> tuple[Any, dict[str, Any]]:
    """The model of a packaged name, a file, or the import path of a Python object, and its record.

    The record holds at least "name"; "exact_log_z" only where it was recorded for these very
    parameters.
    """
    packaged = packaged_models()
    if is_import_path(str(name)) and not Path(name).exists():
        found = load_object(str(name))
        found.check()
        return found, {"name": found.name, "source": str(name)}
    path = packaged.get(str(name), Path(name))
    if not path.exists():
        raise ValueError(
            f"unknown model {str(name)!r}: give a file, module:name of a Python object, or one of "
            f"{', '.join(packaged)}."
        )
    model, meta = load_rbm(path)
    if meta.get("digest") != model.digest:
        meta.pop("exact_log_z", None)
    return model, {"name": path.stem, **meta}
