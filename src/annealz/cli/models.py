"""`annealz models`: the models that come with annealz."""

import json
from typing import Any

from rich.table import Table

from annealz.cli.options import Json
from annealz.cli.show import open_console
from annealz.core.names import packaged_models

__all__ = ["models"]


def models(
    as_json: Json = False,
) -> None:
    """List the packaged models."""
    from annealz.models.formats.load import load_binary

    found = {name: load_binary(name) for name in packaged_models()}
    if as_json:
        rows = [
            {
                "name": name,
                "num_hidden": model.num_hidden,
                "num_visible": model.num_visible,
                "exact_log_z": meta.get("exact_log_z"),
                "training": meta.get("training"),
                "digest": model.digest,
            }
            for name, (model, meta) in found.items()
        ]
        print(json.dumps({"models": rows}))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("model", "units", "exact log Z", "training"):
        table.add_column(heading, justify="right" if heading == "exact log Z" else "left")
    for name, (model, meta) in found.items():
        exact = meta.get("exact_log_z")
        table.add_row(
            name,
            f"{model.num_visible} × {model.num_hidden}",
            "–" if exact is None else f"{exact:.4f}",
            _training(meta.get("training")),
        )
    open_console().print(table)


def _training(settings: dict[str, Any] | None) -> str:
    """How a model was trained, in a few words."""
    if settings is None:
        return "–"
    rate = f"{settings['learning_rate']:g}"
    if settings.get("final_learning_rate") is not None:
        rate += f"→{settings['final_learning_rate']:g}"
    algorithm = f"{settings['algorithm'].upper()}-{settings['gibbs_steps']}"
    return f"{algorithm}, {settings['num_updates']:,} updates, rate {rate}"
