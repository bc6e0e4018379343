"""A model by its packaged name or from a file."""

from importlib import resources
from pathlib import Path
from typing import Any

from annealz.formats.npz import load_rbm
from annealz.models.rbm import RBM

__all__ = ["DEFAULT_MODEL", "load_model", "packaged_models"]

DEFAULT_MODEL = "mnist-pcd-20"


def packaged_models() -> dict[str, Path]:
    """The files of the models that come with annealz, by name."""
    folder = Path(str(resources.files("annealz.models") / "packaged"))
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}


def load_model(name: str | Path) -> tuple[RBM, dict[str, Any]]:
    """The model of a packaged name or file, and its record.

    The record holds at least "name"; "exact_log_z" only where it was recorded for these very
    parameters.
    """
    packaged = packaged_models()
    path = packaged.get(str(name), Path(name))
    if not path.exists():
        raise ValueError(
            f"unknown model {str(name)!r}: give a file, or one of {', '.join(packaged)}."
        )
    model, meta = load_rbm(path)
    if meta.get("digest") != model.digest:
        meta.pop("exact_log_z", None)
    return model, {"name": path.stem, **meta}
