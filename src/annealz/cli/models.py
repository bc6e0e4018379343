"""`annealz models`: the models that come with annealz."""

import json

from rich.console import Console
from rich.table import Table

from annealz.cli.options import Json
from annealz.formats.load import load_model, packaged_models

__all__ = ["models"]


def models(
    as_json: Json = False,
) -> None:
    """List the packaged models."""
    found = {name: load_model(name) for name in packaged_models()}
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
    for heading in ("model", "hidden", "visible", "exact log Z", "training"):
        table.add_column(heading, justify="left" if heading in ("model", "training") else "right")
    for name, (model, meta) in found.items():
        exact, training = meta.get("exact_log_z"), meta.get("training", {})
        table.add_row(
            name,
            str(model.num_hidden),
            str(model.num_visible),
            "–" if exact is None else f"{exact:.4f}",
            f"{training.get('algorithm', '?').upper()}-{training.get('gibbs_steps', '?')}, "
            f"{training.get('num_updates', 0):,} updates, rate {training.get('learning_rate', '?')}",
        )
    Console().print(table)
